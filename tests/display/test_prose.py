"""Words and programs that a model wrote become text and marks, and nothing else."""

from __future__ import annotations

import pytest

from experiments.display.prose import MAX_SENTENCE, first_sentence, highlight, prose


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[click](javascript:alert(1))",
        "![x](https://elsewhere.example/pixel.png)",
        "<https://elsewhere.example>",
        "[x]: https://elsewhere.example\n\n[x]",
        "https://elsewhere.example",
        "`<script>`",
        "```html\n<script>alert(1)</script>\n```",
        '```"><script>\nx\n```',
        "| a |\n|:-:|\n| <i>b</i> |",
    ],
)
def test_it_makes_no_link_no_image_no_script_and_no_style(hostile: str) -> None:
    html = prose(hostile)
    for tag in ("<script", "<img", "<a ", "<i>", "style=", "href=", "src=x>"):
        assert tag not in html


def test_it_formats_what_is_left() -> None:
    html = prose("# Head\n\nA **red** ball:\n\n1. one\n2. two\n\n| a |\n|--:|\n| 1 |\n")
    for tag in ("<h4>Head</h4>", "<strong>red</strong>", "<ol>", "<li>one</li>", "<td>1</td>"):
        assert tag in html


def test_a_python_fence_is_coloured() -> None:
    assert '<span class="k">def</span>' in prose("```python\ndef f(): pass\n```")


def test_what_is_long_to_read_is_formatted_all_the_same() -> None:
    assert prose("Four of five exemplars hold a **red** ball. " * 50).startswith("<p>Four of five")
    assert '<span class="k">def</span>' in highlight("def f(): pass\n" * 50)


def test_one_sentence_stands_for_a_conclusion_and_is_cut_where_it_does_not_end() -> None:
    assert first_sentence("It responds to **red balls**, and to nothing else that is round. Cars?") == (
        "It responds to red balls, and to nothing else that is round."
    )
    assert first_sentence("Red balls. Of any size.") == "Red balls. Of any size."
    assert first_sentence("I found two:\n- **Weaker** at night.\n- Stronger by day.") == "I found two: Weaker at night."
    cut = first_sentence("red balls and " * 200)
    assert len(cut) <= MAX_SENTENCE
    assert cut.endswith("…")


def test_text_nobody_can_read_is_shown_as_it_is() -> None:
    assert prose("<b>" + "x" * 200_000).startswith("<pre>&lt;b&gt;")


def test_a_program_keeps_every_character() -> None:
    code = "\n\ndef f():\n    return '<b>' & \"x\"\n"
    html = highlight(code)
    assert "&lt;b&gt;" in html
    assert html.startswith("\n\n")
    assert "<b>" not in html
    assert highlight("<" * 200_000).startswith("&lt;")

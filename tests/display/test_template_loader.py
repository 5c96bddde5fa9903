"""Templates are written one element a line, and pages are drawn without those breaks."""

from __future__ import annotations

import pytest
from django.template import Context, Engine

from experiments.display.template_loader import close_up


@pytest.mark.parametrize(
    ("source", "drawn"),
    [
        ("<ul>\n  <li>\n    one\n  </li>\n</ul>\n", "<ul><li>one</li></ul>"),
        ("<p>\n  A long\n  sentence.\n</p>", "<p>A long sentence.</p>"),
        ("<a>x</a>\n<a>y</a>", "<a>x</a> <a>y</a>"),
        ("<b>x</b><i>y</i>", "<b>x</b><i>y</i>"),
        ("<p>\n  {% if a > b %}\n    <b>x</b>\n  {% endif %}\n</p>", "<p>{% if a > b %} <b>x</b> {% endif %}</p>"),
        (
            '<td\n  class="a{% if x == "y" %} b{% endif %}"\n>\n  1\n</td>',
            '<td class="a{% if x == "y" %} b{% endif %}">1</td>',
        ),
        ("one <mark\n  >two</mark>", "one <mark>two</mark>"),
        ("<pre>\n  one\n    two\n</pre>", "<pre>\n  one\n    two\n</pre>"),
        ("<textarea>\n  one\n</textarea>\n<p>\n  x\n</p>", "<textarea>\n  one\n</textarea><p>x</p>"),
    ],
)
def test_breaks_are_closed_up_where_they_are_not_drawn(source: str, drawn: str) -> None:
    assert close_up(source) == drawn


def test_line_numbers_stay_where_templates_are_debugged(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("templates")
    (folder / "page.html").write_text("<p>\n  one\n</p>\n")
    loaders = [("experiments.display.template_loader.Loader", [str(folder)])]
    drawn = {
        debug: Engine(debug=debug, loaders=loaders).get_template("page.html").render(Context())
        for debug in (True, False)
    }
    assert drawn == {True: "<p>\n  one\n</p>\n", False: "<p>one</p>"}

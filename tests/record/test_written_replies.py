"""What a person writes goes through the agents' grammar: it comes back as it was written, or is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from experiments.models import HumanReply, Run
from workers.record.grammar.reply import parse
from workers.record.grammar.written import compose, find_problems, select

HOSTILE = (
    *(
        "[CODE]",
        "[LABEL]:",
        "[LABEL 2]: x",
        "[HYPOTHESIS LIST]:",
        "[DESCRIPTION]",
        "[BIAS]:",
        "  [reasoning]",
        "## [CODE]",
    ),
    *("```", "```python", "````", "~~~", "def run_experiment(system, tools):", "    pass", "    ```", "print('x')"),
    *("red ball", "[supported: 3]", "[refuted", "]", "none", "N/A", "- a", "1. b", "Hypothesis_1: q", "[open]"),
    *("", "**", "****", '"', "<x>", "---", "\u2028", "\x0b", "é", "\N{PARTY POPPER}"),
)


def some(dice: random.Random, most: int) -> str:
    return dice.choice(["\n", " ", ""]).join(dice.choice(HOSTILE) for _ in range(dice.randint(0, most)))


def problems_of(task: str, **fields: Any) -> dict[str, str]:
    return find_problems(HumanReply(**fields).values, task)


def a_reply(dice: random.Random) -> HumanReply:
    """Lines that mean something to the grammar, wherever a person may write."""
    hypotheses = [
        {
            "number": n,
            "text": some(dice, 3) or "h",
            "status": dice.choice(["open", "supported"]),
            "reason": some(dice, 1),
        }
        for n in range(1, dice.randint(1, 3))
    ]
    rare = {
        name: some(dice, dice.choice([0, 0, 3])) for name in ("prose", "description", "labels", "reasoning", "bias")
    }
    what = dice.choice(["experiment", "conclusion"])
    return HumanReply(
        run=Run(task="describe"), round=1, what=what, hypotheses=hypotheses, program=some(dice, 5), **rare
    )


def test_what_is_taken_comes_back_as_it_was_written() -> None:
    dice, taken, refused = random.Random(6), 0, 0
    for _ in range(4_000):
        reply = a_reply(dice)
        if find_problems(reply.values, reply.run.task):
            refused += 1
            continue
        taken += 1
        found, written = parse(compose(reply.values)), select(reply.values)
        assert (found.code or "") == written.program
        assert found.prose == written.prose
        assert (found.conclusion is not None) == (reply.what == "conclusion")
        assert [each.number for each in found.hypotheses] == [each.number for each in written.hypotheses]
        assert [each.status for each in found.hypotheses] == [each.status for each in written.hypotheses]
    assert taken > 1_000
    assert refused > 1_000


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("prose", "So:\n[CODE]:\n```python\nprint(1)\n```"),
        ("prose", "So: [LABEL]: two"),
        ("description", "one\n[LABEL]: two"),
        ("labels", "red [LABEL]: blue"),
        ("bias", "<none yet>"),
        ("reasoning", "a\n**[Bias]** b"),
    ],
)
def test_it_names_the_field_that_would_be_misread(field: str, text: str) -> None:
    fields = {"description": "Red.", field: text}
    assert list(problems_of("describe", what="conclusion", **fields)) == [field]


def test_a_program_may_hold_anything() -> None:
    program = 'text = """\n[LABEL]: no\n```\n`````python\n"""\n[CODE] = [1]\n    '
    reply = HumanReply(
        run=Run(task="describe"), program=program, prose="```python\ndef run_experiment(a, b):\n    1\n```"
    )
    assert find_problems(reply.values, reply.run.task) == {}
    assert parse(compose(reply.values)).code == program.rstrip()


def test_no_label_is_a_conclusion_and_nothing_is_none() -> None:
    assert problems_of("describe", what="conclusion", labels="none") == {}
    assert list(problems_of("describe", what="conclusion", labels=" \n")) == ["description"]
    assert list(problems_of("spurious", what="conclusion", reasoning="why")) == ["labels"]

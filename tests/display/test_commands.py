"""Commands are told apart in the sentences that name them, and nothing in a sentence becomes HTML."""

from __future__ import annotations

import pytest

from experiments.display.prose import set_commands, split_commands, split_lines


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("It is not here. Get it: hf download microsoft/resnet-152", ["hf download microsoft/resnet-152"]),
        ("A. Get it: hf download a/b B. Get it: hf download c/d.e.", ["hf download a/b", "hf download c/d.e"]),
        ('With hf download a/b --include "*.json" --exclude "x y" (after ...).', [
            'hf download a/b --include "*.json" --exclude "x y"'
        ]),
        ("Save it with `save_pretrained` of the model.", ["save_pretrained"]),
        ("Give consent, then: hf auth login", ["hf auth login"]),
        ("Or add it: manage.py datasets add /data/birds", ["manage.py datasets add /data/birds"]),
        ("Set OPENAI_API_KEY, and start again.", []),
        ("", []),
    ],
)  # fmt: skip
def test_commands_are_found_and_no_word_is_lost(text: str, commands: list[str]) -> None:
    found = split_commands(text)
    assert [words for is_command, words in found if is_command] == commands
    assert "".join(words for _, words in found) == text.replace("`", "")


def test_no_line_beneath_a_command_begins_with_a_full_stop() -> None:
    assert split_lines("Get it: hf download a/b. Or add it: manage.py models a:/b.") == [
        (False, "Get it: "),
        (True, "hf download a/b"),
        (False, "Or add it: "),
        (True, "manage.py models a:/b"),
    ]


def test_a_hostile_name_stays_text() -> None:
    assert set_commands("<script>x</script> hf download a/<b>") == (
        "&lt;script&gt;x&lt;/script&gt; <code>hf download a/</code>&lt;b&gt;"
    )

"""Sentences that say what is missing, with the commands in them told apart, so that a page can offer to copy those."""

from __future__ import annotations

import re

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

OPTIONS = r"(?: +--[\w-]+(?: +(?:\"[^\"\n]*\"|'[^'\n]*'))?)*"
COMMAND = re.compile(
    r"`(?P<quoted>[^`\n]+)`|\b(?P<bare>hf download [\w./-]+" + OPTIONS + r"|hf auth login"
    r"|(?:python )?manage\.py [^\n;)]+|pip install [^\n;)]+)"
)
"""What stands between backquotes, or begins like a command."""


def pieces(text: str) -> list[tuple[bool, str]]:
    """The text in order: (whether it is a command, its words)."""
    found: list[tuple[bool, str]] = []
    end = 0
    for match in COMMAND.finditer(text):
        bare = match["bare"] or ""
        command = match["quoted"] or bare.rstrip(" .,:")
        found += [(False, text[end : match.start()]), (True, command)]
        end = match.end() - (len(bare) - len(command) if bare else 0)
    return [(is_command, words) for is_command, words in [*found, (False, text[end:])] if words]


def paragraphs(text: str) -> list[tuple[bool, str]]:
    """The same where each piece stands on a line of its own: no line begins with what ends the sentence before it."""
    found = [(command, words if command else words.lstrip(" .,;")) for command, words in pieces(text)]
    return [(command, words) for command, words in found if words]


def as_html(text: str) -> SafeString:
    """The sentence with its commands set as code; whatever else is in it is plain text."""
    parts = [format_html("<code>{}</code>" if command else "{}", words) for command, words in pieces(text)]
    return mark_safe("".join(parts))  # noqa: S308 - each part is escaped

"""Render untrusted text and programs as safe HTML, for template filters.

A model's text is Markdown. People's text is paragraphs, links, `code`, and names of mentioned people.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from pygments import highlight as paint
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

MAX_FORMATTED_CHARS = 100_000
"""Characters beyond which text is not formatted: it is too long to be read."""
OPTIONS = r"(?: +--[\w-]+(?: +(?:\"[^\"\n]*\"|'[^'\n]*'))?)*"
COMMAND = re.compile(
    r"`(?P<quoted>[^`\n]+)`|\b(?P<bare>hf download [\w./-]+" + OPTIONS + r"|hf auth login"
    r"|(?:python )?manage\.py [^\n;)]+|pip install [^\n;)]+)"
)
"""Text between backquotes, or that begins like a command."""


def prose(text: str, heading: str = "h4") -> SafeString:
    """Render Markdown as HTML: paragraphs, lists, tables, quotes and code; all headings become this tag."""
    if len(text) > MAX_FORMATTED_CHARS:
        return mark_safe(f"<pre>{escape(text)}</pre>")  # noqa: S308 - escaped
    # The tokens are changed before they are rendered: style and headings are the only surprises in them.
    parser = markdown()
    tokens = parser.parse(text)
    for token in tokens:
        token.attrs.pop("style", None)  # the page's policy allows no inline style
        if token.tag in HEADINGS:
            token.tag = heading  # keeps the page's own outline
    return mark_safe(parser.renderer.render(tokens, parser.options, {}))  # noqa: S308 - html is off


def highlight(code: str) -> SafeString:
    """Render a Python program as spans with classes that `code.css` colours."""
    if len(code) > MAX_FORMATTED_CHARS:
        return mark_safe(escape(code))  # noqa: S308 - escaped
    return mark_safe(paint(code, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)))  # noqa: S308 - escaped by it


HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


@cache
def markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "highlight": _render_fence})
    # A model's text is untrusted: a link or an image in it could lead readers, or their browsers, anywhere.
    return parser.enable("table").disable(["link", "image", "autolink", "reference", "html_inline", "html_block"])


def _render_fence(code: str, language: str, _: str) -> str:
    """Colour Python fences; others stay plain."""
    return str(highlight(code)) if language in {"python", "py"} else ""


# --- text by people ----------------------------------------------------------------------------------

CODE = re.compile(r"`(?P<code>[^`\n]+)`")
LINK = re.compile(r"(?P<link>https?://[^\s<>\"'`]+)")
MENTION = re.compile(r"(?<![\w@.])@(?P<name>\w[\w.@+-]{0,149})")
PIECE = re.compile("|".join(each.pattern for each in (CODE, LINK, MENTION)))
AFTER_A_NAME = ".@+-_"
AFTER_A_LINK = ".,;:!?)]}*"


def render_words(text: str, names: Collection[str] = ()) -> SafeString:
    """Render a person's text as paragraphs; only these `names` count as mentioned people."""
    paragraphs = re.split(r"\n[ \t]*\n\s*", text.strip().replace("\r\n", "\n"))
    # Single line breaks stay: people write lists by hand.
    html = ("<br>".join(_render_line(line, names) for line in each.split("\n")) for each in paragraphs)
    return mark_safe("".join(f"<p>{each}</p>" for each in html))  # noqa: S308 - `_render_line` escapes


def _render_line(line: str, names: Collection[str]) -> str:
    """Render a line; all but links, code and names stays as written."""
    html, end = "", 0
    # Text between pieces is escaped here, pieces in `_render_piece`.
    for match in PIECE.finditer(line):
        html += escape(line[end : match.start()]) + _render_piece(match, names)
        end = match.end()
    return html + escape(line[end:])


def _render_piece(match: re.Match[str], names: Collection[str]) -> str:
    if code := match["code"]:
        return f"<code>{escape(code)}</code>"
    if link := match["link"]:
        # The full stop of a sentence does not belong to its link.
        address = link.rstrip(AFTER_A_LINK)
        rest = escape(link[len(address) :])
        return f'<a href="{escape(address)}" rel="nofollow noopener noreferrer">{escape(address)}</a>{rest}'
    name = next((way for way in spellings(match["name"]) if way in names), "")
    rest = escape(match["name"][len(name) :])
    return f'<b class="mention">@{escape(name)}</b>{rest}' if name else f"@{rest}"


def spellings(name: str) -> list[str]:
    """Return the possible names after an @: as written, and without the full stop of a sentence."""
    return [name, name.rstrip(AFTER_A_NAME)]


# --- the first sentence ------------------------------------------------------------------------------

MAX_SENTENCE, SHORT = 260, 40
"""Maximum characters of the one sentence; a sentence as short as the second number says little alone."""
SENTENCE = re.compile(
    r"(?<=[.!?。！？])[\s*_`\"”]+(?=[^a-z\s])|(?<=[。！？])|\n\s*\n|\n(?=\s*[-•*]\s)"  # noqa: RUF001 - as they are written
)
MARKS = re.compile(r"(^|\s)(#+|[*_`]{1,3})(?=\S)|(?<=\S)[*_`]{1,3}(?=\W|$)")
"""Marks of Markdown, removed from the one sentence."""
ITEM = re.compile(r"^\s*[-•*]\s+")
"""Start of a list item."""


def first_sentence(text: str) -> str:
    """Return the first sentence of a conclusion without Markdown, with the next one if it is short; cut if it is
    too long."""
    parts = (ITEM.sub("", each) for each in SENTENCE.split(text.strip(), maxsplit=2))
    sentences = [" ".join(MARKS.sub(r"\1", each).split()) for each in parts]
    words = " ".join(sentences[: 1 if len(sentences[0]) > SHORT else 2])
    # Cut at a space: half a word would be misread.
    return words if len(words) <= MAX_SENTENCE else f"{words[: MAX_SENTENCE - 1].rsplit(' ', 1)[0]}…"


# --- remedies, with commands to copy ----------------------------------------------------------------


def split_commands(text: str) -> list[tuple[bool, str]]:
    """Split text into pieces, in order: (True for a command, its words)."""
    found: list[tuple[bool, str]] = []
    end = 0
    for match in COMMAND.finditer(text):
        bare = match["bare"] or ""
        command = match["quoted"] or bare.rstrip(" .,:")
        found += [(False, text[end : match.start()]), (True, command)]
        # Punctuation behind a bare command belongs to the sentence.
        end = match.end() - (len(bare) - len(command) if bare else 0)
    return [(is_command, words) for is_command, words in [*found, (False, text[end:])] if words]


def split_lines(text: str) -> list[tuple[bool, str]]:
    """Split text into pieces on lines of their own; punctuation stays with the piece that it ends."""
    found = [(command, words if command else words.lstrip(" .,;")) for command, words in split_commands(text)]
    return [(command, words) for command, words in found if words]


def set_commands(text: str) -> SafeString:
    """Render the sentence with its commands as code; everything else as plain text."""
    parts = [format_html("<code>{}</code>" if command else "{}", words) for command, words in split_commands(text)]
    return mark_safe("".join(parts))  # noqa: S308 - each part is escaped

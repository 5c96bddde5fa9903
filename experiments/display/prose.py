"""Untrusted words and programs as safe HTML. Knows no event and no page; called by the template filters.

Markdown without HTML, links or images: what a model writes can format text and nothing else. What people say to each
other is no Markdown: paragraphs, links, `code`, and the names of those they mean.
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

LONGEST = 100_000
"""Characters beyond which text is shown as it is: nobody reads it formatted."""
OPTIONS = r"(?: +--[\w-]+(?: +(?:\"[^\"\n]*\"|'[^'\n]*'))?)*"
COMMAND = re.compile(
    r"`(?P<quoted>[^`\n]+)`|\b(?P<bare>hf download [\w./-]+" + OPTIONS + r"|hf auth login"
    r"|(?:python )?manage\.py [^\n;)]+|pip install [^\n;)]+)"
)
"""What stands between backquotes, or begins like a command."""


def prose(text: str, heading: str = "h4") -> SafeString:
    """Markdown as HTML of paragraphs, lists, tables, quotes and code; all headings as of this tag."""
    if len(text) > LONGEST:
        return mark_safe(f"<pre>{escape(text)}</pre>")  # noqa: S308 - escaped
    parser = markdown()
    tokens = parser.parse(text)
    for token in tokens:
        token.attrs.pop("style", None)  # the policy of the page allows no inline style
        if token.tag in HEADINGS:
            token.tag = heading  # the page's own outline stays what it is
    return mark_safe(parser.renderer.render(tokens, parser.options, {}))  # noqa: S308 - html is off


def highlight(code: str) -> SafeString:
    """A Python program as spans with classes that `code.css` colours."""
    if len(code) > LONGEST:
        return mark_safe(escape(code))  # noqa: S308 - escaped
    return mark_safe(paint(code, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)))  # noqa: S308 - escaped by it


HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


@cache
def markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "highlight": _render_fence})
    return parser.enable("table").disable(["link", "image", "autolink", "reference", "html_inline", "html_block"])


def _render_fence(code: str, language: str, _: str) -> str:
    """Python fences are coloured, all others come plain."""
    return str(highlight(code)) if language in {"python", "py"} else ""


# --- what people say ---------------------------------------------------------------------------------

CODE = re.compile(r"`(?P<code>[^`\n]+)`")
LINK = re.compile(r"(?P<link>https?://[^\s<>\"'`]+)")
MENTION = re.compile(r"(?<![\w@.])@(?P<name>\w[\w.@+-]{0,149})")
PIECE = re.compile("|".join(each.pattern for each in (CODE, LINK, MENTION)))
AFTER_A_NAME = ".@+-_"
AFTER_A_LINK = ".,;:!?)]}*"


def render_words(text: str, names: Collection[str] = ()) -> SafeString:
    """A person's words as paragraphs; only these `names` count as people who are mentioned."""
    paragraphs = re.split(r"\n[ \t]*\n\s*", text.strip().replace("\r\n", "\n"))
    html = ("<br>".join(_render_line(line, names) for line in each.split("\n")) for each in paragraphs)
    return mark_safe("".join(f"<p>{each}</p>" for each in html))  # noqa: S308 - `_render_line` escapes


def _render_line(line: str, names: Collection[str]) -> str:
    """A line as HTML: what is neither link, code nor a name stays as it was written."""
    html, end = "", 0
    for match in PIECE.finditer(line):
        html += escape(line[end : match.start()]) + _render_piece(match, names)
        end = match.end()
    return html + escape(line[end:])


def _render_piece(match: re.Match[str], names: Collection[str]) -> str:
    if code := match["code"]:
        return f"<code>{escape(code)}</code>"
    if link := match["link"]:
        address = link.rstrip(AFTER_A_LINK)
        rest = escape(link[len(address) :])
        return f'<a href="{escape(address)}" rel="nofollow noopener noreferrer">{escape(address)}</a>{rest}'
    name = next((way for way in spellings(match["name"]) if way in names), "")
    rest = escape(match["name"][len(name) :])
    return f'<b class="mention">@{escape(name)}</b>{rest}' if name else f"@{rest}"


def spellings(name: str) -> list[str]:
    """What was written after the @, and what is left of it without the full stop of a sentence."""
    return [name, name.rstrip(AFTER_A_NAME)]


# --- the first sentence ------------------------------------------------------------------------------

LONGEST_SENTENCE, SHORT = 260, 40
"""Characters of the one sentence; one that is as short says little alone."""
SENTENCE = re.compile(
    r"(?<=[.!?。！？])[\s*_`\"”]+(?=[^a-z\s])|(?<=[。！？])|\n\s*\n|\n(?=\s*[-•*]\s)"  # noqa: RUF001 - as they are written
)
MARKS = re.compile(r"(^|\s)(#+|[*_`]{1,3})(?=\S)|(?<=\S)[*_`]{1,3}(?=\W|$)")
"""Of Markdown: one sentence alone needs none."""
ITEM = re.compile(r"^\s*[-•*]\s+")
"""What begins an item of a list."""


def first_sentence(text: str) -> str:
    """The first sentence of what was concluded, without marks of Markdown, and the next where it says little; cut where
    it does not end."""
    parts = (ITEM.sub("", each) for each in SENTENCE.split(text.strip(), maxsplit=2))
    sentences = [" ".join(MARKS.sub(r"\1", each).split()) for each in parts]
    words = " ".join(sentences[: 1 if len(sentences[0]) > SHORT else 2])
    return words if len(words) <= LONGEST_SENTENCE else f"{words[: LONGEST_SENTENCE - 1].rsplit(' ', 1)[0]}…"


# --- what is missing, with commands to copy ---------------------------------------------------------


def split_commands(text: str) -> list[tuple[bool, str]]:
    """The text in order: (whether it is a command, its words)."""
    found: list[tuple[bool, str]] = []
    end = 0
    for match in COMMAND.finditer(text):
        bare = match["bare"] or ""
        command = match["quoted"] or bare.rstrip(" .,:")
        found += [(False, text[end : match.start()]), (True, command)]
        end = match.end() - (len(bare) - len(command) if bare else 0)
    return [(is_command, words) for is_command, words in [*found, (False, text[end:])] if words]


def split_lines(text: str) -> list[tuple[bool, str]]:
    """The same where each piece stands on a line of its own: no line begins with what ends the sentence before it."""
    found = [(command, words if command else words.lstrip(" .,;")) for command, words in split_commands(text)]
    return [(command, words) for command, words in found if words]


def set_commands(text: str) -> SafeString:
    """The sentence with its commands set as code; whatever else is in it is plain text."""
    parts = [format_html("<code>{}</code>" if command else "{}", words) for command, words in split_commands(text)]
    return mark_safe("".join(parts))  # noqa: S308 - each part is escaped

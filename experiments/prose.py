"""Untrusted words and programs as safe HTML. Knows no event and no page; called by the template filters.

Markdown without HTML, links or images: what a model writes can format text and nothing else.
"""

from __future__ import annotations

from functools import cache

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from pygments import highlight as paint
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

LONGEST = 100_000
"""Characters beyond which text is shown as it is: nobody reads it formatted."""


def prose(text: str) -> SafeString:
    """Markdown as HTML of paragraphs, lists, tables, quotes and code."""
    if len(text) > LONGEST:
        return mark_safe(f"<pre>{escape(text)}</pre>")  # noqa: S308 - escaped
    parser = markdown()
    tokens = parser.parse(text)
    for token in tokens:
        token.attrs.pop("style", None)  # the policy of the page allows no inline style
        if token.tag in HEADINGS:
            token.tag = "h4"  # the page's own outline stays what it is
    return mark_safe(parser.renderer.render(tokens, parser.options, {}))  # noqa: S308 - html is off


def highlight(code: str) -> SafeString:
    """A Python program as spans with classes that `code.css` colours."""
    if len(code) > LONGEST:
        return mark_safe(escape(code))  # noqa: S308 - escaped
    return mark_safe(paint(code, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)))  # noqa: S308 - escaped by it


HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


@cache
def markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "highlight": fence})
    return parser.enable("table").disable(["link", "image", "autolink", "reference", "html_inline", "html_block"])


def fence(code: str, language: str, _: str) -> str:
    """Python fences are coloured, all others come plain."""
    return str(highlight(code)) if language in {"python", "py"} else ""

"""Load the site's templates without the line breaks and indentation that only their readers need."""

from __future__ import annotations

import re

from django.template import Origin
from django.template.loaders.filesystem import Loader as FilesystemLoader

BLOCKS = (
    "article|aside|base|blockquote|body|datalist|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|"
    "head|header|hr|html|legend|li|link|main|meta|nav|ol|optgroup|option|p|pre|script|search|section|summary|table|"
    "tbody|td|template|tfoot|th|thead|title|tr|ul|g|path|circle|rect|line"
)
"""Elements beside which white space is not drawn."""

_DJANGO = r"\{%.*?%\}|\{\{.*?\}\}"
_TAG = re.compile(rf"\s*(</?(?:{BLOCKS})\b(?:{_DJANGO}|\"[^\"]*\"|[^>\"{{])*>)\s*")
_BREAK = re.compile(r"\s*\n\s*")
_TAG_END = re.compile(r"\s*\n\s*>")
_VERBATIM = re.compile(r"(<pre\b.*?</pre>|<textarea\b.*?</textarea>)", re.DOTALL)


class Loader(FilesystemLoader):
    """Read a template, and close it up unless templates are debugged."""

    def get_contents(self, origin: Origin) -> str:
        source: str = super().get_contents(origin)
        # Error pages of a debugged template name its lines, which must keep their numbers.
        return source if self.engine.debug else close_up(source)


def close_up(source: str) -> str:
    """Replace each line break and the white space around it by one space, beside blocks by nothing. The contents of
    `<pre>` and `<textarea>` stay."""
    # `split` puts the elements that stay at odd places.
    pieces = enumerate(_VERBATIM.split(source))
    return "".join(piece if number % 2 else _join_lines(piece) for number, piece in pieces)


def _join_lines(source: str) -> str:
    # Ends of tags first: a line break before ">" would become a space inside the tag.
    return _TAG.sub(r"\1", _BREAK.sub(" ", _TAG_END.sub(">", source)))

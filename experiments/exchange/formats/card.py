"""Write README.md of a dataset: the YAML head that `datasets` reads, and a table of all columns."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.exchange.formats.column_words import COLUMN_WORDS
from experiments.models import ExportSubject

_TEXT = """\
# Experiments on vision models

Exported from MAIA Web: images that were shown to units of vision models, what the units answered, and what agents and
people concluded. Chosen were: {chosen}.

```python
from datasets import load_dataset

{loads}
```

No license is stated. Before you publish this folder, say which one holds for its images and texts.
"""
_WHOLE = """\

`{folder}` holds the runs whole, with every message and program. `datasets` leaves it alone; the import of MAIA Web
takes the runs from the zip of this folder.
"""


def write_card(head: str, chosen: str, counts: Mapping[ExportSubject, int], bundle: str = "") -> str:
    """Return the text of the card. `counts` holds the rows of each table, `head` is YAML, `bundle` is the folder of
    full runs or ""."""
    # The first table is the default configuration, which needs no name
    first = next(iter(counts))
    loads = [f'{first} = load_dataset("this folder", split="train")']
    loads += [f'{what} = load_dataset("this folder", "{what}", split="train")' for what in counts if what != first]
    parts = [f"---\n{head.strip()}\n---\n\n", _TEXT.format(chosen=_escape(chosen), loads="\n".join(loads))]
    parts += [_describe_table(what, count) for what, count in counts.items()]
    return "".join([*parts, _WHOLE.format(folder=bundle) if bundle else ""])


def _describe_table(what: ExportSubject, count: int) -> str:
    lines = [f"| `{name}` | {words} |" for name, words in COLUMN_WORDS[what].items()]
    return f"\n## {what.label}\n\n{count:,} rows.\n\n| column | what it holds |\n|---|---|\n" + "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    """Return the filter on one line, with Markdown characters escaped."""
    return " ".join("".join(f"\\{letter}" if letter in "\\`*_[]<>#|!" else letter for letter in text).split())

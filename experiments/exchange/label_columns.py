"""Find the columns of a label file by the headers that published methods and our export write."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from experiments.exchange.safe_zip import ExchangeError

LAYER = ("layer", "layername", "layerid", "module")
UNIT = ("unit", "neuron", "channel", "feature", "unitid", "neuronid", "unitnumber", "unitindex", "neuronindex", "index")
_UNIT_LAST = ("group",)
"""Taken for the unit only if no other column fits. FALCON calls it so."""
TEXT = ("description", "label", "caption", "explanation", "annotation", "text", "summary", "concept", "prediction")
_LISTS = ("conceptsetnounphrases", "conceptsetwords")
"""FALCON's columns: lists of (word, score)."""
_NUMBERED = re.compile(r"(label|description|caption|candidate)[0-9]{1,2}")
_OWN = ("model", "layer", "unit", "label", "source", "run", "position", "scores", "units")
"""Columns of our own export of labels."""
PLACED = ("model", "layer", "unit", "description", "source", "position", "scores")
"""Columns of our export for CoSy."""
_NEURONPEDIA = ("modelid", "layer", "index", "description", "typename", "position", "scores")
"""The same columns in our export for Neuronpedia. Neuronpedia's own files have no position."""
_MAX_COLUMNS = 100


@dataclass(frozen=True)
class Columns:
    """Positions of the columns. `layer` is None if the file has no such column."""

    names: Sequence[str]
    layer: int | None
    unit: int
    texts: Sequence[int]
    own: bool = False
    """True if our own export wrote the file, which then has model, source, position and scores."""
    placed: Mapping[str, int] = field(default_factory=dict)
    """Positions by column name, if our export for another tool wrote the file."""

    def place(self, name: str) -> int:
        """Return the position of a column of our own export."""
        return [bare(each) for each in self.names].index(name)


def find_columns(names: Sequence[str], layer: str) -> Columns:
    """Find the columns. `layer` is the layer typed in the form, or "". Raises ExchangeError if the header has no unit,
    no label, or neither column nor form names the layer."""
    if len(names) > _MAX_COLUMNS:
        raise ExchangeError(
            f"The file has {len(names):,} columns, at most {_MAX_COLUMNS} are possible: leave some out."
        )
    there = [bare(name) for name in names]
    of_layer = next((there.index(name) for name in LAYER if name in there), None)
    if of_layer is None and not layer:
        raise _describe_missing(names, "layer", "Call it layer, or say of which layer all units are")
    if of_layer is not None and layer:
        raise ExchangeError(f"The column {names[of_layer][:40]!r} names the layers. Leave the field Layer empty.")
    unit = next((there.index(name) for name in (*UNIT, *_UNIT_LAST) if name in there), None)
    if unit is None:
        raise _describe_missing(names, "unit", "Call it unit")
    # A column with a full name beats numbered ones, such as label1 and label2
    one = [there.index(name) for name in (*TEXT, *_LISTS) if name in there][:1]
    texts = one or [place for place, name in enumerate(there) if _NUMBERED.fullmatch(name)]
    if not texts:
        raise _describe_missing(names, "description", "Call it description")
    ours = next((dialect for dialect in (PLACED, _NEURONPEDIA) if set(dialect) <= set(there)), ())
    placed = {name: there.index(called) for name, called in zip(PLACED, ours, strict=False)}
    return Columns(names, of_layer, unit, texts, own=set(_OWN) <= set(there), placed=placed)


def bare(name: str) -> str:
    """Normalize a header: "Layer Name" -> "layername"."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _describe_missing(names: Sequence[str], what: str, remedy: str) -> ExchangeError:
    there = ", ".join(name[:40] for name in names[:12]) or "none"
    return ExchangeError(f"No column names the {what}. {remedy}; the columns are: {there}.")

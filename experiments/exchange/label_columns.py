"""Which column of a file of labels holds what: found by the headers that the methods of the field write, and our own.

Used by `label_rows`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from experiments.exchange.safe_zip import ExchangeError

LAYER = ("layer", "layername", "layerid", "module")
UNIT = ("unit", "neuron", "channel", "feature", "unitid", "neuronid", "unitnumber", "unitindex", "neuronindex", "index")
_UNIT_LAST = ("group",)
"""Taken for the unit where nothing else is: so FALCON calls it."""
TEXT = ("description", "label", "caption", "explanation", "annotation", "text", "summary", "concept", "prediction")
_LISTS = ("conceptsetnounphrases", "conceptsetwords")
"""Columns of FALCON: lists of (word, score)."""
_NUMBERED = re.compile(r"(label|description|caption|candidate)[0-9]{1,2}")
_OWN = ("model", "layer", "unit", "label", "source", "run", "position", "scores", "units")
"""The columns of our own export of labels."""
PLACED = ("model", "layer", "unit", "description", "source", "position", "scores")
"""The columns of our export as CoSy reads it."""
_NEURONPEDIA = ("modelid", "layer", "index", "description", "typename", "position", "scores")
"""The same in our export for Neuronpedia, whose own files have no position."""
_MAX_COLUMNS = 100


@dataclass(frozen=True)
class Columns:
    """Which column holds what; `layer` is None where the file names none."""

    names: Sequence[str]
    layer: int | None
    unit: int
    texts: Sequence[int]
    own: bool = False
    """Whether our own export wrote them, which says model, source, position and scores as well."""
    placed: Mapping[str, int] = field(default_factory=dict)
    """The columns by name, where our export for another tool wrote them."""

    def place(self, name: str) -> int:
        """Of a column of our own export."""
        return [bare(each) for each in self.names].index(name)


def find_columns(names: Sequence[str], layer: str) -> Columns:
    """`layer` is what was said beside the file, "" if nothing was. Raises ExchangeError for a header that names no
    unit, no label, or no layer where none was said."""
    if len(names) > _MAX_COLUMNS:
        raise ExchangeError(
            f"The file has {len(names):,} columns, at most {_MAX_COLUMNS} are possible: leave some out."
        )
    there = [bare(name) for name in names]
    of_layer = next((there.index(name) for name in LAYER if name in there), None)
    if of_layer is None and not layer:
        raise _missing(names, "layer", "Call it layer, or say of which layer all units are")
    if of_layer is not None and layer:
        raise ExchangeError(
            f"The column {names[of_layer][:40]!r} names the layers: say no other layer beside the file."
        )
    unit = next((there.index(name) for name in (*UNIT, *_UNIT_LAST) if name in there), None)
    if unit is None:
        raise _missing(names, "unit", "Call it unit")
    one = [there.index(name) for name in (*TEXT, *_LISTS) if name in there][:1]
    texts = one or [place for place, name in enumerate(there) if _NUMBERED.fullmatch(name)]
    if not texts:
        raise _missing(names, "description", "Call it description")
    ours = next((dialect for dialect in (PLACED, _NEURONPEDIA) if set(dialect) <= set(there)), ())
    placed = {name: there.index(called) for name, called in zip(PLACED, ours, strict=False)}
    return Columns(names, of_layer, unit, texts, own=set(_OWN) <= set(there), placed=placed)


def bare(name: str) -> str:
    """A header without what people write differently: "Layer Name" -> "layername"."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _missing(names: Sequence[str], what: str, remedy: str) -> ExchangeError:
    there = ", ".join(name[:40] for name in names[:12]) or "none"
    return ExchangeError(f"No column names the {what}. {remedy}; the columns are: {there}.")

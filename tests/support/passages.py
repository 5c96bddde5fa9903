"""Passages to find."""

from __future__ import annotations

from experiments.core.search_index import texts
from experiments.core.search_index.texts import passage_of
from experiments.models import Run, SearchText


def say(run: Run, *pieces: str, kind: str = "title") -> list[int]:
    """Passages of one run, oldest first; their keys."""
    texts.write(passage_of(run, (kind, None, text), seq=1) for text in pieces)
    return list(SearchText.objects.order_by("-pk").values_list("pk", flat=True)[: len(pieces)])[::-1]

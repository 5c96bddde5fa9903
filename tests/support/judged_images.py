"""Checks that wait for people to say what images show, as a worker leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.label_checks.questions import describe_waiting
from experiments.models import CheckStatus, Image, LabelCheck, Unit


def make_waiting(
    unit: Unit, text: str = "red balls", natural: int = 3, known: int = 1, judges: int = 1, keys: Sequence[str] = ()
) -> LabelCheck:
    """Natural images, and so many known cases of either kind behind them; `keys` of stored images, or of such as are
    not in the store."""
    options: Any = {"toolset": "toybox", "writer": "toybox", "judge": "people", "judges": judges, "seed": 0}
    key = f"{LabelCheck.objects.count():064x}"
    check = LabelCheck.objects.create(
        key=key, unit=unit, text=text, dataset="toybox", options=options, waits_for_people=True
    )
    kinds = [None] * natural + [True, False] * known
    for position, expected in enumerate(kinds, 1):
        image = keys[position - 1] if keys else f"{check.pk * 1000 + position:064x}"
        Image.objects.get_or_create(key=image, defaults={"width": 8, "height": 8, "origin": "external"})
        place = position if expected is None else None
        check.questions.create(position=position, image_id=image, probe_position=place, expected=expected)
    LabelCheck.objects.filter(pk=check.pk).update(status=CheckStatus.UNFINISHED, reason=describe_waiting(check))
    check.refresh_from_db()
    return check

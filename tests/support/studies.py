"""Studies of a run and a unit, and links to them."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from experiments.models import Run, Share, Study, Unit
from tests.support.shared_run import Link


def make_study(owner: User, run: Run | None = None, unit: Unit | None = None, title: str = "What it likes") -> Study:
    """A study with these items, the run first."""
    row = Study.objects.create(owner=owner, title=title, text="All of it.")
    if run:
        row.items.create(position=1, run=run, caption="asked")
    if unit:
        named = {"model": unit.layer.model.name, "layer": unit.layer.name, "number": unit.number}
        row.items.create(position=2, unit=unit, caption="looked at", **named)
    return row


def make_study_ids(owner: User, run: Run, unit: Unit) -> dict[str, int]:
    """What stands in addresses of a study, of an item of it, and of a link to it."""
    row = make_study(owner, run, unit)
    item = row.items.earliest("pk").pk
    return {"study": row.pk, "study_item": item, "study_share": link_study(row).share.pk}


def link_study(study: Study, days: float = 7, *, names: bool = False) -> Link:
    expires = timezone.now() + timedelta(days=days)
    return Link(*Share.issue(study, study.owner, expires, names=names, comments=False))

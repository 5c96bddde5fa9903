"""Record which scenes of the week are over, in a file of the state folder; and move times back to a scene's own day.

The audit is not moved: its records are never changed, so it tells when the demo was really made.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

from django.apps import apps
from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models import F
from django.utils import timezone

STAYS = frozenset({"auditentry", "codeversion", "run_queue", "job", "loginlink", "session"})
"""Rows whose times are kept: those about this machine, and those that workers depend on."""


class Diary:
    """The file `demo.json`."""

    def __init__(self, state: Path) -> None:
        self.path = state / "demo.json"
        self.began: dict[str, str] = {}
        """Scene -> when it began, of those under way or over."""
        self.over: list[str] = []
        if self.path.exists():
            kept = json.loads(self.path.read_text())
            self.began, self.over = kept["began"], kept["over"]

    @property
    def is_there(self) -> bool:
        return self.path.exists()

    def begin(self, scene: str) -> datetime:
        """Return when it began; now, unless it was begun before and interrupted."""
        began = self.began.setdefault(scene, timezone.now().isoformat())
        self.write()
        return datetime.fromisoformat(began)

    def end(self, scene: str) -> None:
        self.over.append(scene)
        self.write()

    def write(self) -> None:
        # Written beside and renamed, so that an interruption leaves a whole file.
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({"began": self.began, "over": self.over}, indent=1) + "\n")
        fresh.replace(self.path)


def move_back(began: datetime, ending: datetime) -> None:
    """Move everything that happened from `began` until now, so that it ended then; earlier rows stay."""
    distance = timezone.now() - ending
    kinds: list[type[models.Model]] = [
        each for each in apps.get_app_config("experiments").get_models() if each._meta.model_name not in STAYS
    ]
    # Accounts are Django's, but their dates of joining belong to the week.
    kinds.append(User)
    with transaction.atomic():
        for kind in kinds:
            for column in kind._meta.concrete_fields:
                if isinstance(column, models.DateTimeField):
                    # Earlier rows have been moved to their own days already.
                    rows = kind._default_manager.filter(**{f"{column.name}__gte": began})
                    rows.update(**{column.name: F(column.name) - distance})


def day_before(days: int, hour: int) -> datetime:
    """Return that hour, UTC, this many days ago; for today, an hour ago."""
    now = timezone.now()
    if not days:
        # A fixed hour of today may still be ahead.
        return now - timedelta(hours=1)
    return (now - timedelta(days=days)).replace(hour=hour, minute=12, second=0)

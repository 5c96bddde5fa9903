"""Who wants a run paused; what a fork begins with."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    dependencies: ClassVar = [("experiments", "0010_audit_and_sharing")]

    operations: ClassVar[list[Operation]] = [
        migrations.AddField(
            "run",
            "pause_requested",
            models.CharField(blank=True, default="", help_text="who wants it paused before its next round", max_length=310),
            preserve_default=False,
        ),
        migrations.AddField(
            "run",
            "fork_plan",
            models.JSONField(
                blank=True, default=dict, help_text="who forked it, up to which event of its parent, with which changes"
            ),
        ),
    ]

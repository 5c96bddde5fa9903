"""Who wants a run paused."""

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
            models.CharField(blank=True, default="", help_text="who wants it paused before its next round", max_length=150),
            preserve_default=False,
        ),
    ]

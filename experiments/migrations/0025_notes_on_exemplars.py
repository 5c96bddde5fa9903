"""What to know of a unit's exemplars, in words."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    dependencies: ClassVar = [("experiments", "0024_audit_kept_whole")]

    operations: ClassVar[list[Operation]] = [
        migrations.AddField(
            model_name="profile",
            name="note",
            field=models.TextField(
                blank=True, help_text="what to know of the exemplars: published ones of other weights"
            ),
        ),
    ]

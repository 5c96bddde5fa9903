"""Indexes for pages that stay quick however many runs there are."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    dependencies: ClassVar = [("experiments", "0015_comments")]

    operations: ClassVar[list[Operation]] = [
        migrations.RemoveIndex(model_name="run", name="runs_of_a_unit"),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["model", "layer", "unit", "status"], name="runs_of_a_unit"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["model", "layer", "unit", "-created", "-id"], name="newest_runs_of_a_unit"),
        ),
    ]

"""Which weights a model has, in words."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    dependencies: ClassVar = [("experiments", "0016_pages")]

    operations: ClassVar[list[Operation]] = [
        migrations.AddField(
            model_name="model",
            name="about",
            field=models.TextField(blank=True, help_text="which weights they are, as far as the worker could tell"),
        ),
    ]

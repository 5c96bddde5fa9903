"""Observations keep what was measured apart from what the program claimed. Of those before, nobody knows it."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    dependencies: ClassVar = [("experiments", "0019_verdicts")]

    operations: ClassVar[list[Operation]] = [
        migrations.AlterField(
            model_name="observation",
            name="activation",
            field=models.FloatField(
                help_text="what the system returned; what the program claimed if nobody measured it"
            ),
        ),
        migrations.AddField(
            model_name="observation",
            name="claimed",
            field=models.FloatField(help_text="what the program logged; empty if it named no number", null=True),
        ),
        migrations.AddField(
            model_name="observation",
            name="measured",
            field=models.BooleanField(
                db_default=False, default=False, help_text="whether the system returned `activation`"
            ),
        ),
        migrations.AddField(
            model_name="observation",
            name="differs",
            field=models.BooleanField(db_default=False, default=False, help_text="whether the claim is another number"),
        ),
        migrations.AddIndex(
            model_name="observation",
            index=models.Index(
                condition=models.Q(("differs", True)),
                fields=["experiment", "position", "run"],
                name="observations_that_differ",
            ),
        ),
    ]

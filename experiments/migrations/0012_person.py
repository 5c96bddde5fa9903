"""What a person writes in a round."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("experiments", "0011_steering"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.CreateModel(
            name="Turn",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("round", models.PositiveIntegerField()),
                (
                    "what",
                    models.CharField(
                        choices=[("experiment", "Experiment"), ("conclusion", "Conclusion")],
                        default="experiment",
                        max_length=10,
                    ),
                ),
                ("prose", models.TextField(blank=True)),
                (
                    "hypotheses",
                    models.JSONField(blank=True, default=list, help_text="[{number, text, fate, reason}, …]"),
                ),
                ("program", models.TextField(blank=True)),
                ("description", models.TextField(blank=True)),
                ("labels", models.TextField(blank=True, help_text="one a line")),
                ("reasoning", models.TextField(blank=True)),
                ("bias", models.TextField(blank=True)),
                (
                    "version",
                    models.PositiveIntegerField(
                        default=0, help_text="counts what was saved, so that two tabs are told apart"
                    ),
                ),
                ("saved", models.DateTimeField(default=django.utils.timezone.now)),
                ("sent", models.DateTimeField(blank=True, null=True)),
                (
                    "stopped_by",
                    models.CharField(blank=True, help_text="who stopped its program while it ran", max_length=150),
                ),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="turns",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="turns", to="experiments.run"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "round", "author"), name="one_draft_for_each_person_and_round"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("sent__isnull", False)),
                        fields=("run", "round"),
                        name="one_reply_for_each_round",
                    ),
                ],
            },
        ),
    ]

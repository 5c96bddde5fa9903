"""What reviewers made of a run stands on the run; final verdicts; when a reviewer was shown the opinions of others."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.operations.base import Operation

VERDICTS = [("accept", "Accept"), ("revise", "Revise"), ("reject", "Reject")]
OUTCOMES = [("accept", "Accepted"), ("revise", "To be revised"), ("reject", "Rejected"), ("split", "Disputed")]


def project(apps: Any, schema_editor: Any) -> None:
    """The verdicts of the reviews that there are: of each reviewer the newest; more than half, else split."""
    del schema_editor
    Review, Run = apps.get_model("experiments", "Review"), apps.get_model("experiments", "Run")
    is_open = models.Q(item__complete=True) | models.Q(item__queue__closed__isnull=False)
    rows = Review.objects.filter(is_open, state="submitted").order_by("submitted", "pk")
    by_run: dict[int, dict[int, str]] = {}
    for run, reviewer, verdict in rows.values_list("item__run_id", "reviewer_id", "verdict").iterator():
        by_run.setdefault(run, {})[reviewer] = verdict
    for run, given in by_run.items():
        verdict, agreeing = Counter(given.values()).most_common(1)[0]
        known: dict[str, Any] = {"verdict": verdict, "verdict_agreeing": agreeing}
        if agreeing * 2 <= len(given):
            known = {"verdict": "split", "verdict_agreeing": 0}
        Run.objects.filter(pk=run).update(verdict_opinions=len(given), **known)


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("experiments", "0018_layer_scale"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.CreateModel(
            name="Adjudication",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("verdict", models.CharField(choices=VERDICTS, max_length=8)),
                ("corrected_label", models.CharField(blank=True, max_length=500)),
                ("reason", models.TextField(help_text="why, for the author and the reviewers")),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="adjudications",
                        to="experiments.item",
                    ),
                ),
                (
                    "adjudicator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={"ordering": ["-pk"]},
        ),
        migrations.AddField(
            model_name="review",
            name="opinions_shown",
            field=models.DateTimeField(
                blank=True,
                help_text="when the reviewer, having submitted, first saw what others say of the item",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="verdict",
            field=models.CharField(blank=True, choices=OUTCOMES, default="", max_length=8),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="run",
            name="verdict_final",
            field=models.BooleanField(default=False, help_text="whether one person settled it, with a reason"),
        ),
        migrations.AddField(
            model_name="run",
            name="verdict_opinions",
            field=models.PositiveSmallIntegerField(default=0, help_text="submitted opinions of the run"),
        ),
        migrations.AddField(
            model_name="run",
            name="verdict_agreeing",
            field=models.PositiveSmallIntegerField(default=0, help_text="of these, those with this verdict"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(verdict="", _negated=True), fields=["verdict", "-id"], name="reviewed_runs"
            ),
        ),
        migrations.RunPython(project, migrations.RunPython.noop),
    ]

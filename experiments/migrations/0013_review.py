"""Queues of runs to review, their items, and the reviews."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("experiments", "0012_person"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.CreateModel(
            name="Queue",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("note", models.TextField(blank=True, help_text="what reviewers are to look at")),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "filters",
                    models.TextField(blank=True, help_text="what was chosen, as in the address of the Runs page"),
                ),
                ("reviewers_per_item", models.PositiveSmallIntegerField(default=1)),
                (
                    "blind",
                    models.BooleanField(default=True, help_text="no opinion is seen before one's own is submitted"),
                ),
                ("closed", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="review_queues",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "reviewers",
                    models.ManyToManyField(blank=True, related_name="assigned_queues", to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={
                "ordering": ["-created", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="Item",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveIntegerField(help_text="counts the queue's items from 1")),
                (
                    "seen_seq",
                    models.PositiveIntegerField(default=0, help_text="the run's last event when it was queued"),
                ),
                ("complete", models.BooleanField(default=False)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="review_items", to="experiments.run"
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="experiments.queue",
                    ),
                ),
            ],
            options={
                "ordering": ["queue", "position"],
            },
        ),
        migrations.CreateModel(
            name="Review",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slot", models.PositiveSmallIntegerField(blank=True, null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[("draft", "Draft"), ("submitted", "Submitted"), ("declined", "Declined")],
                        default="draft",
                        max_length=10,
                    ),
                ),
                ("supported", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("specific", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("complete", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("confounds", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("samples", models.PositiveSmallIntegerField(blank=True, null=True)),
                (
                    "verdict",
                    models.CharField(
                        blank=True,
                        choices=[("accept", "Accept"), ("revise", "Revise"), ("reject", "Reject")],
                        max_length=8,
                    ),
                ),
                ("corrected_label", models.CharField(blank=True, max_length=500)),
                ("note", models.TextField(blank=True)),
                ("reason", models.TextField(blank=True, help_text="why it was declined")),
                (
                    "seq",
                    models.PositiveIntegerField(default=0, help_text="the run's last event that the reviewer has seen"),
                ),
                (
                    "version",
                    models.PositiveIntegerField(
                        default=1, help_text="raised by every change, so that none is overwritten"
                    ),
                ),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("saved", models.DateTimeField(default=django.utils.timezone.now)),
                ("submitted", models.DateTimeField(blank=True, null=True)),
                ("reserved_until", models.DateTimeField(blank=True, null=True)),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reviews",
                        to="experiments.item",
                    ),
                ),
                (
                    "reviewer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["item", "pk"],
            },
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(
                condition=models.Q(("complete", False)), fields=["queue", "position"], name="items_to_review"
            ),
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(fields=["queue", "complete"], name="items_complete"),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.UniqueConstraint(fields=("queue", "run"), name="one_item_per_run"),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.UniqueConstraint(fields=("queue", "position"), name="one_item_per_position"),
        ),
        migrations.AddIndex(
            model_name="review",
            index=models.Index(fields=["reviewer", "state", "submitted"], name="reviews_of_a_reviewer"),
        ),
        migrations.AddIndex(
            model_name="review",
            index=models.Index(
                condition=models.Q(("state", "draft")), fields=["reserved_until"], name="reviews_under_way"
            ),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.UniqueConstraint(fields=("item", "reviewer"), name="one_review_per_reviewer"),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.UniqueConstraint(fields=("item", "slot"), name="one_review_per_slot"),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.CheckConstraint(
                condition=models.Q(("supported__isnull", True), ("supported__range", (1, 5)), _connector="OR"),
                name="review_supported_1_to_5",
            ),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.CheckConstraint(
                condition=models.Q(("specific__isnull", True), ("specific__range", (1, 5)), _connector="OR"),
                name="review_specific_1_to_5",
            ),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.CheckConstraint(
                condition=models.Q(("complete__isnull", True), ("complete__range", (1, 5)), _connector="OR"),
                name="review_complete_1_to_5",
            ),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.CheckConstraint(
                condition=models.Q(("confounds__isnull", True), ("confounds__range", (1, 5)), _connector="OR"),
                name="review_confounds_1_to_5",
            ),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.CheckConstraint(
                condition=models.Q(("samples__isnull", True), ("samples__range", (1, 5)), _connector="OR"),
                name="review_samples_1_to_5",
            ),
        ),
    ]

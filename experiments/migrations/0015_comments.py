"""Comments on runs and what is in them, notifications; tags on experiments and observations."""

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
        ("experiments", "0014_choices"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.AddField(
            model_name="tag",
            name="experiments",
            field=models.ManyToManyField(blank=True, related_name="tags", to="experiments.experiment"),
        ),
        migrations.AddField(
            model_name="tag",
            name="observations",
            field=models.ManyToManyField(blank=True, related_name="tags", to="experiments.observation"),
        ),
        migrations.CreateModel(
            name="Thread",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "on",
                    models.CharField(
                        choices=[
                            ("run", "The run"),
                            ("event", "An event"),
                            ("experiment", "An experiment"),
                            ("image", "An image"),
                            ("words", "Some words"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "seq",
                    models.PositiveIntegerField(
                        help_text="the event, where it hangs on one or on words of it", null=True
                    ),
                ),
                ("quote", models.TextField(blank=True)),
                ("before", models.TextField(blank=True)),
                ("after", models.TextField(blank=True)),
                (
                    "place",
                    models.PositiveIntegerField(default=0, help_text="characters of the event's text before the quote"),
                ),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("resolved", models.DateTimeField(null=True)),
                (
                    "experiment",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="threads",
                        to="experiments.experiment",
                    ),
                ),
                (
                    "observation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="threads",
                        to="experiments.observation",
                    ),
                ),
                (
                    "resolved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="threads", to="experiments.run"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Comment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.TextField()),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("edited", models.DateTimeField(null=True)),
                ("deleted", models.DateTimeField(null=True)),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("mentions", models.ManyToManyField(related_name="mentioned_in", to=settings.AUTH_USER_MODEL)),
                (
                    "thread",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="comments", to="experiments.thread"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Wording",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.TextField()),
                ("replaced", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "comment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="wordings", to="experiments.comment"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("mention", "Mentions"),
                            ("reply", "Replies"),
                            ("run", "Runs of mine"),
                            ("review", "Reviews"),
                        ],
                        max_length=20,
                    ),
                ),
                ("words", models.CharField(max_length=300)),
                ("url", models.CharField(max_length=400)),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("read", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notifications",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(fields=["user", "-id"], name="notifications_of_a_user"),
                    models.Index(condition=models.Q(("read", None)), fields=["user"], name="unread_notifications"),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="thread",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("experiment__isnull", True),
                        ("observation__isnull", True),
                        ("on", "run"),
                        ("seq__isnull", True),
                    ),
                    models.Q(
                        ("experiment__isnull", True),
                        ("observation__isnull", True),
                        ("on", "event"),
                        ("seq__isnull", False),
                    ),
                    models.Q(
                        ("experiment__isnull", False),
                        ("observation__isnull", True),
                        ("on", "experiment"),
                        ("seq__isnull", True),
                    ),
                    models.Q(
                        ("experiment__isnull", False),
                        ("observation__isnull", False),
                        ("on", "image"),
                        ("seq__isnull", True),
                    ),
                    models.Q(
                        ("experiment__isnull", True),
                        ("observation__isnull", True),
                        ("on", "words"),
                        ("seq__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="thread_hangs_somewhere",
            ),
        ),
    ]

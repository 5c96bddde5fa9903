"""Contests of labels, their pairs, judges and choices; work that a backbone does as a judge."""

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
        ("experiments", "0013_review"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.AlterField(
            model_name="job",
            name="kind",
            field=models.CharField(
                choices=[
                    ("model", "Add a model"),
                    ("data_set", "Add a data set"),
                    ("index", "Index"),
                    ("export", "Export"),
                    ("import", "Import"),
                    ("judge", "Judge labels"),
                ],
                max_length=10,
            ),
        ),
        migrations.CreateModel(
            name="Contest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("sources", models.JSONField(help_text="keys of the sources, in the order of the table")),
                (
                    "query",
                    models.TextField(blank=True, help_text="which units, as in the address of the page that made it"),
                ),
                (
                    "gold_share",
                    models.FloatField(default=0.1, help_text="pairs with a known answer, as a share of the plain ones"),
                ),
                (
                    "repeat_share",
                    models.FloatField(
                        default=0.1, help_text="pairs that are shown twice, as a share of the plain ones"
                    ),
                ),
                ("seed", models.BigIntegerField(default=0)),
                (
                    "left_out",
                    models.JSONField(blank=True, default=dict, help_text="why -> how many comparisons are not in it"),
                ),
                ("closed", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="contests",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-created", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="Judge",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("backbone", models.CharField(blank=True, max_length=40)),
                ("backbone_model", models.CharField(blank=True, max_length=200)),
                ("cost_limit", models.FloatField(default=5.0, help_text="US dollars")),
                ("prompt_tokens", models.PositiveBigIntegerField(default=0)),
                ("completion_tokens", models.PositiveBigIntegerField(default=0)),
                ("cost", models.FloatField(default=0.0, help_text="US dollars")),
                (
                    "contest",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="judges",
                        to="experiments.contest",
                    ),
                ),
                (
                    "job",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="judge",
                        to="experiments.job",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["contest", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Pair",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "position",
                    models.PositiveIntegerField(
                        help_text="counts the contest's pairs from 1, in the order they are judged"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("plain", "Two sources"),
                            ("repeat", "Shown again, the other way round"),
                            ("gold", "Known answer"),
                        ],
                        default="plain",
                        max_length=6,
                    ),
                ),
                (
                    "unit_name",
                    models.CharField(
                        help_text="as in toybox / layer4 / unit 7; outlives the catalogue", max_length=500
                    ),
                ),
                (
                    "truth",
                    models.CharField(blank=True, help_text="what a synthetic neuron responds to", max_length=500),
                ),
                ("text_a", models.TextField()),
                ("text_b", models.TextField()),
                ("source_a", models.CharField(max_length=300)),
                ("source_b", models.CharField(max_length=300)),
                (
                    "contest",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pairs",
                        to="experiments.contest",
                    ),
                ),
                (
                    "label_a",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="experiments.label",
                    ),
                ),
                (
                    "label_b",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="experiments.label",
                    ),
                ),
                (
                    "original",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="repeats",
                        to="experiments.pair",
                    ),
                ),
                (
                    "profile",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="experiments.profile",
                    ),
                ),
                (
                    "unit",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="pairs",
                        to="experiments.unit",
                    ),
                ),
            ],
            options={
                "ordering": ["contest", "position"],
            },
        ),
        migrations.CreateModel(
            name="Choice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "answer",
                    models.CharField(
                        choices=[
                            ("a", "The first of the pair"),
                            ("b", "The second of the pair"),
                            ("neither", "Cannot tell"),
                            ("unread", "No answer could be read"),
                        ],
                        max_length=7,
                    ),
                ),
                ("swapped", models.BooleanField()),
                (
                    "seconds",
                    models.FloatField(
                        help_text="from the pair on screen to the answer, as the browser measured", null=True
                    ),
                ),
                ("time", models.DateTimeField(default=django.utils.timezone.now)),
                ("reply", models.TextField(blank=True, help_text="of a backbone, word for word")),
                (
                    "judge",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="choices",
                        to="experiments.judge",
                    ),
                ),
                (
                    "pair",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="choices", to="experiments.pair"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.AddConstraint(
            model_name="judge",
            constraint=models.UniqueConstraint(
                condition=models.Q(("user__isnull", False)), fields=("contest", "user"), name="one_judge_per_person"
            ),
        ),
        migrations.AddConstraint(
            model_name="judge",
            constraint=models.UniqueConstraint(
                condition=models.Q(("user__isnull", True)),
                fields=("contest", "backbone", "backbone_model"),
                name="one_judge_per_backbone",
            ),
        ),
        migrations.AddConstraint(
            model_name="pair",
            constraint=models.UniqueConstraint(fields=("contest", "position"), name="one_pair_per_position"),
        ),
        migrations.AddConstraint(
            model_name="choice",
            constraint=models.UniqueConstraint(fields=("judge", "pair"), name="one_choice_per_pair"),
        ),
    ]

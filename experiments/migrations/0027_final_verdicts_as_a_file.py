"""Exports: final verdicts are one more table."""

from __future__ import annotations

from django.db import migrations, models

WHAT = [
    ("bundle", "Runs, whole"),
    ("runs", "Runs"),
    ("experiments", "Experiments"),
    ("observations", "Observations"),
    ("labels", "Labels"),
    ("reviews", "Reviews"),
    ("verdicts", "Final verdicts"),
    ("agreement", "Agreement of reviewers"),
]


class Migration(migrations.Migration):
    dependencies = [("experiments", "0026_search_of_what_people_said")]
    operations = [
        migrations.AlterField(
            model_name="export", name="what", field=models.CharField(choices=WHAT, max_length=12)
        )
    ]

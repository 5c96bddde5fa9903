"""Which split of its dataset a check measured on. Those that are there were measured before datasets were split."""

from __future__ import annotations

from django.db import migrations, models

HELP = "probe; development for what a run tried; empty if it was measured before datasets were split"


class Migration(migrations.Migration):
    dependencies = [("experiments", "0023_run_score")]

    operations = [
        migrations.AddField(
            "labelcheck", "split", models.CharField(blank=True, default="", help_text=HELP, max_length=11)
        ),
        migrations.AlterField(
            "labelcheck", "split", models.CharField(blank=True, default="probe", help_text=HELP, max_length=11)
        ),
    ]

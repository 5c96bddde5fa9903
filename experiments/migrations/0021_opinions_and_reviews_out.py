"""What people said of an imported run where it took place; reviews and agreement among what is exported."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('experiments', '0020_measured_and_claimed'),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.AlterField(
            model_name='export',
            name='what',
            field=models.CharField(choices=[('bundle', 'Runs, whole'), ('runs', 'Runs'), ('experiments', 'Experiments'), ('observations', 'Observations'), ('labels', 'Labels'), ('reviews', 'Reviews'), ('agreement', 'Agreement of reviewers')], max_length=12),
        ),
        migrations.CreateModel(
            name='Opinions',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('threads', models.JSONField(blank=True, default=list)),
                ('reviews', models.JSONField(blank=True, default=list)),
                ('finals', models.JSONField(blank=True, default=list, help_text='final verdicts, the newest last')),
                ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='opinions', to='experiments.run')),
            ],
            options={
                'verbose_name_plural': 'opinions',
                'ordering': ['pk'],
            },
        ),
    ]

"""Search: passages, gists of runs, the index of each database, and the passages of everything recorded before."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from experiments.core.search_index import backend, texts as passages, sqlite


def create_index(apps, schema_editor):
    backend.of(schema_editor.connection.vendor).create(schema_editor.connection)


def drop_index(apps, schema_editor):
    backend.of(schema_editor.connection.vendor).drop(schema_editor.connection)


def write_passages(apps, schema_editor):
    """Of all runs, in their order; hypotheses that an agent repeats are written once."""
    known = {name: apps.get_model("experiments", name) for name in ("Run", "Event", "Observation", "Passage", "Gist")}
    for run in known["Run"].objects.order_by("pk").iterator(chunk_size=100):
        write(known["Passage"], [passages.question(run)], schema_editor)
        said = set()
        for event in known["Event"].objects.filter(run=run).order_by("seq").iterator(chunk_size=100):
            texts = passages.without_repeats(passages.texts_of(event.kind, event.payload), said)
            if event.kind == "result":
                texts += passages.titles(known["Observation"], run, event.payload["number"])
            write(known["Passage"], passages.of_event(run, event, texts), schema_editor)
        known["Gist"].objects.create(run=run, folded=passages.gist(run))


def write(model, rows, schema_editor):
    names = [field.attname for field in model._meta.fields if not field.primary_key]
    saved = model.objects.bulk_create([model(**{name: getattr(row, name) for name in names}) for row in rows])
    if schema_editor.connection.vendor == "sqlite":
        sqlite.index([(row.pk, row.folded) for row in saved], schema_editor.connection)


class Migration(migrations.Migration):
    dependencies = [("experiments", "0002_data_sets_and_parts")]

    operations = [
        migrations.CreateModel(
            name="Passage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("model", models.CharField(max_length=200)),
                ("layer", models.CharField(max_length=200)),
                ("unit", models.PositiveIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("question", "Question"),
                            ("hypothesis", "Hypothesis"),
                            ("reply", "Reply"),
                            ("code", "Program"),
                            ("output", "Output"),
                            ("title", "Image"),
                            ("description", "Conclusion"),
                            ("label", "Label"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "seq",
                    models.PositiveIntegerField(
                        default=0, help_text="the event it stands in; 0 for questions and labels without one"
                    ),
                ),
                (
                    "anchor",
                    models.BigIntegerField(
                        help_text="number of the experiment, round of the reply; key of the observation or the label",
                        null=True,
                    ),
                ),
                ("time", models.DateTimeField(default=django.utils.timezone.now)),
                ("text", models.TextField()),
                ("folded", models.TextField()),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="passages",
                        to="experiments.run",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(fields=["run", "id"], name="passages_of_a_run"),
                    models.Index(fields=["kind", "id"], name="passages_of_a_kind"),
                    models.Index(fields=["model", "id"], name="passages_of_a_model"),
                    models.Index(fields=["model", "layer", "unit", "id"], name="passages_of_a_unit"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Gist",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="gist",
                        serialize=False,
                        to="experiments.run",
                    ),
                ),
                ("folded", models.TextField()),
            ],
        ),
        migrations.RunPython(create_index, drop_index),
        migrations.RunPython(write_passages, migrations.RunPython.noop),
    ]

"""Observations and experiments hold what the gallery sorts and filters by, with an index for each order."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Count, Max, OuterRef, Subquery
from django.db.models.functions import Coalesce


def fill(apps, schema_editor):
    tables = {name: apps.get_model("experiments", name) for name in ("Event", "Experiment", "Observation")}
    fill_runs_and_figures(tables["Experiment"].objects, tables["Observation"].objects)
    fill_events(tables["Event"].objects, tables["Experiment"])
    fill_changes(tables["Observation"])
    if schema_editor.connection.vendor == "postgresql":  # else no table can be altered before the commit
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def fill_runs_and_figures(experiments, observations):
    owner = experiments.filter(pk=OuterRef("experiment_id")).values("run_id")[:1]
    observations.update(run_id=Subquery(owner))
    logged = observations.filter(experiment_id=OuterRef("pk")).order_by().values("experiment_id")
    experiments.update(
        observation_count=Coalesce(Subquery(logged.annotate(n=Count("pk")).values("n")[:1]), 0),
        best_activation=Subquery(logged.annotate(best=Max("activation")).values("best")[:1]),
    )


def fill_events(events, model):
    """The last event of each experiment is the one that holds its result."""
    told = events.filter(kind__in=["experiment", "result"]).order_by("seq")
    seqs = {}
    for run, seq, number in told.values_list("run_id", "seq", "payload__number").iterator(chunk_size=500):
        seqs[run, number] = seq
    rows = []
    for row in model.objects.only("pk", "run_id", "number").iterator(chunk_size=500):
        row.seq = seqs.get((row.run_id, row.number), 0)
        rows.append(row)
    model.objects.bulk_update(rows, ["seq"], batch_size=500)


def fill_changes(model):
    """An edit is compared with its original in the same experiment, else with what the run logged of it first."""
    rows = []
    for edit in model.objects.exclude(original="").only("pk", "run_id", "experiment_id", "activation", "original"):
        logged = model.objects.filter(run_id=edit.run_id, image_id=edit.original).exclude(pk=edit.pk)
        found = dict(logged.order_by("-pk").values_list("experiment_id", "activation"))
        before = found.get(edit.experiment_id, list(found.values())[-1] if found else None)
        if before is not None:
            edit.change = edit.activation - before
            rows.append(edit)
    model.objects.bulk_update(rows, ["change"], batch_size=500)


COLUMNS = [
    migrations.AddField("experiment", "best_activation", models.FloatField(null=True)),
    migrations.AddField("experiment", "observation_count", models.PositiveIntegerField(default=0)),
    migrations.AddField(
        "experiment",
        "seq",
        models.PositiveIntegerField(
            default=0, help_text="the event that holds its result, or its start until then"
        ),
    ),
    migrations.AddField("image", "has_thumbnails", models.BooleanField(default=False)),
    migrations.AddField(
        "observation",
        "change",
        models.FloatField(null=True, help_text="what the edit did to the activation; empty for all but edits"),
    ),
    migrations.AddField(
        "observation",
        "run",
        models.ForeignKey(
            db_index=False,
            null=True,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="observations",
            to="experiments.run",
        ),
    ),
]
FIRM = [
    migrations.AlterField(
        "observation",
        "run",
        models.ForeignKey(
            db_index=False,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="observations",
            to="experiments.run",
        ),
    ),
    migrations.AlterField("observation", "activation", models.FloatField()),
]
LAST = [
    migrations.AlterField(
        "observation",
        "experiment",
        models.ForeignKey(
            db_index=False,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="observations",
            to="experiments.experiment",
        ),
    ),
    migrations.AlterField(
        "observation",
        "image",
        models.ForeignKey(
            db_index=False,
            on_delete=django.db.models.deletion.PROTECT,
            related_name="observations",
            to="experiments.image",
        ),
    ),
]
INDEXES = {
    "experiment": [models.Index(fields=["best_activation", "id", "run"], name="experiments_by_activation")],
    "image": [
        models.Index(fields=["raw"], condition=~models.Q(raw=""), name="masked_versions"),
        models.Index(fields=["original"], condition=~models.Q(original=""), name="edits_of_an_image"),
        models.Index(fields=["key"], condition=models.Q(has_thumbnails=False), name="images_without_thumbnails"),
    ],
    "observation": [
        models.Index(fields=["image", "run"], name="observations_of_an_image"),
        models.Index(fields=["run", "activation", "id", "origin"], name="observations_of_a_run"),
        models.Index(fields=["activation", "id", "origin", "run"], name="observations_by_activation"),
        models.Index(fields=["origin", "activation", "id", "run"], name="origin_by_activation"),
        models.Index(fields=["experiment", "position", "origin", "run", "activation", "id"], name="observations_by_time"),
        models.Index(fields=["origin", "experiment", "position", "run", "activation", "id"], name="origin_by_time"),
        models.Index(
            fields=["change", "id", "origin", "run", "activation"],
            condition=models.Q(change__isnull=False),
            name="edits_by_change",
        ),
    ],
}


class Migration(migrations.Migration):
    dependencies = [("experiments", "0004_runs")]

    operations = [
        *COLUMNS,
        migrations.RunPython(fill, migrations.RunPython.noop),
        *FIRM,
        *(migrations.AddIndex(model, index) for model, indexes in INDEXES.items() for index in indexes),
        *LAST,
    ]

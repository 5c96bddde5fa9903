"""Observations that edits were made from are marked; runs tell when their worker took them."""

from itertools import groupby

from django.db import migrations, models


def mark(apps, schema_editor):
    rows = apps.get_model("experiments", "Observation").objects
    edits = rows.exclude(original="").order_by("run_id").values_list("run_id", "original").iterator(chunk_size=2000)
    for run, group in groupby(edits, key=lambda each: each[0]):
        keys = list({original for _, original in group})
        for start in range(0, len(keys), 500):
            rows.filter(run_id=run, image_id__in=keys[start : start + 500]).update(is_original=True)
    rows.filter(origin="original").update(is_original=True)


class Migration(migrations.Migration):
    dependencies = [("experiments", "0022_prices")]

    operations = [
        migrations.AddField(
            model_name="observation",
            name="is_original",
            field=models.BooleanField(
                db_default=False, default=False, help_text="whether the run made an edit from it"
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="taken",
            field=models.DateTimeField(blank=True, help_text="when its worker took it up", null=True),
        ),
        migrations.RunPython(mark, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="observation",
            index=models.Index(
                condition=models.Q(("is_original", True)),
                fields=["activation", "id", "run"],
                name="originals_by_activation",
            ),
        ),
    ]

from django.db import migrations, models


def attach_labels(apps, schema_editor):
    """Labels of runs on units that had no row yet hang on nothing; their units have a page now."""
    Label, Layer, Unit = (apps.get_model("experiments", name) for name in ("Label", "Layer", "Unit"))
    for label in Label.objects.filter(run__isnull=False, units__isnull=True).select_related("run"):
        run = label.run
        layer = Layer.objects.filter(model__name=run.model, name=run.layer, units__gt=run.unit).first()
        if layer:
            label.units.add(Unit.objects.get_or_create(layer=layer, number=run.unit)[0])


class Migration(migrations.Migration):

    dependencies = [("experiments", "0005_gallery")]

    operations = [
        migrations.AddField(
            model_name="index",
            name="dead",
            field=models.JSONField(
                help_text="numbers of the units that no image activates; null if nobody looked", null=True
            ),
        ),
        migrations.AddField(
            model_name="profile",
            name="compared",
            field=models.DateTimeField(help_text="when a worker looked for the neighbours", null=True),
        ),
        migrations.AddField(
            model_name="profile",
            name="neighbours",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="the units most like it: measure, images, same, others; or problem",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["model", "layer", "unit"], name="runs_of_a_unit"),
        ),
        migrations.RunPython(attach_labels, migrations.RunPython.noop),
    ]

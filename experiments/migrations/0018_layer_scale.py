"""How logits become probabilities. What was measured of logits before is forgotten: a worker measures it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation

if TYPE_CHECKING:
    from django.apps.registry import Apps
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def forget(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    """Exemplars of logits that were taken on another scale, and the indexes that they came from."""
    of_database = editor.connection.alias
    for name, layer in (("Profile", "unit__layer__kind"), ("Index", "layer__kind")):
        apps.get_model("experiments", name).objects.using(of_database).filter(**{layer: "logit"}).delete()


class Migration(migrations.Migration):
    dependencies: ClassVar = [("experiments", "0017_which_weights")]

    operations: ClassVar[list[Operation]] = [
        migrations.AddField(
            model_name="layer",
            name="scale",
            field=models.CharField(
                blank=True,
                help_text="how logits become probabilities: softmax or sigmoid; empty for others",
                max_length=10,
            ),
        ),
        migrations.RunPython(forget, migrations.RunPython.noop),
    ]

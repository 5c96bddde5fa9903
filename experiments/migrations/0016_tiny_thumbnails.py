"""Images get a third small version, for lines of lists: workers make it, as they do for images that have none."""

from typing import Any

from django.db import migrations


def ask_again(apps: Any, _: Any) -> None:
    apps.get_model("experiments", "Image").objects.filter(has_thumbnails=True).update(has_thumbnails=False)


class Migration(migrations.Migration):
    dependencies = [("experiments", "0015_export_of_lists")]

    operations = [migrations.RunPython(ask_again, migrations.RunPython.noop)]

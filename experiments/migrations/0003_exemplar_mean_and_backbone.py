"""The mean of the exemplars and the backbone are called so wherever they are stored: a column, payloads, versions, views."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from django.db import migrations

BATCH = 500


def rename_key(data: Any, old: str, new: str) -> bool:
    """Whether the key was there."""
    if not isinstance(data, dict) or old not in data:
        return False
    data[new] = data.pop(old)
    return True


def rename_stored(apps: Any, old_mean: str, mean: str, old_backbone: str, backbone: str) -> None:
    tables = {name: apps.get_model("experiments", name).objects for name in ("Event", "Run", "SavedView")}
    changed = []
    for event in tables["Event"].filter(kind__in=["result", "started"]).iterator(BATCH):
        if event.kind == "result":
            renamed = rename_key(event.payload, old_mean, mean)
        else:
            renamed = rename_key(dict(event.payload).get("versions"), old_backbone, backbone)
        if renamed:
            changed.append(event)
        if len(changed) == BATCH:
            tables["Event"].bulk_update(changed, ["payload"])
            changed.clear()
    tables["Event"].bulk_update(changed, ["payload"])
    for run in tables["Run"].iterator(BATCH):
        if rename_key(run.versions, old_backbone, backbone):
            run.save(update_fields=["versions"])
    for view in tables["SavedView"].iterator(BATCH):
        view.query = re.sub(rf"(^|&){old_backbone}=", rf"\1{backbone}=", view.query)
        view.save(update_fields=["query"])


def rename(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001
    rename_stored(apps, "threshold", "exemplar_mean", "agent", "backbone")


def rename_back(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001
    rename_stored(apps, "exemplar_mean", "threshold", "backbone", "agent")


class Migration(migrations.Migration):
    dependencies: ClassVar = [("experiments", "0002_search_and_audit")]

    operations: ClassVar = [
        migrations.RenameField("run", "threshold", "exemplar_mean"),
        migrations.RunPython(rename, rename_back),
    ]

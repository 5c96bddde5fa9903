"""Nothing yet."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    dependencies: ClassVar = [("experiments", "0011_steering")]

    operations: ClassVar[list[Operation]] = []

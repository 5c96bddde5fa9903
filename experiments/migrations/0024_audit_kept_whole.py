"""The audit is neither replaced row by row (SQLite's REPLACE fires no trigger on removal) nor emptied (TRUNCATE).

A table cannot be kept from its owner, who may take the triggers away.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations
from django.db.migrations.operations.base import Operation

REFUSALS = {
    "sqlite": """CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON experiments_auditentry
        WHEN EXISTS (SELECT 1 FROM experiments_auditentry WHERE id = NEW.id)
        BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END""",
    "postgresql": """CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON experiments_auditentry
        FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only()""",
}
ALLOWANCES = {
    "sqlite": "DROP TRIGGER audit_is_not_replaced",
    "postgresql": "DROP TRIGGER audit_is_not_emptied ON experiments_auditentry",
}


def refuse_more(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001 - Django's signature
    schema_editor.execute(REFUSALS[schema_editor.connection.vendor])


def allow_it(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001
    schema_editor.execute(ALLOWANCES[schema_editor.connection.vendor])


class Migration(migrations.Migration):
    dependencies: ClassVar = [("experiments", "0023_originals_of_edits")]

    operations: ClassVar[list[Operation]] = [migrations.RunPython(refuse_more, allow_it, elidable=False)]

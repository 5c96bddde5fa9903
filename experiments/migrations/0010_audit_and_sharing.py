"""The audit, which the database itself keeps from being changed, and links by which one run is read.

A table cannot be kept from its owner, who may TRUNCATE or drop it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.operations.base import Operation

REFUSALS = {
    "sqlite": [
        """CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON experiments_auditentry
        BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END""",
        """CREATE TRIGGER audit_is_not_removed BEFORE DELETE ON experiments_auditentry
        BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END""",
    ],
    "postgresql": [
        """CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'integrity_constraint_violation';
        END $$""",
        """CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE ON experiments_auditentry
        FOR EACH ROW EXECUTE FUNCTION audit_is_append_only()""",
    ],
}
ALLOWANCES = {
    "sqlite": ["DROP TRIGGER audit_is_not_changed", "DROP TRIGGER audit_is_not_removed"],
    "postgresql": [
        "DROP TRIGGER audit_is_append_only ON experiments_auditentry",
        "DROP FUNCTION audit_is_append_only",
    ],
}


def refuse_changes(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001 - Django's signature
    for statement in REFUSALS[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def allow_changes(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001
    for statement in ALLOWANCES[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("experiments", "0009_accounts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("time", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "name",
                    models.CharField(blank=True, help_text="of the user; empty for the system", max_length=150),
                ),
                ("verb", models.CharField(help_text="such as run.paused", max_length=60)),
                ("row_kind", models.CharField(blank=True, help_text="what the row is, such as run", max_length=60)),
                ("row_pk", models.BigIntegerField(null=True)),
                (
                    "row_words",
                    models.CharField(blank=True, help_text="the row in words, as it was then", max_length=200),
                ),
                ("details", models.JSONField(default=dict)),
                ("address", models.GenericIPAddressField(null=True)),
                (
                    "agent",
                    models.CharField(blank=True, help_text="what the browser or script calls itself", max_length=200),
                ),
                (
                    "token",
                    models.CharField(blank=True, help_text="the API token that was used, in words", max_length=200),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-time", "-pk"],
                "indexes": [
                    models.Index(fields=["time", "id"], name="audit_by_time"),
                    models.Index(fields=["name", "time", "id"], name="audit_by_name"),
                    models.Index(fields=["verb", "time", "id"], name="audit_by_verb"),
                    models.Index(fields=["row_kind", "row_pk", "time", "id"], name="audit_by_row"),
                ],
            },
        ),
        migrations.RunPython(refuse_changes, allow_changes),
        migrations.CreateModel(
            name="Share",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires", models.DateTimeField()),
                ("revoked", models.DateTimeField(null=True)),
                ("show_names", models.BooleanField(default=False)),
                ("show_comments", models.BooleanField(default=False)),
                ("views", models.PositiveIntegerField(default=0, help_text="how often its page was opened")),
                ("last_viewed", models.DateTimeField(null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="shares", to="experiments.run"
                    ),
                ),
            ],
            options={"ordering": ["-pk"]},
        ),
    ]

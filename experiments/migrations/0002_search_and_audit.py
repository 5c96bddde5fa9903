"""What a database keeps beside tables: the search index, and triggers by which the audit is append-only.

Plain SQL of its own, for SQLite and PostgreSQL: a migration never imports the code of a feature, which goes on changing.
A table cannot be kept from its owner, who may take the triggers away.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import DatabaseError, migrations
from django.db.migrations.operations.base import Operation

CONTENTLESS = "content='', detail=none, columnsize=0"
SQLITE_INDEX = (
    f"CREATE VIRTUAL TABLE experiments_trigrams USING fts5(normalized, {CONTENTLESS}, "
    "tokenize='trigram case_sensitive 1')",
    f"CREATE VIRTUAL TABLE experiments_ngrams USING fts5(ngrams, {CONTENTLESS}, tokenize='ascii')",
)
SQLITE_REMEDY = (
    "This SQLite cannot search ({reason}): it needs FTS5 with the trigram tokenizer, which SQLite has since 3.34. Use a "
    "Python that brings a newer SQLite, or PostgreSQL (MAIA_DATABASE_URL)."
)
EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_trgm"
POSTGRES_INDEX = (
    EXTENSION,
    "CREATE INDEX search_texts_trigrams ON experiments_searchtext USING gin (normalized gin_trgm_ops)",
    """CREATE FUNCTION experiments_ngrams(normalized text) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
    DECLARE
        letter text;
        code bigint;
        before bigint := 32;
        ngrams bigint[] := '{}';
    BEGIN
        FOREACH letter IN ARRAY string_to_array(normalized, NULL) LOOP
            code := ascii(letter);
            IF code <> 32 THEN
                ngrams := ngrams || code;
                IF before <> 32 THEN
                    ngrams := ngrams || (before << 21 | code);
                END IF;
            END IF;
            before := code;
        END LOOP;
        RETURN ngrams;
    END $$""",
    "CREATE INDEX search_texts_ngrams ON experiments_searchtext USING gin (experiments_ngrams(normalized))",
)
POSTGRES_REMEDY = (
    "PostgreSQL refused its extension pg_trgm, which search needs: {reason}. Have an administrator run "
    f"`{EXTENSION};` in this database (Debian's postgresql package brings it; elsewhere it is in postgresql-contrib), "
    "then migrate again."
)
REFUSAL = "BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END"
SQLITE_AUDIT = (
    f"CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON experiments_auditentry {REFUSAL}",
    f"CREATE TRIGGER audit_is_not_removed BEFORE DELETE ON experiments_auditentry {REFUSAL}",
    # REPLACE removes a row without firing the trigger on removal.
    "CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON experiments_auditentry "
    f"WHEN EXISTS (SELECT 1 FROM experiments_auditentry WHERE id = NEW.id) {REFUSAL}",
)
POSTGRES_AUDIT = (
    """CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'integrity_constraint_violation';
    END $$""",
    "CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE ON experiments_auditentry "
    "FOR EACH ROW EXECUTE FUNCTION audit_is_append_only()",
    "CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON experiments_auditentry "
    "FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only()",
)


def make_search_index(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001 - Django's signature
    """Raises DatabaseError with the remedy where the database cannot search."""
    known = {"sqlite": (SQLITE_INDEX, SQLITE_REMEDY), "postgresql": (POSTGRES_INDEX, POSTGRES_REMEDY)}
    statements, remedy = known[schema_editor.connection.vendor]
    for statement in statements:
        with schema_editor.connection.cursor() as cursor:
            try:
                cursor.execute(statement)
            except DatabaseError as error:
                raise type(error)(remedy.replace("{reason}", str(error).splitlines()[0])) from error


def make_audit_append_only(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001
    for statement in {"sqlite": SQLITE_AUDIT, "postgresql": POSTGRES_AUDIT}[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies: ClassVar = [("experiments", "0001_initial")]

    operations: ClassVar[list[Operation]] = [
        migrations.RunPython(make_search_index, migrations.RunPython.noop),
        migrations.RunPython(make_audit_append_only, migrations.RunPython.noop),
    ]

"""The schema of a database as plain data: what two of them have in common can be compared, whatever made them."""

from __future__ import annotations

import re
from typing import Any

from django.db import connection

Schema = dict[str, dict[str, Any]]

POSTGRES_COLUMNS = """
    SELECT column_name, data_type, character_maximum_length, is_nullable, column_default
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name = %s
"""
POSTGRES_INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename = %s"
POSTGRES_CONSTRAINTS = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass"
POSTGRES_TRIGGERS = "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = %s::regclass AND NOT tgisinternal"
POSTGRES_FUNCTIONS = """
    SELECT proname, prosrc FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
    WHERE nspname = 'public' AND (proname LIKE 'experiments%%' OR proname LIKE 'audit%%')
"""


def schema() -> Schema:
    """Every table of ours: its columns, indexes, constraints and triggers; names of indexes are left out."""
    return postgres_schema() if connection.vendor == "postgresql" else sqlite_schema()


def rows(query: str, *values: object) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, values or None)
        return list(cursor.fetchall())


def tables() -> list[str]:
    return sorted(name for name in connection.introspection.table_names() if name.startswith("experiments_"))


def sqlite_schema() -> Schema:
    virtual = [name for (name,) in rows("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'")]
    shadows = tuple(f"{name}_" for name in virtual)
    return {name: sqlite_table(name) for name in tables() if not name.startswith(shadows)} | {
        "triggers": {"all": sqlite_triggers()}
    }


def sqlite_table(name: str) -> dict[str, Any]:
    ((made,),) = rows("SELECT sql FROM sqlite_master WHERE name = %s", name)
    if "VIRTUAL" in made:
        return {"made": plain(made)}
    columns = {row[1]: [row[2], bool(row[3]), row[4], bool(row[5])] for row in rows(f"PRAGMA table_info({name})")}
    return {
        "columns": columns,
        "indexes": sorted(map(str, sqlite_indexes(name))),
        "references": sorted([row[3], row[2], row[4]] for row in rows(f"PRAGMA foreign_key_list({name})")),
        "checks": sorted(checks_in(made)),
    }


def sqlite_indexes(table: str) -> list[Any]:
    found = []
    for _, name, unique, _, partial in rows(f"PRAGMA index_list({table})"):
        columns = [f"{row[2]}{' desc' if row[3] else ''}" for row in rows(f"PRAGMA index_xinfo({name})") if row[5]]
        made = rows("SELECT sql FROM sqlite_master WHERE name = %s", name) if partial else []
        found.append([columns, bool(unique), plain(made[0][0]).partition(" where ")[2] if made else ""])
    return found


def checks_in(made: str) -> list[str]:
    """The conditions of CHECK, by their parentheses."""
    found = []
    for start in (match.end() for match in re.finditer(r"CHECK \(", made)):
        depth, end = 1, start
        while depth:
            depth += {"(": 1, ")": -1}.get(made[end], 0)
            end += 1
        found.append(plain(made[start : end - 1]))
    return found


def sqlite_triggers() -> list[str]:
    return sorted(plain(made) for (made,) in rows("SELECT sql FROM sqlite_master WHERE type = 'trigger'"))


def postgres_schema() -> Schema:
    found = {name: postgres_table(name) for name in tables()}
    return found | {"functions": {name: plain(source) for name, source in rows(POSTGRES_FUNCTIONS)}}


def postgres_table(name: str) -> dict[str, Any]:
    columns = {row[0]: list(row[1:]) for row in rows(POSTGRES_COLUMNS, name)}
    return {
        "columns": columns,
        "indexes": sorted(re.sub(r"INDEX \S+ ON", "INDEX ON", made) for (made,) in rows(POSTGRES_INDEXES, name)),
        "constraints": sorted(made for (made,) in rows(POSTGRES_CONSTRAINTS, name)),
        "triggers": sorted(made for (made,) in rows(POSTGRES_TRIGGERS, name)),
    }


def plain(sql: str) -> str:
    return " ".join(sql.replace('"', "").lower().split())

"""Migrations: they import no feature, refuse a database of before the squash in a sentence, and can be taken back."""

from __future__ import annotations

import ast
import importlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from experiments.core import transcript
from experiments.models import Event, Identity, Run, SavedView
from tests import ROOT
from tests.support.builders import experiment, make_run, result, started

pytestmark = pytest.mark.django_db

MIGRATIONS = sorted((ROOT / "experiments/migrations").glob("[0-9]*.py"))


def test_migrations_import_no_feature() -> None:
    taken = [
        node.module or ""
        for path in MIGRATIONS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
    ]
    assert [name for name in taken if name.startswith(("experiments", "workers"))] == []


def test_a_database_of_before_is_refused_with_one_sentence() -> None:
    MigrationRecorder(connection).record_applied("experiments", "0002_data_sets_and_parts")
    with pytest.raises(CommandError, match=r"earlier version of MAIA Web.*export.*MAIA_STATE.*import it there\.$"):
        call_command("migrate", verbosity=0)


def test_what_is_stored_gets_the_names_of_today_and_back(owner: User) -> None:
    migration = importlib.import_module("experiments.migrations.0003_exemplar_mean_and_backbone")
    run = make_run(owner)
    transcript.append(run.pk, "started", replace(started(), versions={"backbone": "gpt-4o", "torch": "2"}))
    transcript.append(run.pk, "experiment", experiment())
    transcript.append(run.pk, "result", result(1, exemplar_mean=1.5))
    SavedView.objects.create(owner=owner, name="mine", query="backbone=scripted&tag=backbone")

    def stored() -> tuple[Any, ...]:
        payloads = list(Event.objects.values_list("payload", flat=True))
        return payloads, Run.objects.get().versions, SavedView.objects.get().query

    now = stored()
    migration.rename_back(apps, None)
    payloads, versions, query = stored()
    assert (payloads[-1]["threshold"], versions["agent"], query) == (1.5, "gpt-4o", "agent=scripted&tag=backbone")
    migration.rename(apps, None)
    assert stored() == now


def test_people_who_came_by_allauth_stay_connected_and_its_tables_go(owner: User, teammate: User) -> None:
    migration = importlib.import_module("experiments.migrations.0039_identities")
    editor = SimpleNamespace(connection=connection)
    migration.copy_identities(apps, editor)
    migration.drop_tables_before(apps, editor)
    assert not Identity.objects.exists(), "without a table of allauth there is nothing to copy"
    kind = "jsonb" if connection.vendor == "postgresql" else "text"
    MigrationRecorder(connection).record_applied("socialaccount", "0001_initial")
    rows = [(owner.pk, "oidc-one", "7", '{"email": "o@example.org"}'), (teammate.pk, "oidc-two", "7", "{}")]
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE socialaccount_socialaccount (id integer PRIMARY KEY, provider varchar(200), uid varchar(191),"
            f" extra_data {kind}, user_id integer REFERENCES auth_user (id) DEFERRABLE INITIALLY DEFERRED)"
        )
        cursor.execute(
            "CREATE TABLE socialaccount_socialtoken (id integer PRIMARY KEY,"
            " account_id integer REFERENCES socialaccount_socialaccount (id))"
        )
        for number, (user, provider, subject, told) in enumerate(rows):
            cursor.execute(
                "INSERT INTO socialaccount_socialaccount VALUES (%s, %s, %s, %s, %s)",
                [number, provider, subject, told, user],
            )
        cursor.execute("INSERT INTO socialaccount_socialtoken VALUES (1, 1)")
    migration.copy_identities(apps, editor)
    kept = [(each.user_id, each.provider, each.subject, each.claims) for each in Identity.objects.order_by("pk")]
    assert kept == [(owner.pk, "oidc-one", "7", {"email": "o@example.org"}), (teammate.pk, "oidc-two", "7", {})]
    connection.check_constraints()  # what PostgreSQL would still have to check keeps it from dropping a table
    migration.drop_tables_before(apps, editor)
    assert not [name for name in connection.introspection.table_names() if name.startswith("socialaccount_")]
    assert ("socialaccount", "0001_initial") not in MigrationRecorder(connection).applied_migrations()
    teammate.delete()
    connection.check_constraints()

"""The migrations were squashed once: the schema is what it was, and a database of before is refused with a sentence."""

from __future__ import annotations

import ast
import importlib
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from experiments.core import transcript
from experiments.models import Event, Run, SavedView
from tests import ROOT
from tests.support.builders import experiment, make_run, result, started
from tests.support.schema import schema

pytestmark = pytest.mark.django_db

MIGRATIONS = sorted((ROOT / "experiments/migrations").glob("[0-9]*.py"))
RENAMED = {
    "threshold": "exemplar_mean",
    "experiments_model": "experiments_visionmodelrow",
    "experiments_turn": "experiments_humanreply",
    "experiments_passage": "experiments_searchtext",
    "experiments_gist": "experiments_runsummary",
    "experiments_arrival": "experiments_importedrun",
    "experiments_choice": "experiments_vote",
    "experiments_contest_panel": "experiments_pairwisetrial_panel",
    "experiments_contest": "experiments_pairwisetrial",
    "experiments_attempts": "experiments_signinattempts",
    "experiments_opinions": "experiments_importedopinions",
    "experiments_profile": "experiments_unitprofile",
    "experiments_index": "experiments_layerindex",
    "experiments_queue_reviewers": "experiments_reviewqueue_reviewers",
    "experiments_queue": "experiments_reviewqueue",
    "experiments_item": "experiments_reviewitem",
    "experiments_grams": "experiments_ngrams",
    "contest_id": "trial_id",
    "contest": "trial",
    "data_set_id": "dataset_id",
    "tool_set": "toolset",
    "fate": "status",
    "folded": "normalized",
    "grams": "ngrams",
    "brought_id": "upload_id",
    "gold_share": "known_answer_share",
    "one_choice_per_pair": "one_vote_per_pair",
}
"""Tables and columns that have other names than before."""
JOINED = {"queue": "reviewqueue_id", "contest": "pairwisetrial_id"}
"""A join table's column is called after its table."""


def renamed(before: dict[str, Any]) -> Any:
    """The schema of before with the names of now."""
    for name, table in before.items():
        for owner, column in JOINED.items():
            if name.startswith(f"experiments_{owner}_"):
                before[name] = json.loads(json.dumps(table).replace(f"{owner}_id", column))
    words = re.compile(r"(?<![a-z_])(" + "|".join(sorted(RENAMED, key=len, reverse=True)) + r")(?![a-z_])")
    return json.loads(words.sub(lambda match: RENAMED[match[1]], json.dumps(before)))


def ordered(part: Any) -> Any:
    """Lists in the order of their names of now."""
    if isinstance(part, dict):
        return {key: ordered(value) for key, value in part.items()}
    return (
        sorted(part, key=str) if isinstance(part, list) and all(isinstance(each, str | list) for each in part) else part
    )


@pytest.mark.django_db(transaction=True)
def test_the_schema_is_that_of_before() -> None:
    """That of the squashed ones; what came after is taken back first, which every later migration must allow."""
    before = renamed(json.loads((ROOT / f"tests/house/schema_{connection.vendor}.json").read_text()))
    try:
        call_command("migrate", "experiments", "0003", verbosity=0)
        now = json.loads(json.dumps(schema(), default=str))
    finally:
        call_command("migrate", verbosity=0)
    assert sorted(now) == sorted(before)
    differing = {name: (before[name], now[name]) for name in now if ordered(before[name]) != ordered(now[name])}
    assert differing == {}


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

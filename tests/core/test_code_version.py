"""A worker with another version of the code than the database's claims nothing, and says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from experiments.core import code_version, queue
from experiments.models import CodeVersion, Run
from tests.support.builders import make_run
from workers.jobs import lease
from workers.jobs.claims import Claimer
from workers.jobs.round_threads import RoundThreads

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def read_anew() -> Iterator[None]:
    code_version.forget()
    yield
    CodeVersion.objects.all().delete()
    code_version.forget()
    lease.stopping.clear()


def migrate_by_another() -> None:
    CodeVersion.objects.update_or_create(pk=1, defaults={"version": "0123456789ab", "schema": "0099_later"})
    code_version.forget()


def test_migrating_writes_whose_database_it_is(redis_url: str) -> None:
    migrate_by_another()
    call_command("migrate", verbosity=0)
    code_version.forget()
    assert CodeVersion.objects.get().version == code_version.fingerprint()
    assert code_version.explain_difference() == ""


def test_another_version_is_named_with_its_remedy() -> None:
    migrate_by_another()
    words = code_version.explain_difference()
    assert code_version.fingerprint() in words
    assert "0123456789ab" in words
    assert "0099_later" in words
    assert "claims nothing" in words
    assert "manage.py migrate" in words


def test_threads_of_another_version_leave_runs_to_others(owner: User, redis_url: str) -> None:
    run = make_run(owner)
    queue.enqueue(run.pk)
    migrate_by_another()
    threads = RoundThreads(1, list, lambda key, pk: None, lambda key: None)
    claimer = Claimer(list)
    assert threads._claim(claimer) is None
    call_command("migrate", verbosity=0)
    code_version.forget()
    found = threads._claim(claimer)
    assert found is not None
    assert found.pk == run.pk == Run.objects.get(lease_expires__isnull=False).pk

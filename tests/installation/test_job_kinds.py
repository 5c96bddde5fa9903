"""Stopping and resuming a job of every kind, as everybody: an answer in words, and never a step of something larger."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.installation.actions import NEEDS, STEPS
from experiments.models import Job, JobKind, Member, Role
from experiments.models.job import JobStatus
from tests.support.api_world import Script

ACTS = {"stop": JobStatus.RUNNING, "resume": JobStatus.FAILED}


def make_user(role: Role) -> User:
    user = User.objects.create_user(role.name.lower())
    Member.objects.create(user=user, role=role)
    return user


def make_job(kind: str, status: JobStatus, asked_by: User | None = None) -> Job:
    return Job.objects.create(kind=kind, subject="All of layer4", status=status, asked_by=asked_by)


def expected(kind: JobKind, role: Role) -> int:
    if role < NEEDS[kind]:
        return 403
    return 409 if kind in STEPS else 200


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("kind", JobKind)
@pytest.mark.parametrize("act", ACTS)
def test_every_kind_is_answered_to_every_role(
    db: None, no_redis: None, act: str, kind: JobKind, role: Role, client: Client
) -> None:
    user = make_user(role)
    client.force_login(user)
    client.raise_request_exception = False
    for send in (page, script):
        job = make_job(kind, ACTS[act])
        response = send(client, user, job, act)
        changed = not Job.objects.filter(pk=job.pk, status=job.status, stop_requested=job.stop_requested).exists()
        wanted = expected(kind, role)
        assert changed == (wanted == 200)
        assert response.status_code == (302 if send is page and wanted != 403 else wanted), response.content
        if wanted == 409:
            said = client.get(response["Location"]) if send is page else response
            assert f"{act} the {STEPS[kind]} itself" in said.content.decode()


def page(client: Client, user: User, job: Job, act: str) -> Any:
    return client.post(f"/settings/jobs/{job.pk}/{act}/")


def script(client: Client, user: User, job: Job, act: str) -> Any:
    asked = Script(user)
    asked.client.raise_request_exception = False
    return asked.post(f"/jobs/{job.pk}/{act}")


def test_an_export_is_stopped_by_whoever_asked_for_it(db: None, no_redis: None) -> None:
    viewer = make_user(Role.VIEWER)
    job = make_job(JobKind.EXPORT, JobStatus.RUNNING, viewer)
    assert Script(viewer).post(f"/jobs/{job.pk}/stop").status_code == 200
    job.refresh_from_db()
    assert job.stop_requested

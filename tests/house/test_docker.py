"""What can be known of the images without Docker: files agree with each other, the settings and the packages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import ROOT
from tests.support.settings_table import settings_in_code, settings_in_table
from workers.sandbox import watch

DOCKER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if str(service["image"]).startswith("maia-")]
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
LOCK = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
ONLY_WORKER = (DOCKER / "only-in-the-worker.txt").read_text().split()
ONLY_DEVELOPMENT = (DOCKER / "only-for-development.txt").read_text().split()
READ_BY_COMPOSE = {"MAIA_PORT", "MAIA_DATA", "MAIA_WORKER_MEMORY"}


def example() -> dict[str, str]:
    """Variable -> value of `.env.example`, those that are commented out too."""
    text = (DOCKER / ".env.example").read_text()
    return dict(re.findall(r"^(?:# )?((?:MAIA|OPENAI|OTEL)_\w+)=(.*)$", text, flags=re.MULTILINE))


def test_the_example_names_every_setting_and_no_other() -> None:
    assert example().keys() - READ_BY_COMPOSE == settings_in_code().keys()


def test_the_example_shows_the_defaults_of_the_readme() -> None:
    text = (DOCKER / ".env.example").read_text()
    defaults = re.findall(r"^# ((?:MAIA|OPENAI|OTEL)_\w+)=(.+)$", text, flags=re.MULTILINE)
    told = settings_in_table()
    assert {name: value for name, value in defaults if name in told and told[name] != f"`{value}`"} == {}


def test_nothing_but_the_web_is_published() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["web"]
    assert SERVICES["web"]["ports"] == ["${MAIA_PORT:-127.0.0.1:8000}:8000"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    outside = [name for name, service in SERVICES.items() if "outside" in service["networks"]]
    assert sorted(outside) == ["web", "worker"]


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - {"migrate"}))
def test_every_lasting_service_says_how_it_is_and_comes_back(name: str) -> None:
    assert "healthcheck" in SERVICES[name]
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_secrets_come_from_files_and_the_providers_key_goes_to_the_worker_alone() -> None:
    for name, service in SERVICES.items():
        given = service.get("environment", {})
        plain = {key for key in given if re.search("KEY|PASSWORD|SECRET", key) and not key.endswith("_FILE")}
        own = {"worker": "OPENAI_API_KEY", "web": "MAIA_OIDC_CLIENT_SECRET"}.get(name)
        assert {key: given[key] for key in plain} == {key: f"${{{key}:-}}" if key == own else "" for key in plain}
        assert not service.get("env_file") or plain == {"OPENAI_API_KEY", "MAIA_OIDC_CLIENT_SECRET"}
        assert ("openai_api_key" in service.get("secrets", [])) == (name == "worker")
        assert set(service.get("secrets", [])) <= COMPOSE["secrets"].keys()


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_bounded_and_without_privileges(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["pids_limit"] > 0
    assert service["mem_limit"]
    assert name in OURS or service["user"]


def test_what_programs_write_in_the_worker_is_bounded() -> None:
    (temporary,) = SERVICES["worker"]["tmpfs"]
    assert temporary.startswith("/tmp:size=2g")
    assert SERVICES["worker"]["pids_limit"] > 4 * watch.THREADS


@pytest.mark.parametrize("name", OURS)
def test_every_variable_that_compose_sets_is_a_setting(name: str) -> None:
    known = settings_in_code().keys()
    given = {key.removesuffix("_FILE") for key in SERVICES[name]["environment"]}
    assert given <= known


def test_every_volume_and_health_check_condition_exists() -> None:
    for service in SERVICES.values():
        named = {volume.partition(":")[0] for volume in service.get("volumes", []) if volume[0] not in "./$"}
        assert named <= COMPOSE["volumes"].keys()
        for other, wait in (service.get("depends_on") or {}).items():
            assert wait["condition"] != "service_healthy" or "healthcheck" in SERVICES[other]


def test_what_the_images_copy_exists_and_is_let_through() -> None:
    copied = {word for line in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, flags=re.MULTILINE) for word in line.split()}
    assert {path for path in copied if not (ROOT / path).exists()} == set()
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == let_through


def test_targets_that_compose_builds_exist() -> None:
    stages = set(re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, flags=re.MULTILINE))
    assert {SERVICES[name]["build"]["target"] for name in OURS} <= stages


def test_the_image_has_the_python_that_the_packages_are_locked_on() -> None:
    asked = re.search(r"^FROM python:(\d+\.\d+)", DOCKERFILE, flags=re.MULTILINE)
    assert asked
    oldest = re.search(r'requires-python = ">=(.*)"', (ROOT / "pyproject.toml").read_text())
    assert oldest
    assert asked[1] == oldest[1]


def test_what_the_images_leave_out_is_pinned() -> None:
    patterns = [*ONLY_WORKER, *ONLY_DEVELOPMENT]
    assert [each for each in patterns if not any(re.fullmatch(each, line) for line in LOCK)] == []
    assert set(ONLY_WORKER) & set(ONLY_DEVELOPMENT) == set()


def test_the_images_hold_what_the_program_needs_and_nothing_that_only_tests_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = needed(project["dependencies"] + project["optional-dependencies"]["otel"])
    left_out = {line for line in LOCK if any(re.fullmatch(each, line) for each in ONLY_DEVELOPMENT)}
    names = {canonicalize_name(re.split("[=; ]", line)[0]) for line in left_out}
    everything = {canonicalize_name(re.split("[=; ]", line)[0]) for line in LOCK if ";" not in line}
    assert names == everything - wanted
    for image in ("web", "worker"):
        _, _, stage = DOCKERFILE.partition(f"FROM base AS {image}\n")
        assert "/tmp/only-for-development.txt" in stage.partition("\nFROM ")[0]


def needed(wanted: list[str]) -> set[str]:
    """The names of these packages and of all that they need, as installed here."""
    left, found = [Requirement(each) for each in wanted], {}
    while left:
        asked = left.pop()
        key = canonicalize_name(asked.name), *sorted(asked.extras)
        if key in found or not (asked.marker is None or asked.marker.evaluate({"extra": ""})):
            continue
        found[key] = key[0]
        with suppress(PackageNotFoundError):
            for each in (Requirement(line) for line in distribution(asked.name).requires or []):
                extras = [extra for extra in asked.extras if each.marker and each.marker.evaluate({"extra": extra})]
                if extras:
                    each.marker = None
                left.append(each)
    return set(found.values())


WITHOUT = """
import importlib.metadata, re, sys

gone = {re.sub(r"[-_.]+", "-", name).lower() for name in sys.argv[1].split(",")}
owners = importlib.metadata.packages_distributions()

class Absent:
    def find_spec(self, name, path=None, target=None):
        held = {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners.get(name.partition(".")[0], [])}
        if held and held <= gone:
            raise ModuleNotFoundError(f"No module named {name!r}: the web's image leaves it out.", name=name)

sys.meta_path.insert(0, Absent())
import maia_web.asgi
from django.core.management import call_command
from django.test import Client
call_command("migrate", verbosity=0)
call_command("collectstatic", verbosity=0, interactive=False)
from maia_web.celery import app
app.loader.import_default_modules()
answer = Client().get("/sign-in/")
sys.exit(answer.status_code != 200)
"""


@pytest.mark.more
def test_the_web_runs_without_what_its_image_leaves_out(tmp_path: Path) -> None:
    names = ",".join(
        line.partition("==")[0]
        for line in LOCK
        if any(re.fullmatch(each, line) for each in (*ONLY_WORKER, *ONLY_DEVELOPMENT))
    )
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "maia_web.settings",
        "MAIA_STATE": str(tmp_path),
        "MAIA_HOSTS": "testserver",
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, "-c", WITHOUT, names]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

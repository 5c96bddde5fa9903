"""What operators and pages are told of the sandbox's layers."""

from io import StringIO

import pytest
from django.core import checks
from django.core.management import call_command

from experiments.core import notify, worker_status
from tests.support.glb_files import make_cone
from tests.support.sandbox_lab import layers_found
from workers.jobs import jail
from workers.sandbox.jail import SandboxLayer

ON = SandboxLayer("seccomp", True, "on", "an allow-list of system calls")
OFF = SandboxLayer("landlock", True, "missing", "no such call", "Use a newer kernel.")
OPTIONAL = SandboxLayer("namespaces", False, "missing", "not allowed", "Not needed.")


def ids():
    return [message.id for message in checks.run_checks() if message.id in {"maia.W002", "maia.W003"}]


def test_nothing_is_said_where_all_required_layers_are_on(settings):
    with layers_found(ON, OPTIONAL):
        assert (jail.warning(), jail.record(), ids()) == ("", "1 of 2 layers, without namespaces", [])


def test_a_missing_layer_is_told_with_its_remedy():
    with layers_found(ON, OFF):
        (message,) = [each for each in checks.run_checks() if each.id == "maia.W002"]
        assert "landlock: no such call" in message.msg
        assert "Use a newer kernel." in str(message.hint)
        assert jail.warning().startswith("No program runs, because the worker's sandbox lacks landlock.")
        assert jail.record() == "1 of 2 layers, without landlock"


def test_the_override_is_recorded_and_warned_of(settings):
    settings.SANDBOX_OVERRIDE = True
    with layers_found(ON, OFF):
        assert jail.record() == "1 of 2 layers, without landlock, overridden"
        assert jail.warning().startswith("Programs run without the sandbox's landlock")
        assert ids() == ["maia.W002", "maia.W003"]
    with layers_found(ON):
        assert "Unset it" in jail.warning()
        assert ids() == ["maia.W003"]


def test_check_shows_how_each_layer_is():
    out = StringIO()
    with layers_found(ON, OFF, OPTIONAL):
        call_command("check", stdout=out, stderr=out)
    lines = out.getvalue().splitlines()
    assert "Sandbox: 1 of 3 layers, without landlock and namespaces" in lines
    assert "  landlock      missing   no such call" in lines
    assert "  namespaces    missing   (optional) not allowed" in lines


def test_check_of_one_app_leaves_the_sandbox_alone():
    out = StringIO()
    call_command("check", "auth", stdout=out)
    assert "Sandbox" not in out.getvalue()


@pytest.mark.django_db
def test_pages_hear_what_the_worker_found(redis_url, settings):
    assert worker_status.warn_of_sandbox() == ""
    with layers_found(ON, OFF):
        jail.publish_report()
        assert worker_status.warn_of_sandbox() == jail.warning() != ""
        settings.SANDBOX_OVERRIDE = True
        jail.publish_report()
        assert "Programs run without" in worker_status.warn_of_sandbox()
    report = notify.read_report("sandbox")
    assert report is not None
    assert (report["done"], report["total"]) == (1, 2)


def test_pages_know_of_the_override_where_no_worker_has_told(settings):
    settings.SANDBOX_OVERRIDE = True
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    notify.redis.cache_clear()
    assert "MAIA_SANDBOX_OVERRIDE" in worker_status.warn_of_sandbox()
    notify.redis.cache_clear()


def test_check_lists_the_nouns_of_files_and_what_is_left_out(settings, tmp_path, laboratory):
    out, toys = StringIO(), tmp_path / "toys"
    toys.mkdir()
    make_cone().write(toys / "beacon.glb")
    make_cone().write(toys / "car.glb")
    settings.LAB_GAME_MODELS = str(toys)
    with layers_found(ON):
        call_command("check", stdout=out, stderr=out)
    assert "Game engine: tools.game_engine, and nothing else, also knows beacon:" in out.getvalue()
    assert "  left out: 'car.glb': 'car' is a word of toybox's own, for the noun 'car'; rename it." in out.getvalue()

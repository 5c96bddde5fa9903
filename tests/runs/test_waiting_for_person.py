"""A run that waits for a person: what halts it, what the page says, how it goes on, and that nothing is asked twice."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from experiments.core import notify, transcript
from experiments.display import events
from experiments.models import Run
from tests.support.builders import started
from tests.support.provider import Provider, prices, refuses, says
from tests.support.queued import list_queued
from tests.support.tiny_run import CONCLUSION, LOOK, Seeing, here, install, kinds, play, tiny_run
from workers.errors import BackboneRefused, BackboneUnavailable, ContentRefused, MissingPart
from workers.jobs import laboratory as place
from workers.jobs import recovery
from workers.record.events import Blocked
from workers.record.limits import Usage
from workers.record.statuses import Status

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]
NO_CREDIT = BackboneRefused("The provider has no credit left for this key. Top up the account.")
SENTENCES = ("A red square on black.", "Nothing is bright.")


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Any:
    install(monkeypatch, settings, tmp_path)
    yield
    place.build_laboratory.cache_clear()
    notify.muted.clear()


def shown(client: Client, run: Run) -> str:
    return client.get(f"/runs/{run.pk}/").content.decode()


def waiting(owner: User, **fields: Any) -> Run:
    """A run whose provider refused the first reply."""
    run = tiny_run(owner, Seeing([NO_CREDIT, CONCLUSION]), **fields)
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "blocked", Blocked(1, str(NO_CREDIT)))
    return Run.objects.get(pk=run.pk)


# --- blocked and tried again -----------------------------------------------------------------------


def test_a_refusal_has_the_run_wait_without_a_worker_and_nobody_enqueues_it(owner: User) -> None:
    run = play(tiny_run(owner, Seeing([NO_CREDIT, CONCLUSION]), due=timezone.now() - timedelta(minutes=5)))
    assert kinds(run) == ["started", "blocked"]
    assert (run.status, run.reason) == (Status.WAITING, str(NO_CREDIT))
    assert (run.lease_worker, run.lease_expires, run.ended, run.conclusion) == ("", None, None, {})
    recovery.recover()
    assert list_queued() == set()


def overloaded() -> BackboneUnavailable:
    error = BackboneUnavailable("Overloaded; it was asked 8 times.")
    error.spent = Usage(4_000, 0, 0.01)
    return error


def test_it_goes_on_from_its_page_and_asks_for_nothing_twice(owner: User, as_owner: Client) -> None:
    backbone = Seeing(LOOK, [overloaded(), CONCLUSION], sentences=SENTENCES)
    run = play(tiny_run(owner, backbone))
    assert kinds(run)[-2:] == ["result", "blocked"]
    assert run.reason == "Overloaded; it was asked 8 times."
    assert run.tokens == 2 * 110 + 4_000, "what was described, and what the lost reply took"
    assert "4k" in as_owner.get(f"/runs/{run.pk}/", {"tab": "cost"}).content.decode()
    assert as_owner.post(f"/runs/{run.pk}/try-again/")["Location"] == run.get_absolute_url()
    assert as_owner.post(f"/runs/{run.pk}/try-again/", headers={"HX-Request": "true"}).status_code == 204
    assert list_queued() == {run.pk}
    run = play(run)
    assert kinds(run)[-4:] == ["blocked", "resumed", "reply", "concluded"]
    assert (run.status, run.reason, run.labels) == (Status.CONCLUDED, "", ["red squares"])
    assert run.events.get(kind="resumed").payload == {"round": 2, "who": "owner"}
    assert backbone.asked == [1, 2, 2]
    assert kinds(run).count("result") == 1


def test_a_part_that_is_missing_at_the_start_can_be_put_there(owner: User, as_owner: Client) -> None:
    run = play(tiny_run(owner, MissingPart("There is no key. Set OPENAI_API_KEY and start again.")))
    assert kinds(run) == ["blocked"]
    assert "Set OPENAI_API_KEY" in shown(as_owner, run)
    here["backbone"] = Seeing(CONCLUSION)
    transcript.resume(run.pk, "owner")
    assert kinds(play(run)) == ["blocked", "resumed", "started", "reply", "concluded"]


def test_trying_a_run_again_that_does_not_wait_changes_nothing(owner: User, as_owner: Client) -> None:
    run = play(tiny_run(owner, Seeing(CONCLUSION)))
    as_owner.post(f"/runs/{run.pk}/try-again/")
    assert kinds(run) == ["started", "reply", "concluded"]


# --- stopped while it waits -----------------------------------------------------------------------


@pytest.mark.parametrize("lease", [{}, {"lease_worker": "slow", "lease_expires": timezone.now() + timedelta(days=1)}])
def test_stopping_a_run_that_waits_ends_it_at_once(owner: User, as_owner: Client, lease: dict[str, Any]) -> None:
    run = waiting(owner)
    Run.objects.filter(pk=run.pk).update(**lease)
    as_owner.post(f"/runs/{run.pk}/stop/")
    run.refresh_from_db()
    assert (run.status, run.reason) == (Status.CANCELLED, "Stopped by owner.")
    assert kinds(run) == ["started", "blocked", "cancelled"]
    as_owner.post(f"/runs/{run.pk}/try-again/")
    assert kinds(run) == ["started", "blocked", "cancelled", "resumed"]


def test_a_run_that_was_stopped_when_its_provider_refused_ends_instead_of_waiting(owner: User) -> None:
    run = tiny_run(owner, Seeing(CONCLUSION), cancel_requested=True)
    transcript.append(run.pk, "blocked", Blocked(1, "No credit."))
    run.refresh_from_db()
    assert (run.status, kinds(run)) == (Status.CANCELLED, ["cancelled"])


# --- what people see ------------------------------------------------------------------------------


def test_the_page_says_why_it_waits_and_offers_to_try_again(owner: User, as_owner: Client) -> None:
    run = waiting(owner)
    page = shown(as_owner, run)
    assert 'data-status="waiting"' in page
    assert "Needs attention" in page
    assert "Top up the account." in page
    assert f'hx-post="/runs/{run.pk}/try-again/"' in page
    assert "data-complete" not in page, "a viewer hears it go on"
    assert events.render_event(run.events.get(kind="blocked"), run) in page, "the stream draws the same"
    assert "Needs attention" in as_owner.get("/runs/?status=waiting").content.decode()


def test_a_viewer_sees_why_it_waits_and_no_button(owner: User, teammate: User, client: Client) -> None:
    client.force_login(teammate)
    page = shown(client, waiting(owner))
    assert "Top up the account." in page
    assert "try-again/" not in page


def test_the_command_line_says_so_and_goes_on(owner: User, capsys: pytest.CaptureFixture[str]) -> None:
    backbone = Seeing([NO_CREDIT, NO_CREDIT, CONCLUSION])
    run = play(tiny_run(owner, backbone))
    with pytest.raises(CommandError, match=f"Top up the account.*\n.*--resume {run.pk}") as caught:
        call_command("investigate", "--resume", str(run.pk), "--json", stdout=StringIO())
    assert caught.value.returncode == 75
    told = StringIO()
    call_command("investigate", "--resume", str(run.pk), "--json", stdout=told)
    assert json.loads(told.getvalue())["status"] == "concluded"
    assert capsys.readouterr().err.count("Needs attention") == 1
    assert kinds(run) == ["started", "blocked", "resumed", "blocked", "resumed", "reply", "concluded"]


# --- describing images ----------------------------------------------------------------------------


def test_images_are_described_by_the_backbone_in_a_conversation_of_its_own(owner: User, as_owner: Client) -> None:
    backbone = Seeing(LOOK, CONCLUSION, sentences=SENTENCES, usage=Usage(1_000, 100, 1.0))
    run = play(tiny_run(owner, backbone))
    assert "red: A red square on black.\nblue: Nothing is bright." in backbone.heard[-1].text
    assert [sizes for _, sizes in backbone.observed] == [[(8, 8)], [(8, 8)]]
    for messages, _ in backbone.observed:
        assert [message.role for message in messages] == ["system", "user"]
        assert "crimson" not in "".join(message.text for message in messages)
    assert (run.prompt_tokens, run.completion_tokens, run.cost) == (2_200, 220, 2.5)
    assert "descriptions 220 tokens, $0.50" in shown(as_owner, run)


def test_descriptions_count_against_the_limits(owner: User) -> None:
    backbone = Seeing(LOOK, CONCLUSION, sentences=SENTENCES)
    run = play(tiny_run(owner, backbone, limits={"cost": 0.5}))
    assert run.status == Status.LIMIT_REACHED
    assert "0.5 US dollars" in run.reason


def test_a_provider_without_credit_halts_the_run_and_is_paid_for_no_description_twice(owner: User) -> None:
    backbone = Seeing(LOOK, CONCLUSION, sentences=(SENTENCES[0], NO_CREDIT, SENTENCES[1]))
    run = play(tiny_run(owner, backbone))
    assert kinds(run) == ["started", "reply", "experiment", "blocked"]
    assert run.events.get(kind="blocked").payload["round"] == 1
    transcript.resume(run.pk, "owner")
    run = play(run)
    assert kinds(run)[4:] == ["resumed", "result", "reply", "concluded"]
    assert len(backbone.observed) == 3, "the first image was described before"
    assert "red: A red square on black.\nblue: Nothing is bright." in backbone.heard[-1].text
    assert (run.cost, run.experiment_count) == (0.5, 1), "what the first attempt took is counted"


def test_an_image_that_a_content_filter_stops_is_the_agents_affair(owner: User) -> None:
    backbone = Seeing(LOOK, CONCLUSION, sentences=(SENTENCES[0], ContentRefused("The filter stopped it.")))
    run = play(tiny_run(owner, backbone))
    assert run.status == Status.CONCLUDED
    assert "image_list[1] cannot be described: The filter stopped it. Leave this image out." in backbone.heard[-1].text
    assert run.cost == 0.25


def test_a_backbone_that_does_not_see_leaves_it_to_the_toolset(owner: User) -> None:
    class Blind(Seeing):
        sees = False

    backbone = Blind(LOOK, CONCLUSION)
    assert play(tiny_run(owner, backbone)).status == Status.CONCLUDED
    assert "red: bright\nblue: bright" in backbone.heard[-1].text


# --- with a provider on loopback ------------------------------------------------------------------


def test_a_run_with_a_provider_halts_where_it_refuses_and_goes_on_there(
    owner: User, settings: Any, tmp_path: Path
) -> None:
    first, second = says(SENTENCES[0], usage=(300, 20)), says(SENTENCES[1], usage=(300, 20))
    reply, conclusion = says(LOOK, usage=(1_000, 100)), says(CONCLUSION, usage=(2_000, 50))
    with Provider(reply, first, refuses(402, "Insufficient balance"), second, conclusion) as provider:
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "sk-test", provider.url
        settings.OPENAI_MODELS, settings.OPENAI_PRICES = ["seer"], prices(tmp_path, "seer", 10, 100)
        run = play(tiny_run(owner, None, "openai"))
        assert (run.status, kinds(run)) == (Status.WAITING, ["started", "reply", "experiment", "blocked"])
        assert "credit" in run.reason
        transcript.resume(run.pk, "owner")
        run = play(run)
    assert (run.status, kinds(run)[4:]) == (Status.CONCLUDED, ["resumed", "result", "reply", "concluded"])
    assert len(provider.asked) == 5
    for observed in provider.asked[1:4]:
        assert "crimson" not in json.dumps(observed)
        assert json.dumps(observed).count("data:image/") == 1
    assert (run.prompt_tokens, run.completion_tokens) == (3_600, 190)
    assert run.cost == pytest.approx(0.055)
    assert run.versions["backbone"] == "seer"


@pytest.mark.parametrize(
    ("refusal", "says_why"),
    [
        (refuses(401, "Incorrect API key provided"), "OPENAI_API_KEY"),
        (refuses(404, "The model does not exist", code="model_not_found"), "seer"),
        (refuses(429, "Slow down"), "asked 1 time"),
        (refuses(529, "Overloaded"), "asked 1 time"),
    ],
)
def test_every_refusal_of_a_provider_has_the_run_wait(
    owner: User, settings: Any, tmp_path: Path, refusal: Any, says_why: str
) -> None:
    with Provider(refusal) as provider:
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "sk-test", provider.url
        settings.OPENAI_MODELS, settings.OPENAI_ATTEMPTS = ["seer"], 1
        settings.OPENAI_PRICES = prices(tmp_path, "seer", 10, 100)
        run = play(tiny_run(owner, None, "openai"))
    assert run.status == Status.WAITING
    assert says_why in run.reason
    assert run.conclusion == {}

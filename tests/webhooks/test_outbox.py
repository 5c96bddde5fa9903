"""What outsiders are told, of what, and what they are not told: names of people, of neurons judged blind, reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core import outbox, transcript
from experiments.core.actors import Actor
from experiments.evaluations import actions as evaluations
from experiments.maintenance.pruning import prune
from experiments.models import (
    Evaluation,
    Image,
    Job,
    LabelCheck,
    ReviewItem,
    Run,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
from experiments.sweeps import actions as sweeps
from experiments.webhooks.messages import make_body
from tests.support import api_world
from tests.support.api_world import KEY
from tests.support.blind_runs import TOLD, blind_run, queued
from tests.support.builders import make_run
from tests.support.own_rows import swept
from tests.support.people import signed_in
from tests.support.reviewing import queue_of
from tests.support.webhook_receiver import Receiver, make_webhook, receiving
from workers.jobs import long, webhooks
from workers.record.events import Blocked, Ended
from workers.record.replies import Conclusion

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]


@pytest.fixture
def webhook(admin: User) -> Webhook:
    return make_webhook(admin, "https://example.org/hook")


@pytest.fixture
def receiver(settings: Any, webhook: Webhook) -> Iterator[Receiver]:
    settings.WEBHOOK_PRIVATE = True
    with receiving() as found:
        Webhook.objects.update(address=found.address)
        yield found


def list_told() -> list[tuple[str, dict[str, Any]]]:
    return [(each.kind, each.payload["data"]) for each in WebhookDelivery.objects.order_by("pk")]


@pytest.mark.parametrize(
    ("kind", "payload", "told"),
    [
        ("concluded", Ended("", Conclusion("Red.", ("red balls", "red cones"))), "run.concluded"),
        ("limit_reached", Ended("10 rounds by Ada."), "run.ended"),
        ("failed", Ended("The key sk-123 was refused."), "run.ended"),
        ("cancelled", Ended("Stopped by Ada."), "run.ended"),
        ("blocked", Blocked(1, "The key sk-123 was refused."), "run.waiting"),
    ],
)
def test_runs_that_end_or_wait_are_told_without_reasons(
    owner: User, webhook: Webhook, kind: str, payload: Any, told: str
) -> None:
    run = make_run(owner)
    transcript.append(run.pk, kind, payload)
    run.refresh_from_db()
    ((found, data),) = list_told()
    assert (found, data["run"], data["status"]) == (told, run.pk, run.status)
    assert data["labels"] == (["red balls", "red cones"] if kind == "concluded" else [])
    assert "sk-123" not in json.dumps(data)
    assert "Ada" not in json.dumps(data)
    assert owner.username not in json.dumps(data)


def test_only_chosen_kinds_are_told(owner: User, webhook: Webhook) -> None:
    Webhook.objects.update(kinds=["sweep.ended", 7, "no such kind"])
    transcript.append(make_run(owner).pk, "cancelled", Ended(""))
    assert list_told() == []
    outbox.announce(WebhookEvent.SWEEP_ENDED, "/", {})
    assert len(list_told()) == 1


def test_reviews_sweeps_and_evaluations_are_told(owner: User, webhook: Webhook) -> None:
    queue = queue_of(owner, runs=3, name="pass <one>")
    sweep = swept(owner, "running")
    assert sweeps.stop(Actor(owner), sweep.pk)
    job = Job.objects.create(kind="evaluation", subject="x", status="queued")
    evaluation = Evaluation.objects.create(name="Labels", kind="labels", owner=owner, job=job)
    evaluations.stop(Actor(owner), evaluation)
    told = list_told()
    assert [kind for kind, _ in told] == ["review.waiting", "sweep.ended", "evaluation.ended"]
    assert (told[0][1]["queue"], told[0][1]["items"]) == (queue.pk, 3)
    assert (told[1][1]["sweep"], told[1][1]["status"]) == (sweep.pk, "stopped")
    assert (told[2][1]["evaluation"], told[2][1]["status"]) == (evaluation.pk, "stopped")


def test_a_sweep_tells_once_that_its_last_run_ended(owner: User, webhook: Webhook) -> None:
    sweep = swept(owner, "running")
    type(sweep).objects.update(created_runs=1)
    transcript.append(sweep.runs.get().pk, "cancelled", Ended(""))
    assert [(kind, data["status"]) for kind, data in list_told() if kind == "sweep.ended"] == [("sweep.ended", "done")]


def test_an_evaluation_that_fails_in_its_worker_is_told(owner: User, webhook: Webhook, laboratory: Any) -> None:
    job = Job.objects.create(kind="evaluation", subject="x", status="queued")
    evaluation = Evaluation.objects.create(name="Labels", kind="nothing", owner=owner, job=job)
    long.work(job.pk)
    job.refresh_from_db()
    assert [(kind, data["status"]) for kind, data in list_told()] == [("evaluation.ended", job.status)]
    assert job.status == "failed"
    assert list_told()[0][1]["url"].endswith(f"/evaluations/{evaluation.pk}/")


def test_a_checked_label_is_told_with_r(owner: User, webhook: Webhook) -> None:
    world = api_world.fill(owner)
    WebhookDelivery.objects.all().delete()
    LabelCheck.objects.filter(pk=world.check.pk).update(pearson=0.5, pearson_low=0.4, pearson_high=0.6)
    outbox.announce_check(LabelCheck.objects.get(pk=world.check.pk))
    told = [data for kind, data in list_told() if kind == "label.checked"]
    assert [(each["run"], each["r"], each["labels"]) for each in told[:1]] == [(world.run.pk, 0.5, ["red balls"])]
    Run.objects.update(label_check=None)
    outbox.announce_check(LabelCheck.objects.get(pk=world.check.pk))
    assert len([kind for kind, _ in list_told() if kind == "label.checked"]) == len(told)


def test_the_link_is_that_of_the_site(owner: User, webhook: Webhook, settings: Any) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://*.example.org", "https://front.example.org"]
    settings.PREFIX = "/maia"
    outbox.announce(WebhookEvent.SWEEP_ENDED, "/maia/sweeps/1/", {})
    outbox.announce(WebhookEvent.SWEEP_ENDED, "/sweeps/1/", {})
    assert {data["url"] for _, data in list_told()} == {"https://front.example.org/maia/sweeps/1/"}


# --- what must not go out ---


def test_a_synthetic_neuron_is_a_number_in_every_payload(owner: User, first: User, webhook: Webhook) -> None:
    Image.objects.create(key=KEY, width=8, height=8, origin="generated")
    run = blind_run(owner)
    queued(run, first, blind=True, filters="")
    bodies = [make_body(each) for each in WebhookDelivery.objects.select_related("webhook")]
    assert len(bodies) == 2
    assert not any(TOLD in each.decode() for each in bodies)


def test_a_run_under_blind_review_is_held_back_until_that_is_over(
    owner: User, first: User, webhook: Webhook, receiver: Receiver
) -> None:
    run = make_run(owner)
    transcript.append(run.pk, "concluded", Ended("", Conclusion("Red.", ("red balls",))))
    queued(run, first, blind=True)
    webhooks.send_due(webhook.pk)
    assert [each.payload["type"] for each in receiver.received] == ["review.waiting"]
    held = WebhookDelivery.objects.get(kind="run.concluded")
    assert (held.status, held.attempts) == ("waiting", 0)
    assert timedelta(minutes=9) < held.next_attempt - timezone.now() < timedelta(minutes=11)
    ReviewItem.objects.update(complete=True)
    WebhookDelivery.objects.update(next_attempt=timezone.now())
    webhooks.send_due(webhook.pk)
    assert [each.payload["type"] for each in receiver.received][1:] == ["run.concluded"]


def test_a_run_on_a_unit_that_people_write_labels_of_is_held_back(
    owner: User, webhook: Webhook, receiver: Receiver
) -> None:
    written, near = make_run(owner), make_run(owner)
    evaluation = Evaluation.objects.create(name="x", kind="labels", owner=owner)
    evaluation.items.create(position=1, source="person", run=written, group="", unit_name="u")
    transcript.append(near.pk, "concluded", Ended("", Conclusion("Red.", ("red balls",))))
    webhooks.send_due(webhook.pk)
    assert receiver.received == []
    Run.objects.filter(pk=written.pk).update(status="concluded")
    WebhookDelivery.objects.update(next_attempt=timezone.now())
    webhooks.send_due(webhook.pk)
    assert len(receiver.received) == 1


# --- Slack ---


def test_slack_is_sent_one_escaped_line(owner: User, webhook: Webhook, receiver: Receiver) -> None:
    Webhook.objects.update(shape="slack")
    labels = ("<!channel> & <https://evil.example|here>", "two\nlines")
    transcript.append(run := make_run(owner).pk, "concluded", Ended("", Conclusion("Red.", labels)))
    webhooks.send_due(webhook.pk)
    (received,) = receiver.received
    assert received.payload.keys() == {"text"}
    text = received.payload["text"]
    assert "<" not in text
    assert ">" not in text
    assert "\n" not in text
    assert text.startswith(f"Run {run} concluded · “&lt;!channel&gt; &amp; &lt;https://evil.example|here&gt;”")
    assert text.endswith(f" https://maia.example.org/runs/{run}/")


@pytest.mark.parametrize("kind", [*WebhookEvent.values, "test", "from a later version"])
def test_every_kind_has_words_for_slack_whatever_is_stored(webhook: Webhook, kind: str) -> None:
    webhook.shape = "slack"
    for payload in ({}, {"data": {"run": 1, "labels": ["a"], "r": 0.5, "name": "{run}", "status": "done", "items": 2}}):
        text = json.loads(make_body(WebhookDelivery(webhook=webhook, kind=kind, payload=payload)))["text"]
        assert text.strip()
    assert "r = 0.50" in text


# --- pages ---


@pytest.fixture
def as_admin(admin: User) -> Client:
    return signed_in(admin)


GOOD = {"address": "https://hooks.example.org/T0/secret", "kinds": ["run.concluded"], "shape": "slack"}


def test_a_secret_is_shown_once_and_stands_nowhere(as_admin: Client) -> None:
    made = as_admin.post("/settings/webhooks/add/", GOOD).content.decode()
    row = Webhook.objects.get()
    assert row.secret in made
    assert row.site == "http://testserver"
    assert "no-store" in as_admin.post("/settings/webhooks/add/", GOOD)["Cache-Control"]
    for path in ("/settings/webhooks/", f"/settings/webhooks/{row.pk}/", "/settings/audit/"):
        assert row.secret not in as_admin.get(path).content.decode()
    assert "T0/secret" not in as_admin.get("/settings/audit/").content.decode()
    assert row.secret not in str(Webhook.objects.values().first())
    renewed = as_admin.post(f"/settings/webhooks/{row.pk}/secret/").content.decode()
    assert row.secret not in renewed
    assert Webhook.objects.get(pk=row.pk).secret in renewed


@pytest.mark.parametrize(
    ("field", "value"),
    [("address", "https://127.1/"), ("address", ""), ("kinds", []), ("kinds", ["all"]), ("shape", "xml")],
)
def test_what_makes_no_sense_is_said_beside_its_field(as_admin: Client, field: str, value: Any) -> None:
    answer = as_admin.post("/settings/webhooks/add/", GOOD | {field: value})
    assert answer.status_code == 400
    assert 'aria-invalid="true"' in answer.content.decode()
    assert not Webhook.objects.exists()


def test_a_delivery_that_was_given_up_is_sent_again(as_admin: Client, webhook: Webhook, receiver: Receiver) -> None:
    as_admin.post(f"/settings/webhooks/{webhook.pk}/test/")
    delivery = WebhookDelivery.objects.get()
    WebhookDelivery.objects.update(status="given_up", attempts=18, code=500, answer="<script>alert(1)</script>")
    page = as_admin.get(f"/settings/webhooks/{webhook.pk}/").content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    as_admin.post(f"/settings/webhooks/{webhook.pk}/deliveries/{delivery.pk}/again/")
    webhooks.send_due(webhook.pk)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts, receiver.ids) == ("delivered", 1, [delivery.message])
    as_admin.post(f"/settings/webhooks/{webhook.pk}/deliveries/{delivery.pk}/again/")
    assert WebhookDelivery.objects.get().status == "delivered"


def test_a_delivery_of_another_webhook_is_not_found(as_admin: Client, admin: User, webhook: Webhook) -> None:
    other = make_webhook(admin, "https://example.org/other")
    delivery = outbox.announce_test(other)
    path = f"/settings/webhooks/{webhook.pk}/deliveries/{delivery.pk}/again/"
    assert as_admin.post(path).status_code == 404


def test_old_deliveries_are_pruned_and_waiting_ones_stay(webhook: Webhook) -> None:
    for status in ("delivered", "given_up", "waiting", "delivered"):
        row = outbox.announce_test(webhook)
        WebhookDelivery.objects.filter(pk=row.pk).update(status=status, created=timezone.now() - timedelta(days=40))
    WebhookDelivery.objects.filter(pk=row.pk).update(created=timezone.now())
    assert prune(30, lambda *_: None, dry=True).deliveries == 2
    assert WebhookDelivery.objects.count() == 4
    assert prune(30, lambda *_: None, dry=False).deliveries == 2
    assert sorted(WebhookDelivery.objects.values_list("status", flat=True)) == ["delivered", "waiting"]

"""The outbox is sent: signed, again after failures, each by one worker, bounded whatever the receiver does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from experiments.core import outbox, transcript
from experiments.models import DeliveryStatus, Webhook, WebhookDelivery, WebhookEvent
from tests.support.builders import make_run
from tests.support.webhook_receiver import Receiver, answer_with, drip, make_webhook, receiving, verify
from workers.jobs import webhook_request, webhooks
from workers.record.events import Ended
from workers.record.replies import Conclusion

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def private_allowed(settings: Any) -> None:
    settings.WEBHOOK_PRIVATE = True


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def webhook(admin: User, receiver: Receiver) -> Webhook:
    return make_webhook(admin, receiver.address)


def make_due() -> None:
    """Let the time pass that a failed delivery waits for."""
    WebhookDelivery.objects.filter(status=DeliveryStatus.WAITING).update(next_attempt=timezone.now())


def test_the_end_of_a_run_arrives_signed(owner: User, receiver: Receiver, webhook: Webhook) -> None:
    run = make_run(owner)
    transcript.append(run.pk, "concluded", Ended("", Conclusion("It likes red.", ("red balls",))))
    webhooks.send_due(webhook.pk)
    (received,) = receiver.received
    assert received.path == "/hook?from=maia"
    assert verify(webhook.secret, received)
    assert not verify(webhook.secret, replace(received, body=received.body + b" "))
    told = received.payload
    assert told["type"] == "run.concluded"
    assert (told["data"]["run"], told["data"]["labels"]) == (run.pk, ["red balls"])
    assert told["data"]["url"] == f"https://maia.example.org/runs/{run.pk}/"
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, delivery.code, delivery.attempts) == ("delivered", 200, 1)
    webhooks.send_due(webhook.pk)
    assert len(receiver.received) == 1


def test_what_is_rolled_back_is_not_told(owner: User, webhook: Webhook) -> None:
    run = make_run(owner)
    with transaction.atomic():
        transcript.append(run.pk, "cancelled", Ended("Stopped by a person."))
        assert WebhookDelivery.objects.exists()
        transaction.set_rollback(True)
    assert not WebhookDelivery.objects.exists()


def test_a_receiver_that_was_down_gets_everything_in_order(admin: User) -> None:
    with receiving() as first:
        address = first.address
    webhook = make_webhook(admin, address)
    for number in range(4):
        outbox.announce(WebhookEvent.SWEEP_ENDED, "/", {"sweep": number})
    for _ in range(4):  # each look tries one, and leaves the others
        webhooks.send_due(webhook.pk)
    waiting = WebhookDelivery.objects.filter(status="waiting", next_attempt__gt=timezone.now())
    assert [(each.attempts, each.code) for each in waiting] == [(1, None)] * 4
    assert "refused" in waiting[0].answer.lower()
    with receiving(first.port) as receiver:
        make_due()
        webhooks.send_due(webhook.pk)
        assert [each.payload["data"]["sweep"] for each in receiver.received] == [0, 1, 2, 3]
        assert len(set(receiver.ids)) == 4
    assert not WebhookDelivery.objects.exclude(status="delivered").exists()


def test_delays_grow_until_it_is_given_up(receiver: Receiver, webhook: Webhook) -> None:
    receiver.answer = answer_with(500, b"<b>broken</b>\x1b[31m")
    delivery = outbox.announce_test(webhook)
    for delay in webhooks.DELAYS:
        webhooks.send_due(webhook.pk)
        delivery.refresh_from_db()
        assert delivery.status == "waiting"
        left = (delivery.next_attempt - timezone.now()).total_seconds()
        assert delay - 5 < left <= delay
        make_due()
    webhooks.send_due(webhook.pk)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.code, delivery.answer) == ("given_up", 500, "<b>broken</b> [31m")
    assert len(receiver.received) == len(webhooks.DELAYS) + 1
    assert {each.headers["webhook-id"] for each in receiver.received} == {delivery.message}
    assert timedelta(days=3) <= timedelta(seconds=sum(webhooks.DELAYS)) < timedelta(days=4)


def test_who_is_gone_is_not_tried_again(receiver: Receiver, webhook: Webhook) -> None:
    receiver.answer = answer_with(410)
    delivery = outbox.announce_test(webhook)
    webhooks.send_due(webhook.pk)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.code) == ("given_up", 410)


def test_redirects_are_refused(receiver: Receiver, webhook: Webhook) -> None:
    with receiving() as other:
        receiver.answer = answer_with(307, b"", f"Location: {other.address}")
        delivery = outbox.announce_test(webhook)
        webhooks.send_due(webhook.pk)
        assert other.received == []
    delivery.refresh_from_db()
    assert (delivery.status, delivery.code) == ("waiting", 307)
    assert "redirect" in delivery.answer


@pytest.mark.parametrize("dripped", ["status", "header", "body"])
def test_dripping_answers_are_cut(
    receiver: Receiver, webhook: Webhook, dripped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_request, "TOTAL_TIMEOUT", 0.5)
    starts = {"status": b"", "header": b"HTTP/1.1 200 OK\r\nX: ", "body": b"HTTP/1.1 500 No\r\n\r\n"}

    def answer(write: object) -> None:
        assert callable(write)
        write(starts[dripped])
        drip(write)

    receiver.answer = answer
    delivery = outbox.announce_test(webhook)
    began = time.monotonic()
    webhooks.send_due(webhook.pk)
    assert time.monotonic() - began < 15  # dripping goes on for 30 s
    delivery.refresh_from_db()
    assert delivery.status == "waiting"
    assert delivery.code == (500 if dripped == "body" else None)


def test_huge_answers_are_not_read(receiver: Receiver, webhook: Webhook) -> None:
    written = 0

    def flood(write: object) -> None:
        nonlocal written
        assert callable(write)
        write(b"HTTP/1.1 500 No\r\n\r\n")
        for _ in range(1000):
            write(b"x" * (1 << 20))
            written += 1

    receiver.answer = flood
    delivery = outbox.announce_test(webhook)
    webhooks.send_due(webhook.pk)
    delivery.refresh_from_db()
    assert (delivery.code, delivery.answer) == (500, "x" * 300)
    assert written < 900


def test_headers_without_end_are_refused(receiver: Receiver, webhook: Webhook) -> None:
    receiver.answer = b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 2000) for n in range(90)) + b"\r\n"
    delivery = outbox.announce_test(webhook)
    webhooks.send_due(webhook.pk)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.code) == ("waiting", None)


def test_a_delivery_of_a_killed_worker_is_sent_again(receiver: Receiver, webhook: Webhook) -> None:
    delivery = outbox.announce_test(webhook)
    assert webhooks.claim(delivery.pk) is not None  # and the worker dies
    assert webhooks.claim(delivery.pk) is None
    webhooks.send_due(webhook.pk)
    assert receiver.received == []
    make_due()  # the claim has lapsed
    webhooks.send_due(webhook.pk)
    delivery.refresh_from_db()
    assert (receiver.ids, delivery.status, delivery.attempts) == ([delivery.message], "delivered", 2)


def test_of_workers_that_claim_at_once_one_has_it(webhook: Webhook) -> None:
    def claim(pk: int) -> bool:
        try:
            return webhooks.claim(pk) is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            assert sum(pool.map(claim, [outbox.announce_test(webhook).pk] * 8)) == 1


def test_a_late_answer_does_not_undo_a_later_attempt(webhook: Webhook, receiver: Receiver) -> None:
    late = webhooks.claim(outbox.announce_test(webhook).pk)
    assert late is not None
    make_due()
    webhooks.send_due(webhook.pk)
    webhooks._record(late, webhook_request.WebhookAnswer(500, "late"))
    assert WebhookDelivery.objects.get().status == "delivered"


def test_a_webhook_that_is_deleted_meanwhile_leaves_nothing(receiver: Receiver, webhook: Webhook) -> None:
    outbox.announce_test(webhook)

    def delete(write: object) -> None:
        assert callable(write)
        Webhook.objects.all().delete()
        write(answer_with(200))

    receiver.answer = delete
    webhooks.send_due(webhook.pk)
    assert len(receiver.received) == 1
    assert not WebhookDelivery.objects.exists()


def test_a_paused_webhook_is_sent_nothing_and_told_nothing_new(receiver: Receiver, webhook: Webhook) -> None:
    outbox.announce_test(webhook)
    Webhook.objects.update(active=False)
    webhooks.send_due(webhook.pk)
    outbox.announce(WebhookEvent.SWEEP_ENDED, "/", {})
    assert (receiver.received, WebhookDelivery.objects.count()) == ([], 1)
    Webhook.objects.update(active=True)
    webhooks.send_due(webhook.pk)
    assert len(receiver.received) == 1


def test_a_slow_receiver_holds_up_none_but_itself(admin: User, receiver: Receiver) -> None:
    """1,000 events for three webhooks, one of which never answers in time."""
    with receiving() as slow, receiving() as third:
        slow.answer = drip
        hooks = [make_webhook(admin, each.address) for each in (receiver, slow, third)]
        began = time.monotonic()
        for number in range(1000):
            outbox.announce(WebhookEvent.SWEEP_ENDED, "/", {"sweep": number})
        print(f"1,000 events for 3 webhooks written in {time.monotonic() - began:.2f} s")
        sender = webhooks.WebhookSender()
        began = time.monotonic()
        while len(receiver.received) < 1000 or len(third.received) < 1000:
            assert sender.look()
            time.sleep(0.05)
            assert time.monotonic() - began < 300, "the others wait for the slow one"
        print(f"2,000 deliveries beside a slow receiver in {time.monotonic() - began:.2f} s")
        assert not WebhookDelivery.objects.filter(webhook=hooks[1], status="delivered").exists()
        sender.stop_pool()
    assert len(set(receiver.ids)) == 1000

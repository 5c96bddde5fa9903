"""Focus mode says what is so: whose place it is, what has begun, and no answer before it is judged."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core.actors import Actor
from experiments.models import Dataset, Exemplar, Image, Layer, Review, Run, Unit, UnitProfile, VisionModelRow
from experiments.reviews import actions
from tests.support.people import member, signed_in
from tests.support.reviewing import FULL_FORM, lapse, queue_of, send, submit, taken

pytestmark = pytest.mark.django_db


def test_a_reservation_that_lapsed_is_lost_only_to_somebody(owner: User, first: User) -> None:
    queue, client = queue_of(owner, runs=1), signed_in(first)
    review = taken(queue, first)
    lapse(review)
    page = client.get(f"/review/{queue.pk}/items/1/").content.decode()
    assert "another reviewer has the place" not in page
    assert "Submit and next" in page
    taken(queue, member("second", "REVIEWER"))
    assert "another reviewer has the place" in client.get(f"/review/{queue.pk}/items/1/").content.decode()


def test_a_draft_in_a_closed_queue_is_not_said_to_be_anothers(owner: User, first: User) -> None:
    queue = queue_of(owner, runs=1)
    review = taken(queue, first)
    lapse(review)
    Review.objects.update(slot=None)
    actions.close_queue(Actor(queue.owner), queue)
    told = send(signed_in(first), f"/review/{queue.pk}/items/1/save/", **FULL_FORM).json()
    assert "another reviewer" not in told["words"]


def test_looking_at_an_item_begins_no_draft(owner: User, first: User) -> None:
    queue, client = queue_of(owner, runs=1), signed_in(first)
    client.get(f"/review/{queue.pk}/next/")
    for address in ("/review/", f"/review/{queue.pk}/"):
        page = client.get(address).content.decode()
        assert "Your drafts" not in page
        assert "under way" not in page
    send(client, f"/review/{queue.pk}/items/1/save/", supported="4")
    page = client.get("/review/").content.decode()
    assert "Your drafts" in page
    assert "1 review under way" in page


def test_the_exemplars_of_the_unit_stand_in_for_those_that_a_run_did_not_log(owner: User, first: User) -> None:
    queue = queue_of(owner, runs=1)
    run = Run.objects.get()
    layer = Layer.objects.create(
        model=VisionModelRow.objects.create(name=run.model), position=0, name=run.layer, kind="conv", units=run.unit + 1
    )
    unit = Unit.objects.create(layer=layer, number=run.unit)
    dataset = Dataset.objects.create(key="own", label="Own pictures", added=timezone.now())
    address, client = f"/review/{queue.pk}/items/1/", signed_in(first)
    assert "Neither the run nor a dataset shows exemplars" in client.get(address).content.decode()
    profile = UnitProfile.objects.create(unit=unit, dataset=dataset, written=timezone.now())
    image = Image.objects.create(key="a" * 64, width=8, height=8, origin="exemplar")
    Exemplar.objects.create(profile=profile, rank=1, activation=7.5, image=image, masked=image)
    page = client.get(address).content.decode()
    assert "the run logged none: those of Own pictures" in page
    assert "a" * 64 in page


def test_a_synthetic_neuron_has_a_number_until_it_is_judged(owner: User, first: User) -> None:
    queue = queue_of(owner, runs=1)
    Run.objects.update(system_kind="synthetic", model="synthetic:toybox-eyes", layer="or", unit=3)
    review, client = taken(queue, first), signed_in(first)
    addresses = [f"/review/{queue.pk}/", f"/review/{queue.pk}/items/1/"]
    for address in addresses:
        page = client.get(address).content.decode()
        assert "synthetic:toybox-eyes" not in page
        assert "neuron " in page
    submit(review, first)
    for address in addresses:
        assert "synthetic:toybox-eyes / or / unit 3" in client.get(address).content.decode()

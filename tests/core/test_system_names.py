"""What a synthetic neuron is called before somebody who is to judge it unseen: a number, on every page and address."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core import system_names, transcript
from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.display import events as rendering
from experiments.exchange import export_query
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import (
    Exemplar,
    ExportSubject,
    Label,
    Layer,
    Observation,
    Review,
    ReviewQueue,
    Run,
    Share,
    Unit,
    UnitProfile,
)
from experiments.reviews import actions, reservation
from tests.support import builders
from tests.support.address_rows import make_ids
from tests.support.api_operations import READING, call
from tests.support.api_world import KEY, World, fill
from tests.support.blind_runs import LAYER, MODEL, NUMBER, TOLD, as_json_spec, blind_run, catalogue, queued
from tests.support.builders import make_run
from tests.support.people import member, signed_in
from tests.support.read_pages import TELLING, pages, table
from tests.support.reviewing import submit
from tests.support.streams import text_of
from tests.support.viewer import Viewer, tell
from workers import registry
from workers.record import decoding
from workers.record.events import Ended
from workers.record.replies import Conclusion

pytestmark = pytest.mark.django_db
BLIND = registry.blind_name("synthetic", MODEL, LAYER, NUMBER)


@pytest.fixture
def first() -> User:
    """An admin who reviews: no page is closed to them."""
    return member("first", "ADMIN")


@pytest.fixture
def world(owner: User) -> World:
    """What else there is: another run, the image that both logged."""
    return fill(owner)


def judge(queue: ReviewQueue, user: User) -> Review:
    review = reservation.reserve_item(queue, user)
    assert review is not None
    submit(review, user, seq=review.item.run.last_seq)
    return review


@pytest.fixture
def run(owner: User, world: World) -> Run:
    return blind_run(owner)


@pytest.fixture
def ids(run: Run) -> dict[str, int]:
    return make_ids(run)


# --- every address ---


def test_no_address_tells_a_blind_reviewer_and_all_tell_who_has_judged(
    ids: dict[str, int], run: Run, world: World, first: User, redis_url: str
) -> None:
    world = replace(world, run=run)
    client = signed_in(first)
    numbers: dict[str, Any] = {**ids, "parent": run.parent_id, "child": run.forks.get().pk, "key": KEY}
    told = {path: text_of(client.get(path.format(**numbers))) for path in pages()}
    told |= {path: text_of(call(client, path, operation, world)) for path, operation in READING}
    assert [path for path, text in told.items() if TOLD in text] == []
    for path in ("/runs/", "/experiments/?view=list", "/api/v1/runs/{run}", "/review/{queue}/items/1/"):
        assert BLIND in told[path], path
    assert "3" in told["/runs/{run}/?tab=raw"], "what else the fork changed"
    judge(ReviewQueue.objects.get(pk=ids["queue"]), first)
    after = {path: text_of(client.get(path.format(**numbers))) for path in TELLING}
    assert [path for path, text in after.items() if TOLD not in text] == []


def test_who_is_not_to_review_it_reads_the_name_all_the_while(run: Run, owner: User, first: User) -> None:
    queued(run, first)
    assert f"{MODEL} / {LAYER} / unit {NUMBER}" in signed_in(owner).get("/runs/").content.decode()
    assert signed_in(first).get(f"/query/?from={run.pk}").status_code == 403
    assert signed_in(owner).get(f"/query/?from={run.pk}").status_code == 200


def test_a_queue_that_is_not_blind_or_is_closed_hides_no_name(run: Run, first: User) -> None:
    open_one = queued(run, first, blind=False)
    assert not system_names.SystemNameMasker(first).is_masked(run)
    queue = queued(run, first)
    assert system_names.SystemNameMasker(first).is_masked(run)
    assert system_names.SystemNameMasker(first).of(run) == BLIND
    actions.close_queue(Actor(queue.owner), queue)
    assert system_names.SystemNameMasker(first).of(run) == run.system
    assert not system_names.SystemNameMasker(first).hide_any(open_one)


def test_an_ordinary_unit_is_never_hidden(owner: User, first: User) -> None:
    run = make_run(owner, status="concluded")
    queued(run, first)
    assert system_names.SystemNameMasker(first).of(run) == run.system
    assert f"layer={LAYER}" in signed_in(first).get(f"/review/{ReviewQueue.objects.get().pk}/").content.decode()


def test_who_has_submitted_cannot_take_it_back_with_the_name_before_them(run: Run, owner: User, first: User) -> None:
    queue = queued(run, first)
    judge(queue, first)
    assert actions.find_undoable(queue, first) is None
    with pytest.raises(StateConflict, match="since you submitted, so your review cannot be undone"):
        actions.undo(Actor(first), queue)
    ordinary = queued(make_run(owner, status="concluded"), first)
    judge(ordinary, first)
    actions.undo(Actor(first), ordinary)


def test_a_queue_is_not_named_by_what_its_reviewers_are_not_to_know(run: Run, owner: User, first: User) -> None:
    client = signed_in(owner)
    proposed = client.get(f"/review/new/?layer={LAYER}&status=concluded").context["form"].initial["name"]
    assert proposed == "concluded"
    assert client.get("/review/new/?layer=layer4").context["form"].initial["name"] == "layer4"
    queue = queued(run, first)
    assert TOLD not in signed_in(first).get(f"/review/{queue.pk}/").content.decode()
    assert f"layer={LAYER}" in client.get(f"/review/{queue.pk}/").content.decode()


# --- finding ---


@pytest.mark.parametrize("what", [f"model={MODEL}", f"layer={LAYER}", f"unit={NUMBER}", "q=kind", "q=1"])
def test_no_list_finds_a_run_by_what_is_hidden_of_it(run: Run, first: User, owner: User, what: str) -> None:
    Run.objects.exclude(model=MODEL).update(unit=7)
    asker, knower = signed_in(first), signed_in(owner)
    places = ["/api/v1/runs", "/api/v1/observations", "/api/v1/search"]
    if what.startswith("q"):
        places = places[:1]
    queued(run, first)
    for place in places:
        address = f"{place}?{what}{'&q=red' * place.endswith('search')}"
        found = [each.get("run", each.get("id")) for each in knower.get(address).json()["items"]]
        assert run.pk in found, address
        seen = [each.get("run", each.get("id")) for each in asker.get(address).json()["items"]]
        assert run.pk not in seen, address
    experiments = f"/api/v1/experiments?{what}"
    if not what.startswith(("q", "unit")):
        assert len(knower.get(experiments).json()["items"]) == len(asker.get(experiments).json()["items"]) + 1


def test_words_that_a_run_says_are_still_found(run: Run, first: User) -> None:
    queued(run, first)
    found = signed_in(first).get("/api/v1/runs?q=respond balls").json()["items"]
    assert [(each["id"], each["system"], each["unit"]) for each in found] == [(run.pk, BLIND, None)]


# --- the catalogue ---


def test_the_page_of_the_neuron_tells_nothing_of_its_runs(owner: User, first: User) -> None:
    layer = catalogue()
    run = RunOf.conclude(owner)
    label = Label.objects.get(run=run)
    unit = Unit.objects.get(layer=layer, number=NUMBER)
    theirs = Label.objects.create(text="what a person said", source="person")
    unit.labels.add(theirs)
    queue = queued(run, first)
    address = f"/units/{MODEL}/{LAYER}/{NUMBER}/"
    client = signed_in(first)
    page = client.get(address).content.decode()
    assert label.text not in page
    assert f"/runs/{run.pk}/" not in page
    assert theirs.text in page
    for other in (f"/units/{MODEL}/", f"/units/{MODEL}/?q=hats", f"/units/{MODEL}/{LAYER}/"):
        assert label.text not in client.get(other).content.decode(), other
    shown = client.get(f"/api/v1/labels/{label.pk}").json()
    assert (shown["run"], shown["units"]) == (run.pk, [])
    assert label.pk not in [each["id"] for each in client.get(f"/api/v1/labels?layer={LAYER}").json()["items"]]
    unit_shown = client.get(f"/api/v1/layers/{layer.pk}/units/{NUMBER}").json()
    assert (unit_shown["runs"], unit_shown["labels"]) == (0, [theirs.text])
    assert client.get("/api/v1/units?label=hats").json()["items"] == []
    judge(queue, first)
    page = client.get(address).content.decode()
    assert label.text in page
    assert f"/runs/{run.pk}/" in page
    assert client.get(f"/api/v1/labels/{label.pk}").json()["units"]


def test_the_page_of_an_image_does_not_name_the_neuron_whose_exemplar_it_is(run: Run, first: User) -> None:
    unit = Unit.objects.create(layer=catalogue(), number=NUMBER)
    profile = UnitProfile.objects.create(unit=unit, dataset=UnitProfile.objects.get().dataset, written=timezone.now())
    Exemplar.objects.create(profile=profile, rank=1, activation=9.0, image_id=KEY, masked_id=KEY)
    queue = queued(run, first)
    client = signed_in(first)
    page = client.get(f"/images/{KEY}/").content.decode()
    assert TOLD not in page
    assert "Exemplar of 1 unit<" in page, "the other unit is named"
    judge(queue, first)
    assert "Exemplar of 2 units<" in client.get(f"/images/{KEY}/").content.decode()


class RunOf:
    """A run on the neuron of the catalogue."""

    @staticmethod
    def conclude(owner: User) -> Run:
        row = make_run(owner, system_kind="synthetic", model=MODEL, layer=LAYER, unit=NUMBER)
        transcript.append(row.pk, "started", builders.started())
        transcript.append(row.pk, "concluded", Ended("", Conclusion("It likes hats.", ("teal hats",))))
        row.refresh_from_db()
        return row


# --- files and links ---


def test_a_file_names_what_its_maker_may_read(run: Run, owner: User, first: User) -> None:
    catalogue()
    Unit.objects.get_or_create(layer=Layer.objects.get(name=LAYER), number=NUMBER)[0].labels.add(
        Label.objects.get(run=run)
    )
    queue = queued(run, first)
    whats = [ExportSubject.RUNS, ExportSubject.EXPERIMENTS, ExportSubject.OBSERVATIONS, ExportSubject.LABELS]
    assert Observation.objects.filter(run=run).exists()
    for what in whats:
        assert TOLD not in table(what, first), what
        assert TOLD in table(what, owner), what
    with pytest.raises(ExchangeError, match=f"what runs {run.pk}"):
        export_query.select_rows(ExportSubject.BUNDLE, f"run={run.pk}", first)
    assert export_query.select_rows(ExportSubject.BUNDLE, f"run={run.pk}", owner).count() == 1
    judge(queue, first)
    for what in whats:
        assert TOLD in table(what, first), what
    assert export_query.select_rows(ExportSubject.BUNDLE, f"run={run.pk}", first).count() == 1


def test_a_link_tells_nobody_while_anybody_is_to_judge(run: Run, owner: User, first: User, client: Client) -> None:
    _, token = Share.issue(run, owner, timezone.now() + timedelta(days=1), names=True, comments=True)
    address = f"/shared/{token}/"
    assert TOLD in client.get(address).content.decode()
    queue = queued(run, first)
    for reader in (client, signed_in(owner), signed_in(first)):
        page = reader.get(address).content.decode()
        assert TOLD not in page
        assert BLIND in page
    judge(queue, first)
    assert TOLD in client.get(address).content.decode()


# --- sockets ---


@pytest.mark.django_db(transaction=True)
async def test_what_is_streamed_is_for_the_eyes_of_who_watches(redis_url: str, owner: User, first: User) -> None:
    run = await sync_to_async(watched)(owner)
    await sync_to_async(queued)(run, first)
    seen: dict[User, list[Any]] = {}
    async with Viewer(run, first) as one, Viewer(run, owner) as other:
        for viewer in (one, other):  # both are sent what was drawn for whoever may read as much
            await viewer.until("side")
        await tell(run, "reply", builders.replied(run.last_seq))
        for user, viewer in ((first, one), (owner, other)):
            await viewer.until("event", kind="reply")
            seen[user] = viewer.seen
    assert TOLD not in str(seen[first])
    assert BLIND in str(seen[first]), "beside the run that this one asks again"
    assert TOLD in str(seen[owner])


def watched(owner: User) -> Run:
    """A run under way whose page names the system."""
    asked = make_run(owner)
    row = make_run(owner, parent=asked, system_kind="synthetic", model=MODEL, layer=LAYER, unit=NUMBER)
    start = decoding.encode(builders.started()) | {"system": as_json_spec(), "versions": {"model": MODEL}}
    transcript.append(row.pk, "started", decoding.decode("started", start))
    row.refresh_from_db()
    return row


def test_what_is_drawn_for_nobody_in_particular_is_what_everybody_may_read(run: Run, first: User) -> None:
    assert TOLD in rendering.side(run)
    queued(run, first)
    assert TOLD not in rendering.side(run)

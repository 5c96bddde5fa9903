"""The pages of evaluations: full and empty, what stands above the figures, and how often they ask the database."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from experiments.evaluations.results import read_result
from experiments.models import Evaluation, EvaluationKind, LabelCheck, Run
from tests.support.evaluations import work
from tests.support.people import member, signed_in
from tests.support.seeding import evaluations
from workers.record.evaluations import CAVEAT

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(db: None) -> Client:
    return signed_in(member("viewer", "VIEWER"))


def text(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, path
    return response.content.decode()


def test_an_empty_list_says_what_evaluations_are_and_starts_one(as_owner: Client, viewer: Client) -> None:
    page = text(as_owner, "/evaluations/")
    assert "No evaluation yet" in page
    assert 'href="/evaluations/new/"' in page
    assert 'href="/evaluations/new/"' not in text(viewer, "/evaluations/")


def test_every_kind_has_its_page_with_the_caveat(viewer: Client, every_kind: list[Evaluation]) -> None:
    for row in every_kind:
        page = text(viewer, row.get_absolute_url())
        assert CAVEAT in page
        for figure in read_result(row).figures:
            assert figure.label in page
        assert page.count('role="img"') >= 2, "its plots"


def test_a_list_of_one_kind(viewer: Client, every_kind: list[Evaluation]) -> None:
    page = text(viewer, "/evaluations/?kind=bias")
    assert "Biases, made up" in page
    assert "Ablations, made up" not in page


def test_the_newest_stand_first(viewer: Client, every_kind: list[Evaluation]) -> None:
    newest_first = every_kind[::-1]
    for age, row in enumerate(newest_first):
        Evaluation.objects.filter(pk=row.pk).update(created=timezone.now() - timedelta(hours=age))
    page = text(viewer, "/evaluations/")
    places = [page.index(f'href="{row.get_absolute_url()}"') for row in newest_first]
    assert places == sorted(places)


def test_what_stopped_says_so_above_its_figures(viewer: Client, evaluation: Evaluation) -> None:
    page = text(viewer, evaluation.get_absolute_url())
    said = "Unfinished: 4 of 6"
    assert said in page
    assert page.index(said) < page.index('id="figures-head"')
    assert "It stopped at its budget of $1.00." in page
    assert "1 failed" in page
    assert "1 without a label" in page


def test_items_are_the_worst_first_and_lead_to_what_is_behind_them(viewer: Client, evaluation: Evaluation) -> None:
    page = text(viewer, evaluation.get_absolute_url())
    items = page[page.index('id="items"') :]
    assert items.index("Failed") < items.index(">Done<")
    first = evaluation.items.get(position=1)
    assert f'href="/runs/{first.run_id}/"' in items
    assert f'href="/checks/{first.label_check_id}/"' in items
    one = text(viewer, f"{evaluation.get_absolute_url()}?status=failed")
    assert one.count("<tr>") < page.count("<tr>")


def test_a_moving_one_follows_its_work_and_can_be_stopped(as_owner: Client, evaluation: Evaluation) -> None:
    work(evaluation, "running")
    page = text(as_owner, evaluation.get_absolute_url())
    assert 'hx-trigger="every 2s"' in page
    assert f'action="/evaluations/{evaluation.pk}/stop/"' in page
    part = as_owner.get(evaluation.get_absolute_url(), headers={"HX-Request": "true", "HX-Target": "progress"})
    following = part.content.decode()
    assert following.lstrip().startswith('<section id="progress"')
    assert '<div id="figures" class="result-section" hx-swap-oob="true">' in following
    evaluation.refresh_from_db()
    assert read_result(evaluation).figures[0].label in following


def test_a_caveat_stands_where_figures_do(as_owner: Client, evaluation: Evaluation) -> None:
    evaluation.result = {**evaluation.result, "figures": []}
    evaluation.save()
    page = text(as_owner, evaluation.get_absolute_url())
    assert "No figures yet" in page
    assert CAVEAT not in page


def test_bias_stands_with_its_two_sets_of_images(viewer: Client, every_kind: list[Evaluation]) -> None:
    row = next(each for each in every_kind if each.kind == EvaluationKind.BIAS)
    page = text(viewer, row.get_absolute_url())
    assert "Cars score lower" in page
    found = page[page.index('id="findings-head"') :]
    assert found.index("<figcaption>with “snow”") < found.index("<figcaption>without “snow”")
    assert found.count("<img") >= 12


def test_what_does_not_have_the_shape_is_left_out(viewer: Client, evaluation: Evaluation) -> None:
    known = evaluation.result
    odd = [{"key": 1}, "text", {"key": "a", "label": "odd", "value": "high", "n": 1}]
    evaluation.result = {**known, "figures": [*odd, *known["figures"]], "tables": "none", "plots": [None]}
    evaluation.save()
    page = text(viewer, evaluation.get_absolute_url())
    assert "conditional" in page
    assert ">odd<" not in page
    for result in ([], {"figures": {}}, {"plots": [{"key": "x", "title": "x", "kind": "pie", "x": "", "y": ""}]}):
        Evaluation.objects.filter(pk=evaluation.pk).update(result=result)
        assert "No figures yet" in text(viewer, evaluation.get_absolute_url())


def test_pages_ask_the_database_as_often_for_many_as_for_few(
    viewer: Client, owner: User, checks: list[LabelCheck], runs: list[Run], evaluation: Evaluation
) -> None:
    addresses = ["/evaluations/", evaluation.get_absolute_url(), "/runs/", "/units/toybox/layer4/?colour=check"]
    few = [count(viewer, address) for address in addresses]
    for seed in range(4):
        more = evaluations.make_evaluation(owner, EvaluationKind.SYNTHETIC, checks, runs, Random(seed))
    for place, item in enumerate(list(more.items.all()), 100):
        item.pk, item.evaluation, item.position = None, evaluation, place
        item.save()
    assert [count(viewer, address) for address in addresses] == few


def count(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as asked:
        assert client.get(address).status_code == 200
    return len(asked)


def test_two_of_a_kind_are_compared(viewer: Client, evaluation: Evaluation, every_kind: list[Evaluation]) -> None:
    other = next(each for each in every_kind if each.kind == EvaluationKind.SYNTHETIC)
    worse = other.items.get(position=3)
    worse.scores = {"right": False}
    worse.save()
    better = evaluation.items.get(position=3)
    better.scores = {"right": True}
    better.status = "done"
    better.save()
    page = text(viewer, f"/evaluations/compare/?a={evaluation.pk}&b={other.pk}")
    assert "Items that got worse" in page
    assert better.unit_name in page[page.index('id="worse-head"') :]
    assert "Unfinished in either" in page
    assert CAVEAT in page
    bias = next(each for each in every_kind if each.kind == EvaluationKind.BIAS)
    assert "of the same kind" in text(viewer, f"/evaluations/compare/?a={evaluation.pk}&b={bias.pk}")
    assert "This evaluation was deleted" in text(viewer, "/evaluations/compare/?a=999&b=998")


def test_layers_are_coloured_by_how_right_labels_are(viewer: Client, done: LabelCheck) -> None:
    LabelCheck.objects.filter(pk=done.pk).update(pearson=0.85)
    page = text(viewer, "/units/toybox/layer4/?colour=check&view=map")
    assert f'<a href="{done.unit.number}/" class="band-high"' in page
    assert 'class="band-none"' in page
    assert "band-" in text(viewer, "/units/toybox/?colour=check")
    assert "band-" not in text(viewer, "/units/toybox/")

"""The page of a check in every state, what stays hidden from whom, and the label check wherever the label is."""

from __future__ import annotations

import re
from random import Random

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from experiments.core import transcript
from experiments.display.label_checks import REMARKS, describe_check, read_check, read_figures
from experiments.label_checks.evidence import HIDDEN_TRUTH
from experiments.models import CheckStatus, Label, LabelCheck, Layer, ReviewQueue, Run, Share, Unit
from tests.support import builders, trials
from tests.support.builders import make_run
from tests.support.people import member, signed_in
from tests.support.seeding import evaluations
from workers.record.evaluations import CAVEAT
from workers.record.events import Ended
from workers.record.replies import Conclusion

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(db: None) -> Client:
    return signed_in(member("viewer", "VIEWER"))


def text(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, path
    return response.content.decode()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (CheckStatus.QUEUED, "A worker will show the unit"),
        (CheckStatus.RUNNING, "A worker shows the unit"),
        (CheckStatus.DONE, "On images that its author never saw"),
        (CheckStatus.UNFINISHED, "after 212 of 400 images"),
        (CheckStatus.UNTESTABLE, "describes nearly every image"),
        (CheckStatus.FAILED, "The check failed"),
    ],
)
def test_every_state_says_what_is_so(viewer: Client, checks: list[LabelCheck], status: str, words: str) -> None:
    check = next(each for each in checks if each.status == status)
    page = text(viewer, check.get_absolute_url())
    assert words in page
    assert CAVEAT in page
    assert ('hx-trigger="every 3s"' in page) == (status in (CheckStatus.QUEUED, CheckStatus.RUNNING))


def test_a_figure_from_before_datasets_were_split_is_marked_everywhere(viewer: Client, done: LabelCheck) -> None:
    assert "old images" not in text(viewer, done.get_absolute_url())
    LabelCheck.objects.filter(pk=done.pk).update(split="")
    done.refresh_from_db()
    page = text(viewer, done.get_absolute_url())
    assert "On images from before datasets were split" in page
    assert "exemplars of the unit were cut from these" in page
    assert "never saw</h2>" not in page
    mark = describe_check(done)
    assert (mark.note, mark.title.startswith("On images from before")) == ("old images", True)
    assert read_figures(done).remark == REMARKS[""]
    assert client_api(viewer, done) == ""


def test_a_run_measured_before_datasets_were_split_is_checked_again_on_the_probe(owner: User, done: LabelCheck) -> None:
    LabelCheck.objects.filter(pk=done.pk).update(split="")
    unit = done.unit
    where = {"model": unit.layer.model.name, "layer": unit.layer.name, "unit": unit.number}
    run = make_run(owner, **where, status="concluded", conclusion={"labels": [done.text]}, label_check=done)
    client = signed_in(owner)
    assert f'action="/runs/{run.pk}/check/new/"' in text(client, done.get_absolute_url())
    client.post(f"/runs/{run.pk}/check/new/")
    again = Run.objects.get(pk=run.pk).label_check
    assert again is not None
    assert (again.pk != done.pk, again.split) == (True, "probe")
    assert "Run check again" not in text(client, again.get_absolute_url())


def client_api(client: Client, check: LabelCheck) -> str:
    """The split that the API tells."""
    found = client.get(f"/api/v1/checks/{check.pk}").json()
    return str(found["split"])


def test_the_page_says_how_the_label_was_read(viewer: Client, done: LabelCheck) -> None:
    assert "Read as" not in text(viewer, done.get_absolute_url())
    LabelCheck.objects.filter(pk=done.pk).update(reading={"read_as": "<b>balls", "not_understood": ["purple unicorn"]})
    page = text(viewer, done.get_absolute_url())
    assert "Read as “&lt;b&gt;balls”. Not understood: “purple unicorn”." in page
    answer = viewer.get(reverse("api:read_label_check", args=[done.pk])).json()
    assert answer["reading"] == {"read_as": "<b>balls", "not_understood": ["purple unicorn"]}


def test_the_headline_stands_with_floors_ceiling_and_base_rate(viewer: Client, done: LabelCheck) -> None:
    page = text(viewer, done.get_absolute_url())
    for words in ("floor: label of unit 31: green cones", "ceiling: ball", "base rate", "For comparison with papers"):
        assert words in page
    head = page[page.index("headline") : page.index("For comparison")]
    assert not re.search(r"\bMAD\b", head)
    assert f"{done.pearson:.3g}"[:4] in head


def test_a_check_whose_result_does_not_fit_is_shown_as_far_as_it_does(viewer: Client, done: LabelCheck) -> None:
    known = done.result["natural"]
    for natural in (None, [], "text", {**known, "deciles": "many", "floors": [1], "activations": [None]}):
        LabelCheck.objects.filter(pk=done.pk).update(result={"natural": natural, "generated": 3})
        assert done.text in text(viewer, done.get_absolute_url())
    done.refresh_from_db()
    found = read_check(done)
    assert found.natural is not None
    assert (found.natural.floors, found.natural.dataset) == ((), "toybox")


@pytest.fixture
def hidden(owner: User) -> tuple[LabelCheck, Run]:
    """The check of a synthetic neuron whose run waits for a blind review."""
    unit = trials.unit(1, trials.layer("concept", ("cone", "ball")))
    check = evaluations.make_check(unit, "round things", CheckStatus.DONE, Random(0))
    place = {"model": unit.layer.model.name, "layer": unit.layer.name, "unit": 1}
    conclusion = {"labels": ["round things"], "description": "It likes round things."}
    run = make_run(
        owner, system_kind="synthetic", **place, status="concluded", conclusion=conclusion, label_check=check
    )
    ReviewQueue.objects.create(name="blind", owner=owner, blind=True).items.create(run=run, position=1)
    return check, run


def test_the_truth_stays_hidden_from_who_is_to_judge_it(hidden: tuple[LabelCheck, Run], viewer: Client) -> None:
    check, _ = hidden
    judge = signed_in(member("judge", "REVIEWER"))
    page = text(judge, check.get_absolute_url())
    assert HIDDEN_TRUTH in page
    assert "ceiling: ball" not in page
    assert not re.search(r"\btoys\b", page)
    assert "ceiling: ball" in text(viewer, check.get_absolute_url())


def test_a_review_shows_the_check_as_evidence(hidden: tuple[LabelCheck, Run]) -> None:
    check, run = hidden
    item = run.review_items.get()
    client = signed_in(member("judge", "REVIEWER"))
    blind = text(client, item.get_absolute_url())
    assert f'href="/checks/{check.pk}/"' not in blind, "it would anchor who judges"
    assert "ceiling" not in blind
    ReviewQueue.objects.update(blind=False)
    assert f'href="/checks/{check.pk}/"' in text(client, item.get_absolute_url())


# --- wherever a label stands ---


def test_a_mark_says_what_there_is(checks: list[LabelCheck]) -> None:
    said = {check.status: describe_check(check) for check in checks}
    assert [said[status].words for status in (CheckStatus.QUEUED, CheckStatus.UNTESTABLE, CheckStatus.FAILED)] == [
        "checking…",
        "cannot be tested",
        "check failed",
    ]
    done = said[CheckStatus.DONE]
    assert done.measure == "r"
    assert done.interval is not None
    assert "AUPRC" in done.title
    assert describe_check(None).words == "not checked"
    alone = LabelCheck(status=CheckStatus.DONE, generated_auc=0.9)
    assert (describe_check(alone).measure, describe_check(alone).value) == ("AUC", "0.90")


@pytest.fixture
def concluded(owner: User, done: LabelCheck) -> Run:
    run = make_run(owner, unit=done.unit.number)
    transcript.append(run.pk, "started", builders.started())
    transcript.append(run.pk, "concluded", Ended("", Conclusion("It likes red.", (done.text,))))
    Run.objects.filter(pk=run.pk).update(label_check=done)
    Label.objects.filter(run=run).update(label_check=done)
    run.refresh_from_db()
    return run


def test_the_team_finds_it_on_every_page_with_the_label(viewer: Client, concluded: Run, done: LabelCheck) -> None:
    other = make_run(concluded.owner)
    pages = (
        f"/runs/{concluded.pk}/",
        "/runs/",
        f"/units/toybox/layer4/{done.unit.number}/",
        f"/compare/?run={concluded.pk}&run={other.pk}",
    )
    for path in pages:
        assert f'href="/checks/{done.pk}/"' in text(viewer, path), path


def test_a_shared_run_shows_it_without_a_link(client: Client, concluded: Run, done: LabelCheck) -> None:
    share, token = Share.issue(concluded, concluded.owner, share_end(), names=False, comments=False)
    page = text(client, f"/shared/{token}/")
    assert share.run_id == concluded.pk
    assert "check-mark" in page
    assert "/checks/" not in page


def share_end():
    from datetime import timedelta

    from django.utils import timezone

    return timezone.now() + timedelta(days=1)


def test_runs_are_filtered_and_sorted_by_their_check(viewer: Client, concluded: Run, owner: User) -> None:
    make_run(owner, question="Never checked?")
    r = concluded.label_check.pearson if concluded.label_check else 0.0
    assert "Never checked?" not in text(viewer, f"/runs/?check=>={r - 0.01:.2f}")
    assert concluded.question in text(viewer, f"/runs/?check=>={r - 0.01:.2f}")
    assert concluded.question not in text(viewer, f"/runs/?check=<{r - 0.01:.2f}")
    assert "Never checked?" in text(viewer, "/runs/?check=none")
    assert "is no bound of r" in text(viewer, "/runs/?check=high")
    listed = text(viewer, "/runs/?sort=-check")
    assert listed.index(f"/runs/{concluded.pk}/") < listed.index("Never checked?")


# --- asking for one ---


def test_a_label_is_checked_once_whoever_asks(as_owner: Client, owner: User, redis_url: str) -> None:
    unit = trials.unit(3)
    label = trials.label(unit, "red balls", "person")
    page = text(as_owner, f"/labels/{label.pk}/check/")
    assert "red balls" in page
    assert as_owner.get(f"/units/toybox/layer4/{unit.number}/").content.decode().count("Check this label") == 1
    response = as_owner.post(f"/labels/{label.pk}/check/")
    check = LabelCheck.objects.get()
    assert response["Location"] == check.get_absolute_url()
    label.refresh_from_db()
    assert label.label_check == check
    as_owner.post(f"/labels/{label.pk}/check/")
    assert LabelCheck.objects.count() == 1


def test_what_a_run_concluded_is_checked(as_owner: Client, owner: User, redis_url: str) -> None:
    trials.layer()
    run = make_run(owner, status="concluded", conclusion={"labels": ["red balls", "red cones"]})
    assert as_owner.post(f"/runs/{run.pk}/check/new/").status_code == 302
    run.refresh_from_db()
    assert run.label_check is not None
    assert run.label_check.text == "red balls OR red cones"
    assert "checking…" in text(as_owner, f"/runs/{run.pk}/check/")


@pytest.mark.parametrize("fields", [{"status": "running"}, {"status": "concluded", "conclusion": {}}])
def test_a_run_without_a_label_is_refused_with_the_reason(as_owner: Client, owner: User, fields: dict) -> None:
    trials.layer()
    run = make_run(owner, **fields)
    response = as_owner.post(f"/runs/{run.pk}/check/new/")
    assert response.status_code == 400
    assert f"Run {run.pk}" in response.content.decode()
    assert not LabelCheck.objects.exists()


def test_a_label_without_a_unit_is_not_found(as_owner: Client) -> None:
    label = Label.objects.create(text="lost", source="person")
    assert as_owner.get(f"/labels/{label.pk}/check/").status_code == 404
    assert not Unit.objects.exists()
    assert not Layer.objects.exists()

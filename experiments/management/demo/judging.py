"""The scenes in which the team judges: a blind queue, a final verdict, labels side by side, a link and a study."""

from __future__ import annotations

from datetime import timedelta
from itertools import count

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils import timezone

from experiments.core.actors import Actor
from experiments.judging import actions as judging
from experiments.management.demo.asking import TOYBOX, list_answers, write
from experiments.management.demo.team import Team
from experiments.models import Layer, PairwiseTrial, Review, ReviewItem, ReviewQueue, ReviewState, Run, Study
from experiments.pairwise import actions as trials
from experiments.pairwise import judging as pairs
from experiments.pairwise.desk import TrialDesk
from experiments.pairwise.form import NewTrial
from experiments.pairwise.sources import AGENT, CORRECTION, list_sources
from experiments.reviews import actions as reviews
from experiments.sharing import actions as sharing
from experiments.studies import actions as studies
from experiments.studies.drafts import ItemDraft
from workers.record.statuses import Status

QUEUE, OPEN_QUEUE, TRIAL = "Units of the first week", "Neurons with a known truth", "Agent or reviewer"
STUDY, STUDIED = "What toybox-net sees", 4
HOLDS, HALF = 0.92, 0.5
"""r of a label's check from which reviewers accept it, and from which they would correct it."""


def review_units(team: Team) -> None:
    """Let three people review the same runs without seeing each other's opinions; one settles differences."""
    found = list_answers(team.researcher)
    queue = _make_queue(team.researcher, found, QUEUE, "Does the label say what the images show?", team.reviewers)
    for place, person in enumerate(team.reviewers):
        for item in queue.items.select_related("run__label_check").order_by("position"):
            _review(person, item, place)
    # Two are settled; further ones stay disputed, to show that state as well.
    disputed = [each for each in queue.items.all() if len(_list_verdicts(each)) > 1]
    for item in disputed[:2]:
        if not item.adjudications.exists():
            verdict = max(_list_verdicts(item))
            reviews.settle_item(team.owner, item.pk, verdict, "", "The counter-examples decide: see the label check.")
    write(team.reviewer, found.first(), "@second-reviewer we differ on this one: are the near misses enough for you?")
    write(team.second_reviewer, found.first(), "Two more grounds would have convinced me.")


def leave_queue(team: Team) -> None:
    """Leave a queue waiting for the person who tries the demo."""
    found = Run.objects.filter(owner=team.second_researcher.person, status=Status.CONCLUDED).exclude(model=TOYBOX)
    _make_queue(team.second_researcher, found.order_by("pk"), OPEN_QUEUE, "Blind: what was it?", [])


def compare_labels(team: Team) -> None:
    """Compare the agent's labels with the reviewers' corrections, pairwise and blind."""
    if Review.objects.filter(state=ReviewState.SUBMITTED).exclude(corrected_label="").exists():
        trial = PairwiseTrial.objects.filter(name=TRIAL).first() or _make_trial(team.owner)
        for place, person in enumerate(team.reviewers if trial.closed is None else []):
            # Each person begins at another turn, so that their answers differ.
            for turn in count(place):
                following = TrialDesk(trial).list_next(person.person, 1)
                if not following:
                    break
                # The pair's order is drawn for each person, so no source is favoured.
                said = pairs.FIRST if turn % 3 else pairs.SECOND
                judging.answer(person, "trials", trial.pk, following[0].pk, said, 6.0 + turn)
        if trial.closed is None:
            trials.close_trial(team.owner, trial.pk)


def share_run(team: Team) -> None:
    """Share the best run with people outside by a link."""
    run = list_answers(team.researcher).order_by("-label_check__pearson", "pk").first()
    if run is not None and not run.shares.exists():
        sharing.share(team.researcher, run, timezone.now() + timedelta(days=30), names=False, comments=False)


def publish_study(team: Team) -> None:
    """Publish the best answers with their units, as one study."""
    if Study.objects.filter(title=STUDY).exists():
        return
    best = list(list_answers(team.researcher).order_by("-label_check__pearson", "pk")[:STUDIED])
    layers = {row.name: row for row in Layer.objects.filter(model__name=TOYBOX).select_related("model")}
    units = [ItemDraft(place=(layers[run.layer], run.unit)) for run in best if run.layer in layers]
    runs = [ItemDraft(run=run, caption="The whole run, from question to check.") for run in best[:1]]
    text = "Units of toybox whose labels held on images that the agent never saw, and how it came to them."
    studies.create_study(team.researcher, STUDY, [*units, *runs], text)


# --- each thing once ---


def _make_queue(actor: Actor, runs: QuerySet[Run], name: str, note: str, people: list[Actor]) -> ReviewQueue:
    if found := ReviewQueue.objects.filter(name=name).first():
        return found
    queue = ReviewQueue(name=name, note=note, reviewers_per_item=len(people) or 1, blind=True)
    return reviews.make_queue(actor, runs, queue, [each.person for each in people])


def _review(actor: Actor, item: ReviewItem, place: int) -> None:
    """Submit one reviewer's opinion of a run: by the check of its label, with one exception in seven items each."""
    if item.reviews.filter(reviewer=actor.person, state=ReviewState.SUBMITTED).exists():
        return
    check = item.run.label_check
    r = (check.pearson if check else None) or 0.0
    verdicts = ["accept", "revise", "reject"]
    grade = (r < HOLDS) + (r < HALF)
    # Without exceptions all reviewers would agree, and agreement would be trivial.
    if (2 * item.position + place) % 7 == 0:
        grade += 1 if grade < 2 else -1
    scores = dict(zip(("supported", "specific", "complete", "confounds", "samples"), (0, 1, 0, 1, 0), strict=True))
    fields = {name: max(5 - 2 * grade - off * (place % 2), 1) for name, off in scores.items()}
    label = _correct(item.run) if grade else ""
    fields |= {"verdict": verdicts[grade], "corrected_label": label, "note": ""}  # type: ignore[dict-item]
    draft = reviews.take_item(actor, item)
    reviews.submit(actor, item.pk, draft.version, fields, item.run.last_seq)


def _correct(run: Run) -> str:
    """Write a reviewer's correction: less than the agent claimed."""
    words = str(run.labels[0]).split()
    return " ".join(words[1:]) if len(words) > 1 else f"{words[0]} and what looks like one"


def _list_verdicts(item: ReviewItem) -> set[str]:
    return set(item.reviews.filter(state=ReviewState.SUBMITTED).values_list("verdict", flat=True))


def _make_trial(actor: Actor) -> PairwiseTrial:
    given = QueryDict(mutable=True)
    given.update({"name": TRIAL, "repeats": "0", "known_answers": "0"})
    given.setlist("source", [AGENT, CORRECTION])
    return trials.make_trial(actor, NewTrial(given, list_sources()))

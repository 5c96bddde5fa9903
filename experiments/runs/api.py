"""Runs: finding and reading them; tags of runs, of experiments and of the images that they logged."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field, Query, Router, Schema
from pydantic import StringConstraints

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, Id, Number, find
from experiments.api.filters import read_filters, with_filters
from experiments.api.versions import must_match
from experiments.core import tagging
from experiments.core.actors import Actor
from experiments.core.errors import InvalidFilters
from experiments.core.system_names import SystemNameMasker
from experiments.display import cited_figures, verdicts
from experiments.models import Experiment, Hypothesis, Observation, Role, Run, TokenScope
from experiments.models.run import VERDICT_COLUMNS
from experiments.models.tag import TAG_CHARS
from experiments.runs import lists
from experiments.runs.filters import FILTERS
from workers.record.limits import DEFAULT_LIMITS

router = Router(tags=["Runs"])


class ConclusionOut(Schema):
    description: str = ""
    labels: list[str] = []
    reasoning: str = ""
    bias: str = ""
    domain: str = Field("", description="of a function: for which inputs the answer holds")
    code: str = Field("", description="of a function: Python whose last function computes it")


class ScoreOut(Schema):
    """How right the conclusion about a function is on inputs that the agent has not seen."""

    outcome: str = Field("", description="scored, or why the conclusion was not")
    success: bool = Field(False, description="NMSE below 0.1, 10 of 10 held-out texts, or 7 of 10 choices")
    error: float | None = Field(None, description="NMSE over 256 inputs; null of texts, and where it is not finite")
    right: int | None = Field(None, description="of 10 held-out texts, or choices by the description")
    ceiling: int | None = Field(None, description="choices that the same judge has right by the true description")


class BiasOut(Schema):
    """A bias that the conclusion states, and what the run's images say of it; images of one prompt are one case."""

    text: str = Field("", description="the line of the conclusion")
    context: str = ""
    fresh: bool = Field(False, description="whether the images were drawn after it was stated, of new prompts")
    inside: int = Field(0, description="prompts with the context")
    outside: int = Field(0, description="prompts without it")
    inside_mean: float | None = None
    outside_mean: float | None = None
    effect: float | None = Field(None, description="standardised difference, inside less outside (Hedges' g)")
    low: float | None = Field(None, description="of its 95 % interval")
    high: float | None = None
    p: float | None = Field(None, description="of a permutation test of the difference of means")
    adjusted_p: float | None = Field(
        None, description="corrected for all statements that were tested, or for all contexts that were tried"
    )
    holds: bool = Field(False, description="whether it goes the stated way and the corrected p is below 0.05")
    why: str = Field("", description="why it could not be tested")


class CitedOut(Schema):
    """A figure that the conclusion cites, counted again."""

    cited: str = Field(description="as the conclusion has it", examples=["n=4"])
    record: str = Field(description="what the run recorded", examples=["n=3 under “a red ball on grass”"])
    agrees: bool


class VerdictOut(Schema):
    """What reviewers made of a run, as far as you may see it."""

    value: str = Field(description="accept, revise, reject, or split where less than half agree")
    final: bool = Field(description="whether one person settled it, with a reason")
    reviews: int
    agreeing: int = Field(description="reviews with this verdict")
    corrected_labels: list[str] = Field(description="given instead of the run's, the final one first")


class RunOut(Schema):
    """A run: what was asked, how it stands, what it took and what came of it."""

    id: int
    url: str = Field(description="its page")
    question: str
    task: str
    system_kind: str
    model: str
    layer: str
    unit: int | None
    system: str = Field(
        description="these in one line; a number in their place while you are to judge a synthetic neuron unseen"
    )
    dataset: str
    toolset: str
    backbone: str
    backbone_model: str
    limits: dict[str, int | float | None]
    seed: int
    owner: str
    sweep: int | None = Field(description="the sweep that it is of")
    parent: int | None = Field(description="the run that it comes from")
    fork_round: int | None = Field(description="the last round copied from there; null where it was asked anew")
    created: datetime
    started: datetime | None
    ended: datetime | None
    status: str
    reason: str
    stopping: bool
    pausing: bool = Field(description="whether it pauses once the round under way is over")
    rounds: int
    experiments: int
    observations: int
    last_seq: int = Field(description="of its newest event")
    prompt_tokens: int
    completion_tokens: int
    cost: float | None = Field(description="US dollars; null where the price of something it took is not known")
    seconds: float
    exemplar_mean: float | None
    best_activation: float | None
    conclusion: ConclusionOut
    score: ScoreOut | None = Field(None, description="of a run on a function that has ended")
    biases: list[BiasOut] = Field([], description="that it states, tested when it ended; the greatest effect first")
    recounted: list[CitedOut] = Field(
        [], description="figures of the conclusion that could be counted again; given for a run alone, not in lists"
    )
    versions: dict[str, Any]
    tags: list[str]
    verdict: VerdictOut | None = Field(
        None, description="null before there is one, or while you are to review it unseen"
    )


class HypothesisKept(Schema):
    number: int
    text: str
    status: str
    reason: str


class HypothesisOut(HypothesisKept):
    """One line of the agent's list in one round, and what it said of it later."""

    round: int


@with_filters(FILTERS)
class RunFilters(Schema):
    """As on the page Runs; what is left out does not matter."""


class RunOrder(Schema):
    sort: Literal["newest", "oldest"] = "newest"


SAME = (
    *("id", "question", "task", "system_kind", "toolset", "backbone", "backbone_model"),
    *("seed", "created", "started", "ended", "status", "reason", "rounds", "last_seq", "prompt_tokens"),
    *("completion_tokens", "seconds", "exemplar_mean", "best_activation"),
)


def _run_out(names: SystemNameMasker, run: Run) -> RunOut:
    return RunOut(
        system=names.of(run),
        versions=names.versions(run),
        **names.place(run),
        url=run.get_absolute_url(),
        dataset=run.options.get("dataset", ""),
        owner=run.owner.get_username(),
        sweep=run.sweep_id,
        parent=run.parent_id,
        stopping=run.cancel_requested and not run.has_ended,
        pausing=run.is_pausing,
        fork_round=run.fork_round or None,
        experiments=run.experiment_count,
        observations=run.observation_count,
        cost=run.known_cost,
        conclusion=ConclusionOut.model_validate(run.conclusion),
        score=ScoreOut.model_validate(run.score) if run.score else None,
        biases=[BiasOut.model_validate(each) for each in run.biases],
        tags=[tag.name for tag in run.tags.all()],
        limits={name: run.limits.get(name) for name in DEFAULT_LIMITS},
        **{name: getattr(run, name) for name in SAME},
    )


def read_out(pk: int, viewer: User) -> RunOut:
    """Return a run, with its verdict and its system as the viewer may see them."""
    row = find(Run.objects.select_related("owner").prefetch_related("tags"), pk=pk)
    found = _run_out(SystemNameMasker(viewer), row)
    _fill_verdicts([found], viewer)
    # For one run alone, since it reads all that the run logged.
    found.recounted = [CitedOut(**vars(each)) for each in cited_figures.recount(row, row.conclusion)]
    return found


def _fill_verdicts(shown: list[RunOut], viewer: User) -> None:
    """Add the verdicts that this person may see."""
    judged = Run.objects.filter(pk__in=[run.id for run in shown]).exclude(verdict="")
    seen = verdicts.find_verdicts(judged.only(*VERDICT_COLUMNS), viewer)
    for run in shown:
        if found := seen.get(run.id):
            run.verdict = VerdictOut(
                value=found.value,
                final=found.is_final,
                reviews=found.opinions,
                agreeing=found.agreeing,
                corrected_labels=list(dict.fromkeys(each.text for each in found.corrections)),
            )


@router.get("/runs", response=ListPage[RunOut], summary="List runs")
def list_runs(
    request: HttpRequest, asked: Query[RunFilters], order: Query[RunOrder], paging: Query[Paging]
) -> ListPage[RunOut]:
    """Filtered as on the page Runs."""
    user = authorize(request)
    found = lists.runs_from(read_filters(asked), user)
    if found.problems:
        raise InvalidFilters(found.problems)
    # The order of the page is replaced: pages of the API continue by key.
    rows = found.runs.select_related("owner").prefetch_related("tags")
    shown = page(
        request, rows, ["-pk" if order.sort == "newest" else "pk"], paging, partial(_run_out, SystemNameMasker(user))
    )
    _fill_verdicts(shown.items, user)
    return shown


@router.get("/runs/{pk}", response=RunOut, summary="Read a run")
def read_run(request: HttpRequest, pk: Id) -> RunOut:
    return read_out(pk, authorize(request))


@router.get("/runs/{pk}/hypotheses", response=ListPage[HypothesisOut], summary="List the hypotheses of a run")
def list_hypotheses(request: HttpRequest, pk: Id, paging: Query[Paging]) -> ListPage[HypothesisOut]:
    """Round by round."""
    authorize(request)
    rows = Hypothesis.objects.filter(run=find(Run.objects.all(), pk=pk))
    return page(request, rows, ["round", "number"], paging, HypothesisOut.from_orm)


# --- tags -------------------------------------------------------------------------------------------

Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=TAG_CHARS, pattern=NO_NUL)]


class Tags(Body):
    """Short words by which a team finds something again."""

    tags: list[Tag] = Field(max_length=50)


def tags_of(row: tagging.Tagged) -> Tags:
    return Tags(tags=sorted(tag.name for tag in row.tags.all()))


def replace(request: HttpRequest, rows: QuerySet[Any], wanted: Tags, **which: Any) -> Tags:
    """Give the row these tags, if the client knows its current ones. Raises Refusal."""
    with transaction.atomic():
        # Locked, so that the tags cannot change between the comparison and the edit.
        row = find(rows.select_for_update(), **which)
        must_match(request, tags_of(row))
        tagging.set_tags(Actor.of(request, Role.RESEARCHER), row, wanted.tags)
    return tags_of(row)


@router.get("/runs/{pk}/tags", response=Tags, summary="Read the tags of a run")
def read_tags(request: HttpRequest, pk: Id) -> Tags:
    authorize(request)
    return tags_of(find(Run.objects.all(), pk=pk))


@router.put("/runs/{pk}/tags", response=Tags, summary="Set the tags of a run")
def set_tags(request: HttpRequest, pk: Id, wanted: Tags) -> Tags:
    """Replace all tags. Needs the ETag of the tags in If-Match, so that no edit of another user is lost."""
    authorize(request, Role.RESEARCHER, TokenScope.WRITE)
    return replace(request, Run.objects.all(), wanted, pk=pk)


@router.get("/runs/{pk}/experiments/{number}/tags", response=Tags, summary="Read the tags of an experiment")
def read_experiment_tags(request: HttpRequest, pk: Id, number: Number) -> Tags:
    authorize(request)
    return tags_of(find(Experiment.objects.all(), run=pk, number=number))


@router.put("/runs/{pk}/experiments/{number}/tags", response=Tags, summary="Set the tags of an experiment")
def set_experiment_tags(request: HttpRequest, pk: Id, number: Number, wanted: Tags) -> Tags:
    """All of them. Needs the ETag of the tags in If-Match."""
    authorize(request, Role.RESEARCHER, TokenScope.WRITE)
    return replace(request, Experiment.objects.all(), wanted, run=pk, number=number)


@router.get("/observations/{pk}/tags", response=Tags, summary="Read the tags of an image that a run logged")
def read_observation_tags(request: HttpRequest, pk: Id) -> Tags:
    authorize(request)
    return tags_of(find(Observation.objects.all(), pk=pk))


@router.put("/observations/{pk}/tags", response=Tags, summary="Set the tags of an image that a run logged")
def set_observation_tags(request: HttpRequest, pk: Id, wanted: Tags) -> Tags:
    """All of them. Needs the ETag of the tags in If-Match."""
    authorize(request, Role.RESEARCHER, TokenScope.WRITE)
    return replace(request, Observation.objects.all(), wanted, pk=pk)

"""AIM's claims, our figures for each, and how to measure what is missing.

AIM is the paper that this application implements. It gives figures without intervals, autoencoders or code, so they are
claims to test. `workers.jobs.evaluations` measures ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse

from experiments.evaluations.results import read_result
from experiments.models import Evaluation, EvaluationKind, PairwiseTrial
from experiments.pairwise.results import trial_results
from experiments.pairwise.sources import AGENT, PERSON, words
from workers.record.evaluations import Figure

LIMITS = (
    "AIM's own limits: an agent may confirm what it expects, and generated images may not show what was asked for; "
    "negative results are not evidence of absence."
)
_ASK = (
    "Ask people: on the page of the evaluation, Labels two by two, tick the sources and Compare; judge under Review; "
    "close the trial."
)
Sort = tuple[EvaluationKind, bool]
"""Kind of an evaluation, and whether it uses latents instead of units."""
_PREFERENCE = "A preference needs judges; differences of r are a separate measure. "


@dataclass(frozen=True)
class OwnFigure:
    """A figure measured here, in an evaluation or by people in a pairwise trial."""

    figure: Figure
    evaluation: int | None = None
    trial: int | None = None

    @property
    def words(self) -> str:
        return f"trial {self.trial}" if self.evaluation is None else f"evaluation {self.evaluation}"

    @property
    def url(self) -> str:
        if self.evaluation is None:
            return reverse("pairwise-trial", args=[self.trial])
        return reverse("evaluation", args=[self.evaluation])


@dataclass(frozen=True)
class ClaimRow:
    """A claim with our figures. `claimed` is None if the paper gives no number."""

    key: str
    words: str
    claimed: float | None
    own: Sequence[OwnFigure]
    note: str


@dataclass(frozen=True)
class _Claim:
    key: str
    words: str
    claimed: float | None
    kinds: tuple[EvaluationKind, ...]
    measures: Callable[[str], bool]
    """True if the figure with this key belongs to the claim."""
    note: str


def _is_preference(key: str, *ends: str) -> bool:
    return key.startswith("two_way.") and any(end in key.rpartition(".")[2] for end in ends)


def _is_of_people(key: str) -> bool:
    return _is_preference(key, "agent-person", "person-agent")


def _is_of_circuits(key: str) -> bool:
    return key.startswith("planted.all.") or ("faithfulness_10." in key and not key.endswith((".lift", ".bare")))


_OF_CIRCUITS = "aim-people"
_CLAIMS = (
    _Claim(
        "aim-milan",
        "AIM over MILAN, labels of neurons preferred",
        0.78,
        (EvaluationKind.LATENTS,),
        lambda key: key == "difference.neurons.agent-one-shot.pearson" or _is_preference(key, "agent-one-shot"),
        _PREFERENCE + _ASK,
    ),
    _Claim(
        "aim-maia",
        "AIM over MAIA, labels of neurons preferred",
        0.68,
        (EvaluationKind.LATENTS,),
        lambda key: (key.startswith("by_latent.") and key.endswith(".pearson")) or _is_preference(key, "agent-sae:"),
        _PREFERENCE + "The label by the latent that adds most represents AIM, the agent's represents MAIA. " + _ASK,
    ),
    _Claim(
        _OF_CIRCUITS,
        "AIM over people, labels of circuits preferred",
        0.52,
        (),
        _is_of_people,
        "Ask about circuits on their pages, once as the agent and once as a person (agent Person); then Review, "
        "Pairwise trials, New trial: tick Any agent, Person and Circuits. The newest closed trial is shown here.",
    ),
    _Claim(
        "maia-people",
        "MAIA over people, labels of neurons preferred (MAIA's own paper: 0.53)",
        0.56,
        (EvaluationKind.UNITS, EvaluationKind.SYNTHETIC),
        _is_of_people,
        "People have to label units first: manage.py evaluate units --people. " + _ASK,
    ),
    _Claim(
        "people-milan",
        "People over MILAN, labels of neurons preferred",
        0.83,
        (EvaluationKind.UNITS, EvaluationKind.SYNTHETIC),
        lambda key: _is_preference(key, "person-one-shot", "one-shot-person"),
        "People have to label units first: manage.py evaluate units --people. " + _ASK,
    ),
    _Claim(
        "table2",
        "Table 2: accuracy with what the agent calls selective (MAIA, of units: 0.837)",
        0.852,
        (EvaluationKind.SPURIOUS,),
        lambda key: key in ("accuracy.agent_refit", "accuracy.original_refit", "accuracy.l1_top", "accuracy.l1_all"),
        "AIM's text says ResNet-152, its table 512 units, as ResNet-18 has; all other rows are MAIA's. Ours are the "
        "newest of units and the newest of latents, each judged in a run: manage.py evaluate spurious, and the same "
        "with --latents 64.",
    ),
    _Claim(
        "figure5",
        "Figure 5: what each tool contributes",
        None,
        (EvaluationKind.ABLATION,),
        lambda key: key.endswith(".right"),
        "The figure has no numbers. Ours: share with exactly the right concepts.",
    ),
    _Claim(
        "circuits",
        "Circuits of latents explain what a network does",
        None,
        (EvaluationKind.CIRCUITS,),
        _is_of_circuits,
        "AIM defines no circuit and measures none. Faithfulness is 1 where 10 % of the nodes give the whole logit.",
    ),
)  # fmt: skip
KINDS = tuple(dict.fromkeys(kind for claim in _CLAIMS for kind in claim.kinds))
"""Kinds of evaluations that test a claim."""


def sort_of(evaluation: Evaluation) -> Sort:
    """Return what it measures. Evaluations of units and of latents are kept apart."""
    return EvaluationKind(evaluation.kind), bool(evaluation.options.get("latents"))


def set_beside(evaluations: Mapping[Sort, Evaluation]) -> list[ClaimRow]:
    """Return every claim with the figures of these evaluations, those of units before those of latents."""
    # Sorted: False before True puts units before latents. Unsaved steps of a command have no result.
    found = {sort: read_result(evaluations[sort]).figures for sort in sorted(evaluations) if evaluations[sort].pk}
    return [
        ClaimRow(
            claim.key,
            claim.words,
            claim.claimed,
            [
                OwnFigure(figure, evaluations[sort].pk)
                for kind in claim.kinds
                for sort, figures in found.items()
                if sort[0] == kind
                for figure in figures
                if claim.measures(figure.key)
            ]
            + (_read_circuit_trial() if claim.key == _OF_CIRCUITS else []),
            claim.note,
        )
        for claim in _CLAIMS
    ]


def _read_circuit_trial() -> list[OwnFigure]:
    """Return people's preference in the newest closed trial of circuits with labels of the agent and of people."""
    rows = PairwiseTrial.objects.filter(closed__isnull=False, pairs__unit__members__isnull=False).order_by("-pk")
    wanted = {AGENT, PERSON}
    # The join repeats a trial for each of its pairs.
    trial = next((row for row in rows.distinct() if wanted <= set(row.sources)), None)
    if trial is None:
        return []
    names = words(AGENT), words(PERSON)
    cells = (cell for _, row in trial_results(trial).together.rows for cell in row if cell)
    # The table has both directions: this is the agent's share.
    found = next(cell.preferred for cell in cells if (cell.row, cell.column) == names)
    label = "The agent's labels of circuits preferred to people's"
    why = "" if found.n else "no pair was decided"
    figure = Figure("trial.circuits.agent-person", label, found.value, found.low, found.high, found.n, note=why)
    return [OwnFigure(figure, trial=trial.pk)]


def find_newest() -> dict[Sort, Evaluation]:
    """Return the newest evaluation with results of each sort."""
    rows = Evaluation.objects.filter(kind__in=KINDS, planned=True).exclude(result={}).order_by("created", "pk")
    # Oldest first, so that newer ones replace them
    return {sort_of(row): row for row in rows}

"""Results of a closed trial: which source is preferred, and how reliable each judge is.

Only pairs of two sources decide preferences; repeated pairs and attention checks measure the judge. People and
backbones are never counted together. Votes that decide nothing ("cannot tell", unreadable answers) are counted
separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from experiments.core import parts
from experiments.core.display_name import person
from experiments.models import Answer, Judge, PairKind, PairwiseTrial, Vote
from experiments.pairwise import sources
from experiments.pairwise.proportions import Proportion, measure_proportion


@dataclass(frozen=True)
class PreferenceCell:
    """How often the source of the row was preferred to that of the column, among the votes that decide."""

    row: str
    column: str
    preferred: Proportion
    neither: int
    unread: int


@dataclass(frozen=True)
class Preferences:
    """Preferences of some judges together: the sources, and a row of cells for each; None on the diagonal."""

    sources: Sequence[str]
    rows: Sequence[tuple[str, Sequence[PreferenceCell | None]]]
    votes: int
    pairs: int


@dataclass(frozen=True)
class JudgeScore:
    """How reliable a judge is.

    `repeated`: same answer to the same pair. `known_answers`: right answers to attention checks. `first`: how often
    the label shown first was chosen, about one half if the order does not matter.
    """

    judge: Judge
    name: str
    answered: int
    total: int
    neither: int
    unread: int
    repeated: Proportion
    known_answers: Proportion
    first: Proportion
    seconds: float | None
    table: Preferences


@dataclass(frozen=True)
class Results:
    """Results of people, each and together, and of each backbone alone."""

    together: Preferences
    people: Sequence[JudgeScore]
    backbones: Sequence[JudgeScore]

    @property
    def judges(self) -> list[JudgeScore]:
        return [*self.people, *self.backbones]


def trial_results(trial: PairwiseTrial, model: str = "") -> Results:
    """Return the results of a closed trial, or of the units of one model. Three queries."""
    judges = list(trial.judges.select_related("user", "job"))
    # By the stored name: the unit itself may have left the catalogue.
    votes = list(Vote.objects.filter(judge__trial=trial, pair__unit_name__startswith=model).select_related("pair"))
    total = trial.pairs.count()
    people = [judge for judge in judges if judge.user_id]
    of_people = {judge.pk for judge in people}

    def scores(some: Iterable[Judge]) -> list[JudgeScore]:
        return [_score(trial, judge, [each for each in votes if each.judge_id == judge.pk], total) for judge in some]

    together = _count_preferences(trial, [each for each in votes if each.judge_id in of_people])
    return Results(together, scores(people), scores(judge for judge in judges if not judge.user_id))


def name_of(judge: Judge) -> str:
    """Return the name of a person, or the model of a backbone."""
    if judge.user_id:
        return person(judge.user)
    return judge.backbone_model or parts.label_backbone(judge.backbone)


# --- preferences ---


def _count_preferences(trial: PairwiseTrial, votes: Sequence[Vote]) -> Preferences:
    plain = [vote for vote in votes if vote.pair.kind == PairKind.PLAIN]
    keys: list[str] = list(trial.sources)
    rows = [
        (sources.words(row), [_cell(row, column, plain) if row != column else None for column in keys]) for row in keys
    ]
    return Preferences([sources.words(key) for key in keys], rows, len(plain), len({vote.pair_id for vote in plain}))


def _cell(row: str, column: str, votes: Iterable[Vote]) -> PreferenceCell:
    some = [vote for vote in votes if {vote.pair.source_a, vote.pair.source_b} == {row, column}]
    given = Counter(vote.answer for vote in some)
    preferred = _count_votes(
        [each for each in some if get_preferred_source(each)], lambda each: get_preferred_source(each) == row
    )
    names = sources.words(row), sources.words(column)
    return PreferenceCell(*names, preferred, given[Answer.NEITHER], given[Answer.UNREAD])


def get_preferred_source(vote: Vote) -> str:
    """Return the source of the chosen label; "" if none."""
    return {Answer.A: vote.pair.source_a, Answer.B: vote.pair.source_b}.get(Answer(vote.answer), "")


# --- judges ---


def _score(trial: PairwiseTrial, judge: Judge, votes: Sequence[Vote], total: int) -> JudgeScore:
    # An answer that could not be read says nothing of a judge's consistency.
    by_pair = {vote.pair_id: vote for vote in votes if vote.answer != Answer.UNREAD}
    again = [each for each in by_pair.values() if each.pair.original_id in by_pair]
    known = [each for each in by_pair.values() if each.pair.kind == PairKind.KNOWN]
    decided = [each for each in votes if each.answer in (Answer.A, Answer.B)]
    took = [each.seconds for each in votes if each.seconds is not None]
    given = Counter(each.answer for each in votes)
    return JudgeScore(
        judge,
        name_of(judge),
        answered=len(votes),
        total=total,
        neither=given[Answer.NEITHER],
        unread=given[Answer.UNREAD],
        repeated=_count_votes(again, lambda each: each.answer == by_pair[each.pair.original_id or 0].answer),
        # In an attention check the right label is always A; the order on the screen is drawn.
        known_answers=_count_votes(known, lambda each: each.answer == Answer.A),
        first=_count_votes(decided, lambda each: (each.answer == Answer.A) != each.swapped),
        seconds=median(took) if took else None,
        table=_count_preferences(trial, votes),
    )


def _count_votes(votes: Sequence[Vote], holds: Callable[[Vote], bool]) -> Proportion:
    return measure_proportion([(each.pair.unit_name, holds(each)) for each in votes])

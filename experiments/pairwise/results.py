"""What came of a trial, once it is closed: which source is preferred, and what each judge is worth.

Only pairs of two sources decide preferences; repeated and gold pairs measure the judge. People and backbones are never
counted together. What decides nothing (cannot tell, an answer that could not be read) is counted beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from experiments.core.display_name import person
from experiments.models import Judge, PairwiseTrial, Vote
from experiments.models.pairwise import Answer, Kind
from experiments.pairwise import sources
from experiments.pairwise.proportions import Share, share
from workers import registry

DECIDED = frozenset({Answer.A, Answer.B})


@dataclass(frozen=True)
class Cell:
    """How often the source of the row was preferred to that of the column, of the choices that decide."""

    row: str
    column: str
    preferred: Share
    neither: int
    unread: int


@dataclass(frozen=True)
class Table:
    """Preferences of some judges together: the sources, and a row of cells for each; None on the diagonal."""

    sources: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell | None]]]
    choices: int
    pairs: int


@dataclass(frozen=True)
class Worth:
    """What a judge is worth. `repeated`: the same answer to the same pair; `gold`: the known answer; `first`: how
    often the label that stood first was chosen, about one half if the place does not matter."""

    judge: Judge
    name: str
    answered: int
    total: int
    neither: int
    unread: int
    repeated: Share
    gold: Share
    first: Share
    seconds: float | None
    table: Table


@dataclass(frozen=True)
class Results:
    """Of people, each and together; of backbones, each alone."""

    together: Table
    people: Sequence[Worth]
    backbones: Sequence[Worth]


def results(trial: PairwiseTrial) -> Results:
    """Everything at once; three queries. Only for a trial that is closed."""
    judges = list(trial.judges.select_related("user", "job"))
    choices = list(Vote.objects.filter(judge__trial=trial).select_related("pair"))
    total = trial.pairs.count()
    people = [judge for judge in judges if judge.user_id]
    of_people = {judge.pk for judge in people}

    def worths(some: Iterable[Judge]) -> list[Worth]:
        return [worth(trial, judge, [each for each in choices if each.judge_id == judge.pk], total) for judge in some]

    together = table(trial, [each for each in choices if each.judge_id in of_people])
    return Results(together, worths(people), worths(judge for judge in judges if not judge.user_id))


def name_of(judge: Judge) -> str:
    """A person by name; a backbone by its model."""
    if judge.user_id:
        return person(judge.user)
    return judge.backbone_model or registry.label(registry.BACKBONES, judge.backbone)


# --- preferences ---


def table(trial: PairwiseTrial, choices: Sequence[Vote]) -> Table:
    plain = [choice for choice in choices if choice.pair.kind == Kind.PLAIN]
    keys: list[str] = list(trial.sources)
    rows = [
        (sources.words(row), [cell(row, column, plain) if row != column else None for column in keys]) for row in keys
    ]
    return Table([sources.words(key) for key in keys], rows, len(plain), len({choice.pair_id for choice in plain}))


def cell(row: str, column: str, choices: Iterable[Vote]) -> Cell:
    some = [choice for choice in choices if {choice.pair.source_a, choice.pair.source_b} == {row, column}]
    won = sum(preferred(choice) == row for choice in some)
    decided = sum(choice.answer in DECIDED for choice in some)
    neither, unread = (sum(choice.answer == answer for choice in some) for answer in (Answer.NEITHER, Answer.UNREAD))
    return Cell(sources.words(row), sources.words(column), share(won, decided), neither, unread)


def preferred(choice: Vote) -> str:
    """The source of the label that was chosen; "" for none."""
    return {Answer.A: choice.pair.source_a, Answer.B: choice.pair.source_b}.get(Answer(choice.answer), "")


# --- judges ---


def worth(trial: PairwiseTrial, judge: Judge, choices: Sequence[Vote], total: int) -> Worth:
    by_pair = {choice.pair_id: choice for choice in choices if choice.answer != Answer.UNREAD}
    again = [each for each in by_pair.values() if each.pair.original_id in by_pair]
    golden = [each for each in by_pair.values() if each.pair.kind == Kind.GOLD]
    decided = [each for each in choices if each.answer in DECIDED]
    took = [each.seconds for each in choices if each.seconds is not None]
    return Worth(
        judge,
        name_of(judge),
        answered=len(choices),
        total=total,
        neither=sum(each.answer == Answer.NEITHER for each in choices),
        unread=sum(each.answer == Answer.UNREAD for each in choices),
        repeated=counted(again, lambda each: each.answer == by_pair[each.pair.original_id or 0].answer),
        gold=counted(golden, lambda each: each.answer == Answer.A),
        first=counted(decided, lambda each: (each.answer == Answer.A) != each.swapped),
        seconds=median(took) if took else None,
        table=table(trial, choices),
    )


def counted(choices: Sequence[Vote], holds: Callable[[Vote], bool]) -> Share:
    return share(sum(map(holds, choices)), len(choices))

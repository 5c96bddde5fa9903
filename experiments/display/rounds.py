"""Group the rounds of a run, if they are many, for a plot, a table or the outline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F, Max

from experiments.core.thumbnails import ImageUrls
from experiments.display import window
from experiments.display.plots import round_step
from experiments.models import Observation, Run
from workers.record.events import Payload, Replied
from workers.record.titles import read_title

MAX_STEPS = 100
"""Maximum steps of a plot, and rows of its table."""
SINGLE = 80
"""Maximum rounds for which each has its own line."""
NEWEST = 30
"""Of more rounds, the last ones that have their own lines."""
GROUPS = 70
"""Maximum groups of the others."""
EN_DASH = "\N{EN DASH}"


@dataclass(frozen=True)
class RoundRange:
    """One round, or several in a row."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def alone(self) -> bool:
        return self.first == self.last

    def __str__(self) -> str:
        return str(self.first) if self.alone else f"{self.first}{EN_DASH}{self.last}"


def step_size(count: int, most: int = MAX_STEPS) -> int:
    """Return how many rounds form a step: 1, 2 or 5 times a power of ten."""
    # Below one round the step would be 0.5 or less.
    return max(1, round(round_step(count / most)))


def steps(rounds: Iterable[int], most: int = MAX_STEPS) -> dict[int, RoundRange]:
    """Return the step of each of these rounds, in order."""
    known = sorted(set(rounds))
    if not known:
        return {}
    # By the span, not the count: steps lie on one axis of rounds.
    size = step_size(known[-1] - known[0] + 1, most)
    if size == 1:
        return {each: RoundRange(each, each) for each in known}
    return {
        each: RoundRange(max(known[0], (each - 1) // size * size + 1), min(known[-1], ((each - 1) // size + 1) * size))
        for each in known
    }


# --- the outline ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutlineLine:
    """A round, or a group of rounds. `best` is the highest activation of its images, `thumb` that image."""

    rounds: RoundRange
    words: str
    link: str
    best: float | None = None
    thumb: str = ""


def outline(run: Run, around: int | None = None) -> list[OutlineLine]:
    """Return the outline, with the group that holds round `around` unfolded."""
    if run.rounds <= SINGLE:
        return _single_lines(run, 0, run.rounds)
    size = step_size(run.rounds - NEWEST, GROUPS)
    grouped = run.rounds - NEWEST
    found: list[OutlineLine] = []
    for first in range(1, grouped + 1, size):
        group = RoundRange(first, min(first + size - 1, grouped))
        found.append(OutlineLine(group, f"Rounds {group}", f"?round={first}#round-{first}"))
        if around is not None and group.first <= around <= group.last:
            # The single lines take the place of their group.
            found[-1:] = _single_lines(run, first - 1, group.last)
    return [*found, *_single_lines(run, grouped, run.rounds)]


def _single_lines(run: Run, start: int, end: int) -> list[OutlineLine]:
    """Return separate lines for the replies from position `start` on."""
    # By position: each round has one reply.
    replies = list(run.events.filter(kind="reply").order_by("seq")[start:end])
    numbers = [reply.round or 0 for reply in replies]
    ran = run.experiments.filter(round__in=numbers).order_by()
    best = dict(ran.values_list("round").annotate(Max("best_activation")))
    thumbs = _find_best_images(run, numbers)
    return [
        OutlineLine(
            RoundRange(number, number),
            headline(reply.content),
            window.link(run, reply.seq, f"round-{number}"),
            best.get(number),
            thumbs.get(number, ""),
        )
        for number, reply in zip(numbers, replies, strict=True)
    ]


def _find_best_images(run: Run, numbers: Iterable[int]) -> dict[int, str]:
    """Return number of a round -> thumbnail path of its strongest image. One query."""
    logged = Observation.objects.filter(experiment__run=run, experiment__round__in=list(numbers))
    # Ascending: of a round's experiments, the strongest image comes last and stays in the dictionary.
    best = logged.filter(activation=F("experiment__best_activation")).order_by("activation", "-pk")
    keys = dict(best.values_list("experiment__round", "image_id"))
    return {number: ImageUrls.of(key).tiny for number, key in keys.items()}


def headline(reply: Payload) -> str:
    """Return a round's headline: its program's description, else the first sentence of its text, without Markdown."""
    assert isinstance(reply, Replied)
    if title := read_title(reply.code or ""):
        return title
    words = " ".join(reply.prose.replace("#", " ").replace("*", " ").replace("`", " ").split())
    sentence = words.split(". ")[0].rstrip(".:")
    if sentence:
        return sentence if len(sentence) <= 60 else sentence[:59].rsplit(" ", 1)[0] + "…"
    return "Conclusion" if reply.conclusion else "Experiment" if reply.code else "Reply"

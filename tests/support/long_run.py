"""A run of many rounds, written in bulk: the rows that `transcript.append` would have written one by one."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from experiments.core import projections
from experiments.models import Event, Experiment, Hypothesis, Observation, Run
from tests.support.builders import as_json, make_run, replied, started
from tests.support.pictures import seen
from workers.record import decoding, events
from workers.record.events import Ended, ExperimentEnded, ExperimentStarted, Payload
from workers.record.experiments import LogEntry, ToolCall
from workers.record.experiments import Observation as Seen
from workers.record.limits import Usage
from workers.record.replies import Conclusion
from workers.record.statuses import Status

COLOURS = ("red", "orange", "blue", "green", "magenta", "gray", "cyan", "violet")
ORIGINS = ("exemplar", "generated", "generated", "edited")
CODE = "def run_experiment(system, tools):\n    images = tools.text2image(prompts)\n    tools.log_experiment()\n" * 4
WORDS = "Four of five exemplars hold a red ball. Separate the colour from the shape, and keep a control without. "


def long_run(owner: User, rounds: int, images: int = 5, *, concluded: bool = True) -> Run:
    """A run with three events to a round, one at the start and, if it `concluded`, one at the end."""
    run = make_run(owner, rounds=rounds, experiment_count=rounds, exemplar_mean=30.0, best_activation=38.0)
    shown = [seen(f"a {colour} ball", 10.0, colour) for colour in COLOURS]
    told: list[tuple[str, Payload]] = [("started", started())]
    for number in range(1, rounds + 1):
        told += round_of(number, [observed(shown, number * images + place, place) for place in range(images)])
    if concluded:
        told.append(("concluded", Ended("", Conclusion("It responds to red balls.", ("red balls",)))))
    write(run, [(kind, decoding.encode(payload)) for kind, payload in told])
    Run.objects.filter(pk=run.pk).update(
        last_seq=len(told),
        observation_count=rounds * images,
        status=Status.CONCLUDED if concluded else Status.QUEUED,
        conclusion=as_json(told[-1][1])["conclusion"] if concluded else {},
        limits={"rounds": rounds + 5, "tokens": None, "cost": 500.0, "seconds": rounds * 20.0},
        seconds=rounds * 9.0,
        prompt_tokens=rounds * 1_000,
        completion_tokens=rounds * 300,
        cost=rounds * 0.02,
    )
    return Run.objects.get(pk=run.pk)


def observed(shown: list[Seen], place: int, position: int) -> Seen:
    base = shown[place % len(shown)]
    activation = round(4 + place * 7.31 % 34, 2)
    origin = ORIGINS[position % len(ORIGINS)]
    original = shown[(place - 1) % len(shown)].image if origin == "edited" else None
    return Seen(base.title, activation, base.image, base.masked, origin, base.prompt, 0, original)


def round_of(number: int, images: list[Seen]) -> list[tuple[str, Payload]]:
    statuses = ("supported" if number > 3 else "open", "refuted" if number % 7 == 0 else "open")
    hypotheses = (
        events.Hypothesis(1, "red balls", statuses[0], "9 of 9"),
        events.Hypothesis(2, "round things of any colour", statuses[1], "4.1 on a blue ball"),
    )
    reply = replied(
        number,
        prose=f"Round {number} it is. {WORDS * 3}",
        text=WORDS * 12,
        code=CODE,
        hypotheses=hypotheses,
        usage=Usage(1_000, 280, 0.02),
        seconds=4.0,
    )
    calls = tuple(ToolCall(name, "3 images", 0.5) for name in ("text2image", "neuron"))
    entry = LogEntry(tuple(images), "near misses")
    result = ExperimentEnded(
        number, number, "ok", (entry,), "printed\n" * 8, seconds=1.0, tool_seconds=3.0, calls=calls, exemplar_mean=30.0
    )
    return [("reply", reply), ("experiment", ExperimentStarted(number, number, CODE)), ("result", result)]


class Before(dict[str, float]):
    """What every original reached."""

    def __missing__(self, key: str) -> float:
        return 20.0

    def __contains__(self, key: object) -> bool:
        return key != ""


BEFORE = Before()


def write(run: Run, told: list[tuple[str, dict[str, Any]]]) -> None:
    """The events, and the rows kept in step with them."""
    rows = [Event(run=run, seq=seq, kind=kind, payload=payload) for seq, (kind, payload) in enumerate(told, 1)]
    Event.objects.bulk_create(rows, batch_size=500)
    Hypothesis.objects.bulk_create(
        (
            Hypothesis(run=run, round=payload["round"], **hypothesis)
            for kind, payload in told
            if kind == "reply"
            for hypothesis in payload["hypotheses"]
        ),
        batch_size=1000,
    )
    results = [(seq, payload) for seq, (kind, payload) in enumerate(told, 1) if kind == "result"]
    made = Experiment.objects.bulk_create((experiment_row(run, *result) for result in results), batch_size=500)
    Observation.objects.bulk_create(
        (
            projections.observation_row(experiment, position, logged, BEFORE)
            for experiment, row in zip(made, (row for row in rows if row.kind == "result"), strict=True)
            for position, logged in enumerate(row.content.observations, 1)
        ),
        batch_size=1000,
    )


def experiment_row(run: Run, seq: int, payload: dict[str, Any]) -> Experiment:
    fields = ("number", "round", "status", "output", "error", "seconds", "tool_seconds", "calls")
    reached = [observation["activation"] for observation in payload["entries"][0]["observations"]]
    counted = {"observation_count": len(reached), "best_activation": max(reached, default=None)}
    return Experiment(run=run, seq=seq, code=CODE, **counted, **{name: payload[name] for name in fields})

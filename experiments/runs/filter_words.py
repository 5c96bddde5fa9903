"""Describe a list's filters in a sentence, for exports, saved views and empty lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from experiments.core.params import parse_number
from experiments.display import verdicts
from experiments.runs.filters import CHECK, STATUSES
from workers.record.statuses import Status
from workers.record.tasks import TASKS

NAMED = 6
"""Runs that are named by their numbers; of more, how many there are."""
SHORT = 60
BEFORE = ("status", "origin")
"""Filters whose words come before the noun, in this order."""


def describe_filter(noun: str, given: Mapping[str, str]) -> str:
    """Return the noun with its filters in words, such as "Concluded runs of toybox layer4 with a score of at least
    0.5"; without a filter, "All runs". A filter without words appears by its name."""
    # An address may hold anything: the sentence stays readable.
    told = {name: text.strip()[:200] for name, text in given.items() if text.strip()}
    first = [_ADJECTIVES[name](told[name]) for name in BEFORE if name in told and told[name] != Status.LIMIT_REACHED]
    rest = [words for name in _AFTER if name in told and (words := _AFTER[name](told[name]))]
    place = _describe_place(told)
    known = {*_AFTER, *BEFORE, "model", "layer", "unit"}
    rest += [f"with {name} “{_cut(text)}”" for name, text in told.items() if name not in known]
    parts = [*(first or ([] if rest or place else ["all"])), noun, *([place] if place else []), *rest]
    sentence = " ".join(parts)
    return sentence[:1].upper() + sentence[1:]


def _describe_place(told: Mapping[str, str]) -> str:
    where = " ".join(told[name] for name in ("model", "layer") if name in told)
    unit = f"unit {_cut(told['unit'])}" if "unit" in told else ""
    return f"of {' '.join(filter(None, (_cut(where), unit)))}" if where or unit else ""


def _cut(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[:SHORT]}…"


def _describe_runs(text: str) -> str:
    numbers = text.split(",")
    if len(numbers) > NAMED:
        return f"from a choice of {len(numbers):,}"
    return f"from run{'s' * (len(numbers) > 1)} {', '.join(_cut(each.strip()) for each in numbers)}"


def _describe_check(text: str) -> str:
    if text == "none":
        return "without a label check"
    found = CHECK.fullmatch(text)
    if found is None:
        return f"with a score “{_cut(text)}”"
    return f"with a score {'below' if found[1] == '<' else 'of at least'} {float(found[2]):g}"


def _choose_words(choices: Mapping[str, str]) -> Callable[[str], str]:
    return lambda text: choices.get(text, _cut(text)).lower()


_ADJECTIVES: Mapping[str, Callable[[str], str]] = {
    "status": _choose_words(dict(STATUSES)),
    "origin": _cut,
}
_AFTER: Mapping[str, Callable[[str], str]] = {
    "status": lambda text: "that reached a limit" if text == Status.LIMIT_REACHED else "",
    "verdict": lambda text: f"with the verdict “{dict(verdicts.CHOICES).get(text, _cut(text)).lower()}”",
    "run": _describe_runs,
    "task": lambda text: f"with the task “{TASKS[text].label if text in TASKS else _cut(text)}”",
    "q": lambda text: f"with the words “{_cut(text)}”",
    "label": lambda text: f"labelled “{_cut(text)}”",
    "check": _describe_check,
    "low": lambda text: f"with an activation of at least {_cut(text)}",
    "high": lambda text: f"with an activation of at most {_cut(text)}",
    "differs": lambda text: "that claimed another number than was measured" if text else "",
    "parameter": lambda text: f"by the game engine with the parameter “{_cut(text)}”",
    "parameter_low": lambda text: f"of at least {_cut(text)}",
    "parameter_high": lambda text: f"of at most {_cut(text)}",
    "backbone": lambda text: f"by {_cut(text.partition(':')[2] or text)}",
    "source": lambda text: f"from {_cut(text)}",
    "kind": lambda text: f"of the kind “{_cut(text)}”",
    "owner": lambda text: f"created by {_cut(text)}",
    "tag": lambda text: f"tagged “{_cut(text)}”",
    "show": lambda text: {"open": "that are still to be reviewed", "complete": "that are complete"}.get(
        text, text[:40]
    ),
    "queue": lambda text: f"of review queue {_cut(text)}",
    "sweep": lambda text: f"of sweep {parse_number(text) or _cut(text)}",
    "evaluation": lambda text: f"of evaluation {parse_number(text) or _cut(text)}",
    "since": lambda text: f"since {_cut(text)}",
    "until": lambda text: f"until {_cut(text)}",
}
"""In the order in which they are said."""

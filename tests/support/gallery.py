"""Runs with images, and the titles on pages of the gallery."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import User

from experiments.core import transcript
from experiments.models import Run
from tests.support.builders import experiment, make_run
from tests.support.pictures import logged, seen
from workers.record.experiments import Observation as Logged


def run_with(owner: User, *observations: Logged, **fields: Any) -> Run:
    """A run with one experiment that logged these."""
    run = make_run(owner, **fields)
    add(run, *observations)
    return run


def add(run: Run, *observations: Logged, number: int = 1) -> None:
    transcript.append(run.pk, "experiment", experiment(number))
    transcript.append(run.pk, "result", logged(*observations, number=number))


def edit(title: str, activation: float, colour: str, original: Logged) -> Logged:
    made = seen(title, activation, colour)
    return Logged(title, activation, made.image, made.masked, "edited", title, 0, original.image)


def titles(text: str) -> list[str]:
    return re.findall(r'<span class="title" title="([^"]*)"', text)

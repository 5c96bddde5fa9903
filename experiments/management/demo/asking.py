"""The scenes in which the team asks: runs of several tasks, a sweep, an evaluation, the same question again."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet
from django.http import QueryDict
from django.urls import reverse

from experiments.comments import actions as comments
from experiments.core.actors import Actor
from experiments.core.system_names import SystemNameMasker
from experiments.evaluations import actions as evaluations
from experiments.evaluations.form import NewEvaluation
from experiments.management.demo.team import Team
from experiments.models import Comment, Evaluation, Label, Layer, Run, SavedView, Sweep, Thread
from experiments.models.comment import On
from experiments.pairwise.sources import list_sources
from experiments.runs import actions as runs
from experiments.runs.asking.form import QueryForm
from experiments.runs.saved_views import actions as views
from experiments.sweeps import actions as sweeps
from experiments.sweeps.form import NewSweep
from experiments.units import actions as units
from workers.record import tasks
from workers.record.statuses import Status

TOYBOX, NEURONS = "toybox", "synthetic:toybox-eyes"
UNITS = (("layer4", 87), ("layer4", 82), ("layer4", 79), ("layer3", 33))
CLASSES = (("bias", 3), ("spurious", 7))
"""Tasks about classes of toybox, and which."""
HIDDEN = (("mono", 0), ("conditional", 1))
"""Synthetic neurons: whose truth is known, and shown once a run has ended."""
VIEW = "Labels that hold"


def ask_units(team: Team) -> None:
    """Ask what single units respond to."""
    for layer, unit in _take_some(UNITS, team):
        ask(team.researcher, "describe", TOYBOX, layer, unit)
    team.settle()
    # After the runs have ended: only then is there an answer to comment on.
    write(team.researcher, list_answers(team.researcher).first(), "The first label holds on images it never saw.")


def ask_classes(team: Team) -> None:
    """Ask whether classes rely on spurious features."""
    for task, unit in _take_some(CLASSES, team):
        ask(team.second_researcher, task, TOYBOX, "logits", unit)


def ask_neurons(team: Team) -> None:
    """Ask about neurons with a known truth, by users who do not know it."""
    for layer, unit in _take_some(HIDDEN, team):
        ask(team.second_researcher, "describe", NEURONS, layer, unit)


def sweep_layer(team: Team) -> None:
    """Sweep some units of one layer, drawn at random; exemplars of all of them."""
    layer = Layer.objects.select_related("model").get(model__name=TOYBOX, name="layer4")
    # Exemplars of a whole layer take minutes.
    if not team.small:
        units.ask_for_layer(team.researcher, layer, TOYBOX)
    name = "A first look at layer4"
    if Sweep.objects.filter(name=name).exists():
        return
    sample = 1 if team.small else 8
    given = QueryDict(mutable=True)
    given.update({"name": name, "model": TOYBOX, "layer": "layer4", "choose": "sample", "sample": str(sample)})
    # The scripted agent is free and needs no network.
    given.update({"seed": "5", "agent": "scripted", "task": tasks.DEFAULT_TASK})
    sweeps.start(team.researcher, NewSweep(given, SystemNameMasker(team.researcher.person)))


def evaluate_neurons(team: Team) -> None:
    """Measure how right labels are where the truth is known."""
    name = "Synthetic neurons, first batch"
    if not Evaluation.objects.filter(name=name).exists():
        given = QueryDict(mutable=True)
        given.update({"kind": "synthetic", "name": name, "backbone": "scripted", "seed": "1"})
        given["units"] = "1" if team.small else "4"
        evaluations.start(team.researcher, NewEvaluation(given, list_sources()))
    _keep_view(team.researcher, VIEW, "status=concluded&model=toybox&columns=check")


def ask_again(team: Team) -> None:
    """Ask one question twice, with other seeds, and compare the two."""
    first = list_answers(team.researcher).first()
    if first is None:
        return
    again = ask(team.second_researcher, first.task, first.model, first.layer, first.unit, seed=7)
    team.settle()
    beside = f"{reverse('compare')}?run={first.pk}&run={again.pk}"
    words = f"@researcher the same unit with another seed: both runs stand side by side at {beside}. Same label?"
    write(team.second_researcher, again, words)
    write(team.researcher, again, "The colour is the same, the shape is narrower here. @owner, have a look.")


# --- each thing once ---


def ask(actor: Actor, task: str, model: str, layer: str, unit: int, seed: int = 0) -> Run:
    """Ask for the run as the form New run would; return the existing one if this person has asked before."""
    # Runs of sweeps and evaluations are no questions of a person.
    asked = Run.objects.filter(
        owner=actor.person, task=task, model=model, layer=layer, unit=unit, seed=seed, sweep=None
    )
    if found := asked.filter(evaluation_items=None).first():
        return found
    row = Layer.objects.get(model__name=model, name=layer)
    question = tasks.questions(row.kind, model, layer, unit, row.name_of(unit))[task]
    given = {"question": question, "task": task, "model": model, "layer": layer, "unit": str(unit), "seed": seed}
    fixed = {"dataset": TOYBOX, "toolset": TOYBOX, "backbone": "scripted"}
    return runs.ask(actor, QueryForm(given | fixed))


def list_answers(actor: Actor) -> QuerySet[Run]:
    """List this person's questions about units that were answered with labels, the first first."""
    rows = Run.objects.filter(owner=actor.person, task=tasks.DEFAULT_TASK, status=Status.CONCLUDED, model=TOYBOX)
    return rows.filter(pk__in=Label.objects.values("run")).order_by("pk")


def write(actor: Actor, run: Run | None, text: str) -> None:
    """Write a comment on a run, in its one thread."""
    if run is None or Comment.objects.filter(author=actor.person, thread__run=run, text=text).exists():
        return
    if thread := Thread.objects.filter(run=run, on=On.RUN).first():
        comments.reply(actor, thread, text)
    else:
        comments.start_thread(actor, Thread(run=run, on=On.RUN), text)


def _keep_view(actor: Actor, name: str, query: str) -> None:
    """Keep a saved view for the whole team."""
    if not SavedView.objects.filter(owner=actor.person, name=name).exists():
        views.write_view(actor, SavedView(owner=actor.person), name, query, shared=True)


def _take_some(rows: Iterable[tuple[str, int]], team: Team) -> list[tuple[str, int]]:
    """Return all of them; the first alone if little is wanted."""
    return list(rows)[: 1 if team.small else None]

"""Actions on units: ask for their exemplars, and label them."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.cache import cache
from django.db import transaction
from django.http import Http404

from experiments.core import audit, queue
from experiments.core.actors import Actor
from experiments.core.asked_once import ask_unless_answered, find_or_add
from experiments.core.audit import Verb
from experiments.core.compatibility import explain_unchangeable
from experiments.core.errors import StateConflict
from experiments.core.search_index import texts
from experiments.models import (
    CausalCheck,
    Dataset,
    Job,
    JobKind,
    Label,
    Layer,
    SearchText,
    TextKind,
    Unit,
    UnitProfile,
)
from experiments.units.causal import check_question
from workers.record.causal import CausalQuestion

PERSON = "person"


@transaction.atomic
def ask_for_exemplars(actor: Actor, layer: Layer, number: int, key: str) -> UnitProfile:
    """Ask a worker to measure the unit over a dataset, or to try again; it indexes the layer first if needed.
    Asking again is harmless. Raises StateConflict for a dataset that cannot be used, and for functions."""
    _require_images(layer)
    dataset = Dataset.objects.filter(key=key, available=True).first()
    if dataset is None:
        raise StateConflict(f"No worker can use a dataset {key!r}. List the datasets for its remedy.")
    unit, _ = Unit.objects.get_or_create(layer=layer, number=number)
    profile, _ = UnitProfile.objects.get_or_create(unit=unit, dataset=dataset)
    # A profile with a problem is tried again; pages may then ask the worker again too.
    if profile.written is None:
        profile.problem = ""
        profile.save(update_fields=["problem"])
        cache.delete(f"asked-for-exemplars:{profile.pk}")
        audit.record(actor, Verb.EXEMPLARS_ASKED, unit, dataset=key)
        queue.ask_for("write_exemplars", profile.pk)
    return profile


@transaction.atomic
def ask_for_layer(actor: Actor, layer: Layer, key: str) -> Job:
    """Ask a worker to index the layer over a dataset and write the exemplars of all its units; existing ones are
    kept. Asking again meanwhile is harmless. Raises StateConflict for a dataset that cannot be used, and for
    functions."""
    _require_images(layer)
    if not Dataset.objects.filter(key=key, available=True).exists():
        raise StateConflict(f"No worker can use a dataset {key[:200]!r}. List the datasets for its remedy.")
    # A job that still moves covers this request too: two would compute the same files.
    if (same := find_job(layer, key)) and same.is_moving:
        return same
    options = {"model": layer.model.name, "layers": [layer.name], "exemplars": True}
    job = Job.objects.create(kind=JobKind.INDEX, subject=key, options=options, asked_by=actor.person)
    audit.record(actor, Verb.EXEMPLARS_ASKED, job, layer=str(layer), dataset=key)
    queue.ask_for_work(job.pk)
    return job


@transaction.atomic
def ask_for_causal_check(actor: Actor, layer: Layer, key: str, question: CausalQuestion) -> CausalCheck:
    """Ask a worker to change these units and measure the effect on the model's output over a dataset. The same
    question is measured once; a stopped or failed one starts again.

    Raises StateConflict for a dataset that cannot be used and a layer that cannot be changed, InvalidInput.
    """
    if why := explain_unchangeable(layer):
        raise StateConflict(f"{layer.name} of {layer.model.name} cannot be checked. {why}")
    dataset = Dataset.objects.filter(key=key, available=True).first()
    if dataset is None:
        raise StateConflict(f"No worker can use a dataset {key[:200]!r}. List the datasets for its remedy.")
    check_question(layer, question)
    # JSON has no tuples: the row stores the units as a list.
    asked = vars(question) | {"units": list(question.units), "layer": layer, "dataset": dataset}
    row, is_new = find_or_add(CausalCheck, CausalCheck.key_of(layer, dataset, question), asked)
    # The link table lets a unit's page find the checks that change it, alone or with others.
    if is_new:
        row.changed_units.set([Unit.objects.get_or_create(layer=layer, number=each)[0] for each in question.units])
    ask_unless_answered(actor, row, JobKind.CAUSAL, Verb.CAUSAL_ASKED, dataset=key)
    return row


def _require_images(layer: Layer) -> None:
    if not layer.takes_images:
        raise StateConflict(f"The {layer.plural} of {layer.name} take no images, so there are no exemplars of them.")


def find_job(layer: Layer, key: str) -> Job | None:
    """Return the newest job on exemplars of the whole layer over this dataset."""
    options = {"model": layer.model.name, "layers": [layer.name], "exemplars": True}
    return Job.objects.filter(kind=JobKind.INDEX, subject=key, options=options).first()


@transaction.atomic
def create_label(actor: Actor, text: str, places: Iterable[tuple[Layer, int]]) -> Label:
    """Create a person's label, beside those of runs and imports."""
    row = Label.objects.create(text=text, source=PERSON)
    # Most units have no row until something refers to them.
    units = [Unit.objects.get_or_create(layer=layer, number=number)[0] for layer, number in places]
    row.units.set(units)
    texts.keep_label(row, units)
    audit.record(actor, Verb.LABEL_CREATED, row)
    return row


def lock_label(actor: Actor, pk: int) -> Label:
    """Lock a label that this person wrote, to change it in this transaction. Raises Http404, PermissionDenied for
    another person's, StateConflict for one of a run or an import."""
    row = Label.objects.select_for_update().filter(pk=pk).first()
    if row is None:
        raise Http404(f"There is no label {pk}.")
    if row.source != PERSON:
        raise StateConflict(f"Label {pk} comes from a {row.source}: only labels of people are edited.")
    actor.require_own("wrote this label", *audit.list_authors(row, Verb.LABEL_CREATED))
    return row


def edit_label(actor: Actor, row: Label, text: str) -> None:
    """Change the text of a label; `row` must be locked."""
    # Before the change, so that the record can name the row as it was found.
    audit.record(actor, Verb.LABEL_EDITED, row, text=text)
    row.text = text
    row.save(update_fields=["text"])
    _forget(row)
    texts.keep_label(row, row.units.select_related("layer__model"))


def delete_label(actor: Actor, row: Label) -> None:
    """Delete a label; `row` must be locked."""
    _forget(row)
    # Before the deletion, which empties the key that the record needs.
    audit.record(actor, Verb.LABEL_DELETED, row)
    row.delete()


def _forget(row: Label) -> None:
    """Remove its text from the search."""
    SearchText.objects.filter(kind=TextKind.LABEL, run=None, anchor=row.pk).delete()

"""Check which datasets, toolsets and backbones fit a model, and choose defaults.

Toybox is separate from everything else: its tools draw toys, and the scripted scientist knows nothing else. Used by
the New run form and the command `investigate`.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Q

from experiments.models import Backbone, CausalCheck, Dataset, Layer, Toolset, VisionModelRow
from workers import registry
from workers.errors import RequestError
from workers.record import tasks
from workers.record.circuits import CIRCUIT
from workers.record.limits import explain_unpriced

OF_TOYBOX = frozenset({"toybox", "synthetic:toybox-eyes"})
"""Models that respond only to toys."""
_FAMILIES_OF_TOYBOX = ("synthetic:toybox-eyes:", "toybox-biased:")
"""Families whose models respond only to toys."""
SCRIPTED, TOYBOX = "scripted", "toybox"
FUNCTIONS, SCRIPTED_FUNCTIONS = "functions", "scripted-functions"
"""The model whose units are our functions, and the backbone with fixed rules for functions."""
_PUBLISHED_FUNCTIONS = "find:"
"""Family of the models whose units are published functions."""
_NO_SCRIPT = "The scripted scientist knows toys alone, and calls no function. Choose another backbone."
_NO_FUNCTION = "The scripted baseline calls functions, and {model} has none. Choose another backbone."
_WHY_NOT = {
    "logit": "A class is an output of the model itself, so nothing follows from changing it. Choose a unit of an "
    "earlier layer.",
    CIRCUIT: "A circuit is several units. Choose one of them, or check the effect of several on the page of a unit.",
    "concept": "A synthetic neuron is built on a detector, so no output of a model follows from it. Choose a unit of a "
    "network.",
    tasks.FUNCTION: "A function is no part of a network, so no output follows from it.",
}
PERSON = "person"
"""The backbone of runs that a person writes: the run waits for each reply."""


def is_toybox(model: str) -> bool:
    """True if a model responds only to toys. A model on top of another counts as that other."""
    if model in OF_TOYBOX or model.startswith(_FAMILIES_OF_TOYBOX):
        return True
    # Only now a query: most models are told by their name.
    laid_over_it = Q(base__in=OF_TOYBOX)
    for family in _FAMILIES_OF_TOYBOX:
        laid_over_it |= Q(base__startswith=family)
    return VisionModelRow.objects.filter(laid_over_it, name=model).exists()


def has_functions(model: str) -> bool:
    """True if the units of a model are functions, which are called and see no image."""
    return model == FUNCTIONS or model.startswith(_PUBLISHED_FUNCTIONS)


def tells_truth(model: str) -> bool:
    """True if the names of a model's units say what they respond to, as with synthetic neurons."""
    return model.startswith("synthetic:")


def explain_incompatibility(backbone: str, toolset: str, model: str) -> str:
    """Explain why this backbone cannot work with these tools or on this model; "" if it can."""
    if backbone == SCRIPTED_FUNCTIONS and not has_functions(model):
        return _NO_FUNCTION.format(model=model)
    if backbone == SCRIPTED and has_functions(model):
        return _NO_SCRIPT
    if backbone == SCRIPTED and not registry.draws_toys(toolset):
        return (
            "The scripted scientist knows toybox's concepts and no others, so it works with the toolset toybox alone. "
            "Choose another backbone, or that toolset."
        )
    return ""


def explain_unchangeable(layer: Layer) -> str:
    """Explain why no unit of a layer can be changed inside its model; "" if no reason is known."""
    if layer.kind in _WHY_NOT:
        return _WHY_NOT[layer.kind]
    row = layer.causal_checks.exclude(impossible="").select_related("layer__model", "dataset").first()
    # Findings about other weights no longer count.
    return row.impossible if row and row.key == CausalCheck.key_of(layer, row.dataset, row.question) else ""


def advise(model: str, toolset: str, backbone: str = "") -> str:
    """Return a warning about a choice that is possible but of little use; "" for a good one. Functions take no
    images."""
    if has_functions(model):
        return ""
    toys, draws_toys = is_toybox(model), registry.draws_toys(toolset)
    notes = []
    if toys and not draws_toys:
        notes.append(f"{model} has only ever seen toys: with photographs its units are off their ground.")
    if draws_toys and not toys:
        notes.append(f"The tools of toybox draw toys: of what {model} learnt from photographs they reach little.")
    if backbone in (PERSON, SCRIPTED) and not (toys and draws_toys):
        # toybox-eyes respond only to toys, and only some backbones see images
        notes.append(
            "No model here describes photographs: describe_images and summarize_images refuse them. Choose a "
            "vision-language model as the backbone if images shall be put into words."
        )
    return " ".join(notes)


def find_matching_plugins(model: str) -> dict[str, str]:
    """Return the available dataset, toolset and backbone that suit a model; with a provider's key, a language
    model.

    toybox has its own tools and the scripted scientist. Other models get others if available. Functions need no
    tools and get those that are always available.
    """
    backbone = _backbone_for(model)
    toolset = toolset_for(model, backbone)
    return {"dataset": dataset_for(model), "toolset": toolset, "backbone": backbone, "backbone_model": ""}


def toolset_for(model: str, backbone: str, dataset: str = "") -> str:
    """Return toybox's toolset for models of toys, for runs on toys, and for backbones that need it; else another if
    available."""
    toys = is_toybox(model) or has_functions(model) or dataset.startswith(TOYBOX)
    # Before any worker has reported, the built-in toolset is the only sure one.
    toolsets = [key for key in available(Toolset) if not is_ablation(key)] or [TOYBOX]
    found = next((key for key in toolsets if (key == TOYBOX) == toys), toolsets[0])
    # The scripted scientist works with toys alone.
    return TOYBOX if explain_incompatibility(backbone, found, model) else found


def _backbone_for(model: str) -> str:
    """Return a language model if available, and for toybox the scripted scientist. Never a person, who must be
    asked first."""
    scripted = SCRIPTED_FUNCTIONS if has_functions(model) else SCRIPTED
    language_models = [key for key in available(Backbone) if key not in (PERSON, SCRIPTED, SCRIPTED_FUNCTIONS)]
    return scripted if is_toybox(model) else next(iter(language_models), scripted)


def is_ablation(toolset: str) -> bool:
    """True if a toolset exists to measure the value of a tool."""
    return toolset in registry.TOOLSETS and registry.TOOLSETS[toolset].is_ablation


def dataset_for(model: str) -> str:
    """Return the dataset of the settings, unless it shows toys and the model needs photographs, or the reverse."""
    if is_toybox(model):
        return TOYBOX  # built in, even if no worker has listed it yet
    keys = available(Dataset)
    preferred = [settings.LAB_DATASET, *keys]
    suited = [key for key in preferred if key in keys and key != TOYBOX]
    return next(iter([*suited, *(key for key in preferred if key in keys)]), settings.LAB_DATASET)


def find_own_dataset(model: str) -> str:
    """Return the dataset that suits a model by default. Raises RequestError for a model of photographs if only toys
    are here."""
    found = dataset_for(model)
    if found == TOYBOX and not is_toybox(model):
        raise RequestError(
            f"{model} does not belong to toybox, so toybox's scenes are not taken for it unasked. Name a dataset; "
            "manage.py datasets lists what there is, and manage.py datasets add FOLDER adds one."
        )
    return found


def available(kind: type[Dataset | Toolset | Backbone]) -> list[str]:
    """Return the keys of the parts that a worker can use."""
    rows: Any = kind.objects.filter(available=True)
    return list(rows.values_list("key", flat=True))


def is_known(backbone: str) -> bool:
    """True if a worker has listed this backbone, ready or not."""
    return Backbone.objects.filter(key=backbone).exists()


def price_unknown(backbone: str, model: str) -> bool:
    """True if a worker offers this model and knows no price for it."""
    row = Backbone.objects.filter(key=backbone).first()
    return row is not None and model in row.unpriced


def without_price(model: str) -> str:
    """Return the remedy for a cost limit that cannot be enforced."""
    remedy = "Tick “Run without a known price” (--unpriced), which leaves that limit out"
    return explain_unpriced(model, "a limit of the cost", remedy)


def model_of(backbone: str, wanted: str) -> str:
    """Return the provider's model to use: the wanted one if the backbone offers it, else its default; "" if it has
    none."""
    row = Backbone.objects.filter(key=backbone).first()
    names = list(row.model_names) if row else []
    return wanted if wanted in names else next(iter(names), "")

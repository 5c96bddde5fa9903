"""What a run is made with: dataset, toolset and backbone, and which of them go together.

Toybox is a world of its own: its tools draw toys, and the scripted scientist knows nothing else. Used by the New run
form and the command `investigate`.
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
"""Models that know toys and nothing else."""
_FAMILIES_OF_TOYBOX = ("synthetic:toybox-eyes:", "toybox-biased:")
"""So do those of these families."""
SCRIPTED, TOYBOX = "scripted", "toybox"
FUNCTIONS, SCRIPTED_FUNCTIONS = "functions", "scripted-functions"
"""The model whose units are functions of ours, and the backbone with fixed rules for functions."""
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
"""The backbone of runs that people write: the run waits for each reply."""


def is_toybox(model: str) -> bool:
    """Whether a model knows toys and nothing else; one that is laid over another knows what that one knows."""
    if model in OF_TOYBOX or model.startswith(_FAMILIES_OF_TOYBOX):
        return True
    laid_over_it = Q(base__in=OF_TOYBOX)
    for family in _FAMILIES_OF_TOYBOX:
        laid_over_it |= Q(base__startswith=family)
    return VisionModelRow.objects.filter(laid_over_it, name=model).exists()


def has_functions(model: str) -> bool:
    """True if the units of a model are functions, which are called and see no image."""
    return model == FUNCTIONS or model.startswith(_PUBLISHED_FUNCTIONS)


def tells_truth(model: str) -> bool:
    """Whether the names of a model's units say what they respond to: those of synthetic neurons."""
    return model.startswith("synthetic:")


def explain_incompatibility(backbone: str, toolset: str, model: str) -> str:
    """Why this backbone cannot work with these tools or on this model; "" if it can."""
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
    """Why no unit of a layer can be changed inside its model; "" if nothing is known to be in the way."""
    if layer.kind in _WHY_NOT:
        return _WHY_NOT[layer.kind]
    row = layer.causal_checks.exclude(impossible="").select_related("layer__model", "dataset").first()
    # What was found of other weights no longer counts
    return row.impossible if row and row.key == CausalCheck.key_of(layer, row.dataset, row.question) else ""


def advise(model: str, toolset: str, backbone: str = "") -> str:
    """What to know of a choice that is possible but says little; "" for a sound one. Functions take no images."""
    if has_functions(model):
        return ""
    toys, draws_toys = is_toybox(model), registry.draws_toys(toolset)
    notes = []
    if toys and not draws_toys:
        notes.append(f"{model} has only ever seen toys: with photographs its units are off their ground.")
    if draws_toys and not toys:
        notes.append(f"The tools of toybox draw toys: of what {model} learnt from photographs they reach little.")
    if backbone in (PERSON, SCRIPTED) and not (toys and draws_toys):
        # toybox-eyes know toys alone, and only some backbones see
        notes.append(
            "Nobody describes photographs here: describe_images and summarize_images refuse them. Choose a "
            "vision-language model as the backbone if images shall be put into words."
        )
    return " ".join(notes)


def fitting(model: str) -> dict[str, str]:
    """Dataset, toolset and backbone that suit a model, of what there is; with a key for a language model, that.

    toybox has its own tools and the scripted scientist; other models get others where there are some. Functions need no
    tools, so theirs are those that are always there.
    """
    backbone = _backbone_for(model)
    toolset = toolset_for(model, backbone)
    return {"dataset": dataset_for(model), "toolset": toolset, "backbone": backbone, "backbone_model": ""}


def toolset_for(model: str, backbone: str, dataset: str = "") -> str:
    """That of toybox for what knows toys, or is studied on them, and for a backbone that works with no other; else
    another where there is one."""
    toys = is_toybox(model) or has_functions(model) or dataset.startswith(TOYBOX)
    toolsets = [key for key in available(Toolset) if not is_ablation(key)] or [TOYBOX]
    found = next((key for key in toolsets if (key == TOYBOX) == toys), toolsets[0])
    return TOYBOX if explain_incompatibility(backbone, found, model) else found


def _backbone_for(model: str) -> str:
    """A language model if there is one, toybox the scripted scientist; nobody is put to work unasked."""
    scripted = SCRIPTED_FUNCTIONS if has_functions(model) else SCRIPTED
    language_models = [key for key in available(Backbone) if key not in (PERSON, SCRIPTED, SCRIPTED_FUNCTIONS)]
    return scripted if is_toybox(model) else next(iter(language_models), scripted)


def is_ablation(toolset: str) -> bool:
    """Whether a toolset is there to measure what a tool is worth."""
    return toolset in registry.TOOLSETS and registry.TOOLSETS[toolset].is_ablation


def dataset_for(model: str) -> str:
    """That of the settings, unless it shows toys and the model knows photographs, or the other way round."""
    if is_toybox(model):
        return TOYBOX  # built in, whether a worker has listed it yet or not
    keys = available(Dataset)
    preferred = [settings.LAB_DATASET, *keys]
    suited = [key for key in preferred if key in keys and key != TOYBOX]
    return next(iter([*suited, *(key for key in preferred if key in keys)]), settings.LAB_DATASET)


def find_own_dataset(model: str) -> str:
    """The dataset that suits a model by itself. Raises RequestError if a model of photographs has only toys here."""
    found = dataset_for(model)
    if found == TOYBOX and not is_toybox(model):
        raise RequestError(
            f"{model} does not belong to toybox, so toybox's scenes are not taken for it unasked. Name a dataset; "
            "manage.py datasets lists what there is, and manage.py datasets add FOLDER adds one."
        )
    return found


def available(kind: type[Dataset | Toolset | Backbone]) -> list[str]:
    """Keys of what a worker can use."""
    rows: Any = kind.objects.filter(available=True)
    return list(rows.values_list("key", flat=True))


def is_known(backbone: str) -> bool:
    """Whether a worker has listed this backbone, ready or not."""
    return Backbone.objects.filter(key=backbone).exists()


def price_unknown(backbone: str, model: str) -> bool:
    """Whether a worker offers this model and knows no price of it."""
    row = Backbone.objects.filter(key=backbone).first()
    return row is not None and model in row.unpriced


def without_price(model: str) -> str:
    """What to do about a limit of the cost that cannot hold."""
    remedy = "Tick “Run without a known price” (--unpriced), which leaves that limit out"
    return explain_unpriced(model, "a limit of the cost", remedy)


def model_of(backbone: str, wanted: str) -> str:
    """The provider's model to ask: the one wanted if the backbone offers it, else its default; "" where it has none."""
    row = Backbone.objects.filter(key=backbone).first()
    names = list(row.model_names) if row else []
    return wanted if wanted in names else next(iter(names), "")

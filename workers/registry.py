"""Every plug-in, by kind: key -> (label, dotted path of its factory). Loaded on first use; standard library alone.

`workers.plugins` adds what the files of MAIA_PLUGINS register, in workers and commands alone.

To add a plug-in: one file, one line below. A factory takes `LabSettings` first; what else it takes is said beside each
table. A key that ends in a colon names a family: "hf:" serves "hf:microsoft/resnet-152", and its factory is given what
follows the first colon as a second argument. A plug-in whose weights may be missing has a function `missing`, with the
arguments of the factory, in the same module: "" if all is there, else what is missing and the command that gets it.
One that offers several models by name (a backbone, a generator) has a function `models` of the settings: their names;
where they are paid for, also `prices`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from re import fullmatch
from typing import Any

from workers.errors import UnknownName

Factory = Callable[..., Any]
Plugins = dict[str, tuple[str, str | Factory]]
"""Key -> label, and the dotted path of its factory. A plug-in of the settings registers the factory itself, with the
key's other functions, such as `missing` or `models`, as attributes.
"""

PAPER_RESNET = "torchvision:timm/resnet152.tv_in1k"
"""The ResNet-152 that MAIA's paper studies."""

_HUGGING_FACE = "workers.vision_models.huggingface.model.load"
_TORCHVISION = "workers.vision_models.torchvision_resnet.model.load"
_CLIP = "workers.vision_models.clip_rn50.model.load"
_SYNTHETIC = "workers.vision_models.synthetic.model.load"

VISION_MODELS: Plugins = {
    "toybox": ("toybox-net, a small network trained on toy scenes", "workers.toybox.model.load"),
    "toybox-biased:": ("toybox-net with planted biases", "workers.toybox.biased.load"),
    PAPER_RESNET: ("ResNet-152 of the paper: torchvision's IMAGENET1K_V1", _TORCHVISION),
    "hf:microsoft/resnet-152": ("ResNet-152, timm's weights: not the paper's, other units", _HUGGING_FACE),
    "hf:facebook/dino-vits8": ("DINO ViT-S/8, trained without labels", _HUGGING_FACE),
    "hf:openai/clip-vit-base-patch32": ("CLIP ViT-B/32, its image side", _HUGGING_FACE),
    "clip-rn50:timm/resnet50_clip.openai": ("CLIP ResNet-50, its image side", _CLIP),
    "synthetic:toybox-eyes": ("Synthetic neurons of toys, on toybox-eyes", _SYNTHETIC),
    "synthetic:grounding-dino:paper": (
        "Synthetic neurons of MAIA's code, by its numbers, on its detectors",
        _SYNTHETIC,
    ),
    "synthetic:grounding-dino": ("Synthetic neurons of the paper's Table A4, on Grounding DINO and SAM", _SYNTHETIC),
    "functions": ("Functions of numbers, texts and words whose code is known", "workers.functions.model.load"),
    "find:": ("FIND's published benchmark, from a folder", "workers.functions.published.model.load"),
    "sae:": ("A sparse auto-encoder that was trained or added here", "workers.vision_models.sparse.model.load"),
    "classifier:": ("A classifier that was trained here", "workers.vision_models.classifier.model.load"),
    "hf:": ("Any image model, by hub id or folder", _HUGGING_FACE),
    "torchvision:": ("A ResNet of torchvision, by file, folder or hub id", _TORCHVISION),
    "clip-rn50:": ("A CLIP ResNet-50, by hub id or file", _CLIP),
    "synthetic:": ("Synthetic neurons on a detector", _SYNTHETIC),
    "timm:": ("Any model of timm, by its name there; needs the package timm", "workers.plugins.timm.load"),
}

DATASETS: Plugins = {
    "toybox": ("toybox validation scenes", "workers.toybox.dataset.load"),
    "toybox-grounds:": ("Four toys, each on a ground of its own in training", "workers.toybox.grounds.load"),
    "spawrious:": ("Spawrious: four dogs, each in a place of its own in training", "workers.datasets.spawrious.load"),
    "folder:": ("A folder of images", "workers.datasets.folder.dataset.load"),
    "links:": ("A folder of images whose links are followed", "workers.datasets.folder.dataset.load_linked"),
    "saved:": ("An image dataset saved by the library `datasets`", "workers.datasets.saved.load"),
    "published:": ("Exemplars that others have published", "workers.datasets.published.load"),
}

IMAGE_GENERATORS: Plugins = {
    "toybox": ("toybox renderer", "workers.toybox.images.load_generator"),
    "toybox-flawed": ("toybox renderer with planted failures", "workers.toybox.flawed_images.load"),
    "diffusion": ("The text-to-image pipeline of the settings", "workers.image_models.diffusion.generator.load"),
    "diffusion:": ("Any text-to-image pipeline, by hub id or folder", "workers.image_models.diffusion.generator.load"),
}

IMAGE_EDITORS: Plugins = {
    "toybox": ("toybox scene editor", "workers.toybox.images.load_editor"),
    "diffusion": ("The editing pipeline of the settings", "workers.image_models.diffusion.editor.load"),
    "diffusion:": ("Any editing pipeline, by hub id or folder", "workers.image_models.diffusion.editor.load"),
}

GAME_ENGINES: Plugins = {"toybox": ("Toybox's renderer", "workers.toybox.engine.load")}
"""The engine that draws toys from any view, beside every generator."""

DESCRIBERS: Plugins = {
    "toybox": ("toybox-describer, a small segmentation network", "workers.toybox.describer.load"),
    "none": ("None", "workers.image_models.no_describer.load"),
}

PROMPT_WRITERS: Plugins = {"toybox": ("Toybox's grammar", "workers.toybox.judging.load_writer")}
"""Writers of prompts from a label, used without a language model."""

ONE_SHOT_LABELLERS: Plugins = {"toybox": ("toybox-describer on exemplars alone", "workers.toybox.one_shot.load")}
"""Labellers of a unit from its exemplars alone, used without a language model."""

CONCEPT_PRESENCE: Plugins = {"toybox": ("Pairs of a colour and a noun in scenes", "workers.toybox.presence.read")}
"""Functions (shown, held out, progress): which concepts are present in so many scenes, two tables."""

CONCEPT_MATCHERS: Plugins = {"toybox": ("Words of labels after synonyms", "workers.toybox.concept_match.match")}
"""Functions (label, truth): whether a label names exactly the concepts of a synthetic neuron."""

PRESENCE_JUDGES: Plugins = {
    "toybox": ("The scene behind each picture of toybox", "workers.toybox.judging.load_judge"),
    "clip:": ("A CLIP or SigLIP, by hub id or folder", "workers.judges.clip.load"),
}
"""Judges of whether an image shows what a label says, used without a language model."""


@dataclass(frozen=True)
class Toolset:
    """Tools of a run's programs. A backbone that sees describes images itself."""

    label: str
    generator: str
    editor: str
    describer: str
    lacks: frozenset[str] = frozenset()
    """Names of `lab.program_api.NAMES` that are not served."""
    is_ablation: bool = False
    """True if its purpose is to measure the value of a tool, rather than to find things out."""


# What each ablation takes away
_DATASET = frozenset({"dataset_exemplars", "test_label"})
_DRAWING = frozenset({"text2image", "text2model", "game_engine"})
_EDITING = frozenset({"edit_images", "edit_image"})
_EXEMPLARS_ALONE = _DRAWING | _EDITING | {"test_label"}
_TOYBOX = ("toybox", "toybox", "toybox")
_DIFFUSION = ("diffusion", "diffusion", "none")


# A dict, so that plug-ins can add to it
class _Toolsets(dict[str, Toolset]):
    """Toolsets by key. Raises UnknownName for a missing one, such as that of a removed plug-in."""

    def __missing__(self, key: str) -> Toolset:
        raise UnknownName(f"There is no toolset {key!r}. Choose one of: {', '.join(self)}.")


TOOLSETS = _Toolsets(
    {
        "toybox": Toolset("Toybox: rendered toy scenes", *_TOYBOX),
        "diffusion": Toolset("Diffusion: photographs drawn and edited by pipelines", *_DIFFUSION),
        "toybox-exemplars": Toolset("Toybox, exemplars only", *_TOYBOX, _EXEMPLARS_ALONE, True),
        "toybox-generated": Toolset("Toybox, generated images only", *_TOYBOX, _DATASET, True),
        "toybox-no-edits": Toolset("Toybox, no edits", *_TOYBOX, _EDITING, True),
        "toybox-flawed": Toolset(
            "Toybox with a generator that errs", "toybox-flawed", "toybox", "toybox", is_ablation=True
        ),
        "diffusion-exemplars": Toolset("Diffusion, exemplars only", *_DIFFUSION, _EXEMPLARS_ALONE, True),
        "diffusion-generated": Toolset("Diffusion, generated images only", *_DIFFUSION, _DATASET, True),
        "diffusion-no-edits": Toolset("Diffusion, no edits", *_DIFFUSION, _EDITING, True),
    }
)
"""Toolsets: those for people first, then the ablations of the paper (section 4.3, Table A5)."""


def draws_toys(toolset: str) -> bool:
    """True if a toolset draws toybox's scenes; False for a missing one."""
    return toolset in TOOLSETS and TOOLSETS[toolset].generator.startswith("toybox")


DETECTORS: Plugins = {
    "toybox-eyes": ("toybox-eyes", "workers.toybox.detector.load"),
    "toybox-eyes:": ("toybox-eyes, with synthetic neurons drawn by a seed", "workers.toybox.detector.load_seeded"),
    "grounding-dino": ("Grounding DINO and SAM", "workers.detectors.grounding_dino.load"),
    "grounding-dino:paper": ("Grounding DINO and SAM of MAIA's code", "workers.detectors.grounding_dino.load"),
    "grounding-dino:": ("Any Grounding DINO and SAM: two hub ids or folders", "workers.detectors.grounding_dino.load"),
}

# Factory takes (settings, spec, model, index): see `lab.laboratory`.
SYSTEMS: Plugins = {
    "unit": ("One unit of a trained network", "workers.systems.unit.load"),
    "logit": ("The probability of a class", "workers.systems.logit.load"),
    "synthetic": ("A synthetic neuron", "workers.systems.synthetic.load"),
    "latent": ("A latent of a sparse auto-encoder", "workers.systems.latent.load"),
    "function": ("A function of numbers, texts or words", "workers.functions.system.load"),
    "circuit": ("A circuit: units and latents studied together", "workers.systems.circuit.load"),
}

SYSTEM_OF_LAYER: Mapping[str, str] = {
    "conv": "unit",
    "mlp": "unit",
    "logit": "logit",
    "concept": "synthetic",
    "latent": "latent",
    "function": "function",
    "circuit": "circuit",
}
"""Kind of layer -> kind of system that its units are studied as."""

SCALES: Mapping[str, str] = {
    "softmax": "the probability of a class, shared out over all classes (softmax)",
    "sigmoid": "the probability of a class by itself, whatever else the image shows (sigmoid)",
}
"""How logits become probabilities, which are the activation of a logit."""

TRAINERS: Plugins = {"toybox": ("the networks of toybox", "workers.toybox.networks.train.main")}
"""Commands that train our own networks again; they take the arguments of a command line."""

# Factory takes (settings, model): the provider's name of the model, "" for the default.
BACKBONES: Plugins = {
    "scripted": ("Scripted scientist (no language model)", "workers.toybox.scientist.backbone.load"),
    "scripted-functions": ("Scripted baseline for functions (no language model)", "workers.functions.scientist.load"),
    "openai": ("Vision-language model (OpenAI-compatible)", "workers.backbones.openai.backbone.load"),
    "person": ("Manual (human)", "workers.backbones.person.load"),
}


def system_of(kind: str) -> str:
    """Return the kind of system as which units of a layer are studied; for a plug-in's kind of layer, the plug-in's
    system.
    """
    return SYSTEM_OF_LAYER.get(kind, kind)


def choices(plugins: Plugins) -> list[tuple[str, str]]:
    """Return keys and labels of plug-ins for a form; families are left out."""
    return [(key, label) for key, (label, _) in plugins.items() if not key.endswith(":")]


def label(plugins: Plugins, key: str) -> str:
    """Return the name of a plug-in for people: its label, or the key itself for a member of a family."""
    return plugins[key][0] if key in plugins else key


BLINDED_KIND = "synthetic"
"""Kind of systems whose names reveal what they respond to."""


def blind_name(kind: str, model: str, layer: str, unit: int) -> str:
    """Return the neutral name of a system for readers who must not know the answer yet: the agent, and judges of its
    conclusion.

    Such as "neuron 482113" for a synthetic neuron, whose layer (or, conditional) and name tell what it responds to; ""
    for systems whose own names give nothing away. The same system always has the same number, 100000 to 999999.
    """
    if kind != BLINDED_KIND:
        return ""
    # "replace": names of files may not be UTF-8
    digest = sha256(f"{model} {layer} {unit}".encode("utf-8", "replace")).digest()
    return f"neuron {100_000 + int.from_bytes(digest[:8]) % 900_000}"


def weights_warning(model: str) -> str:
    """Say why published results on a model's units do not hold for the one of this key; "" if nothing is known."""
    # microsoft/resnet-18 to -152 were converted from timm's weights; MAIA, MILAN, CLIP-Dissect and most lists of labels
    # study torchvision's
    family, _, name = model.partition(":")
    if family != "hf" or not fullmatch(r"microsoft/resnet-\d+", name):
        return ""
    return (
        f"{name} holds weights that timm trained, not torchvision's IMAGENET1K_V1, which MAIA's paper and most "
        f"published labels study: a unit's number means another unit there. Theirs is {PAPER_RESNET}."
    )


def load(plugins: Plugins, key: str) -> Callable[..., Any]:
    """Import the factory of a plug-in. Raises UnknownName, listing what there is."""
    found = _find_function(plugins, key)
    assert found
    return found


def missing(plugins: Plugins, key: str, *arguments: Any) -> str:
    """Say what keeps a plug-in from loading, and the command that gets it; "" if nothing does. Fetches nothing."""
    look = _find_function(plugins, key, "missing")
    return look(*arguments) if look else ""


def list_models(plugins: Plugins, key: str, settings: Any) -> list[str]:
    """List the models that a plug-in works with, the default first; empty if it has no such choice."""
    names = _find_function(plugins, key, "models")
    return list(names(settings)) if names else []


def list_prices(plugins: Plugins, key: str, settings: Any) -> dict[str, tuple[float, float, float | None]]:
    """Return the known prices of the offered models, each a `protocols.Price`."""
    prices = _find_function(plugins, key, "prices")
    return dict(prices(settings)) if prices else {}


def _find_function(plugins: Plugins, key: str, called: str = "") -> Callable[..., Any] | None:
    """Return the factory of a plug-in, or the function of its module that is `called` so; None if there is none.

    It is given what follows the colon of the key after the settings.
    """
    family, colon, name = key.partition(":")
    # The key itself before its family: single members may have factories of their own
    found = plugins.get(key) or (plugins.get(family + colon) if name else None)
    if found is None:
        raise UnknownName(f"There is no {key!r} here. Choose one of: {', '.join(plugins)}.")
    # Plug-ins of the settings register functions, ours dotted paths
    if isinstance(found[1], str):
        function = _import_function(found[1], called)
    else:
        function = getattr(found[1], called, None) if called else found[1]
    # What follows the colon comes second
    return (lambda settings, *rest: function(settings, name, *rest)) if colon and function else function


def _import_function(path: str, called: str) -> Any:
    """Return the factory at a dotted path, or the function of its module that is `called` so; None if there is none."""
    module, _, factory = path.rpartition(".")
    return getattr(import_module(module), called, None) if called else getattr(import_module(module), factory)

"""What the laboratory needs to know of the installation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from workers.model_cache import ModelCache
from workers.record.limits import MOST_EXEMPLARS

if TYPE_CHECKING:
    from workers.protocols.sandbox import Sandbox

Precision = Literal["float32", "float16", "bfloat16"]
Surroundings = Literal["dim", "dark", "weighted"]
"""What lies outside the bright region of masked images: at 55 % brightness with half its colour, or, as published,
at 25 %. "weighted": at 25 % too, and the region is the brighter the more active it is."""

CacheHint = Literal["auto", "marks", "key", "none"]
"""How a provider is told what to keep in its cache: by marks in the conversation, as Claude wants it, or by a key for
each run, as OpenAI does. `auto` goes by address and model."""
AutoSwitch = Literal["auto", "yes", "no"]
"""Whether a provider gets something that some do not take. `auto`: where it is known to take it."""


class Price(NamedTuple):
    """US dollars for a million tokens."""

    prompt: float
    completion: float
    cached: float | None = None
    """Of prompt tokens that the provider reads from its cache; None: they cost what others do."""


@dataclass(frozen=True)
class Provider:
    """Where a vision-language model answers: any server that speaks OpenAI's chat completions."""

    key: str = field(default="", repr=False)
    """Secret; empty if there is none."""
    base_url: str = ""
    """Empty for OpenAI's own."""
    models: tuple[str, ...] = ()
    """The provider's names of the models to offer; the first is the default."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    context_tokens: int = 128_000
    """Tokens of a conversation with its reply, above which images give way to their captions, exemplars last."""
    attempts: int = 8
    """Requests for one reply in all, the first included, when the provider is busy, silent or breaks."""
    silence: float = 300.0
    """Seconds that it may send nothing before the request is given up."""
    reasoning_effort: str = ""
    """How long models shall think, as `low`; empty: not asked for."""
    image_detail: str = ""
    """How closely images shall be looked at, as `high`; empty: not asked for."""
    cache: CacheHint = "auto"
    return_reasoning: AutoSwitch = "auto"
    """Whether it gets back what its models thought."""
    tools: AutoSwitch = "auto"
    """Whether its models are offered functions to call in place of the tags of a reply."""


@dataclass(frozen=True)
class LabSettings:
    """What the laboratory needs to know of the installation; built in one place, from the environment."""

    state: Path
    """Folder for indexes and caches."""
    device: str = "cpu"
    precision: Precision = "float32"
    """Of weights and activations inside networks and pipelines; what leaves them is float32."""
    model_cache: ModelCache = field(default_factory=ModelCache, compare=False)
    """Keeps the loaded weights of this process within its memory budget."""
    provider: Provider = Provider()
    dataset: str = "toybox"
    """Key of the dataset that exemplars come from where a query names none."""
    generator: str = "stable-diffusion-v1-5/stable-diffusion-v1-5"
    """Text-to-image pipeline of the toolset "diffusion": hub id or folder."""
    editor: str = "timbrooks/instruct-pix2pix"
    """Editing pipeline of the toolset "diffusion": hub id or folder."""
    image_batch: int = 4
    """Images that a pipeline makes at a time."""
    image_steps: int = 0
    """Denoising steps; 0 means what the pipeline's authors chose."""
    image_guidance: float = 0
    """How strictly a drawing follows its prompt; 0 means what the pipeline's authors chose."""
    image_size: int = 0
    """Side in pixels of the squares that are drawn; 0 means what the pipeline's authors chose."""
    edit_steps: int = 0
    """Denoising steps of an edit; 0 means `image_steps`."""
    edit_guidance: float = 0
    """How strictly an edit follows its instruction; 0 means what the pipeline's authors chose."""
    edit_size: int = 0
    """Side in pixels of a square as large as what an edit is worked on at; 0 means what the network was trained at."""
    batch_size: int = 64
    dataset_images: int = 0
    """Images of a dataset that are used, from its first on; 0 means all. A few make a quick trial."""
    exemplars: int = MOST_EXEMPLARS
    """Kept for each unit."""
    mask_quantile: float = 0.99
    """Quantile of a unit's spatial activations over the dataset above which its mask is bright."""
    surroundings: Surroundings = "dim"
    """Look of masked images outside the bright region where a query asks for none."""
    game_models: str = ""
    """Folder of `.glb` files, each of which adds a noun to the game engine; empty: none."""
    sentences: str = ""
    """Folder of the sentence-embedding model that compares words; empty: the one that comes with a package."""
    find_sandbox: Callable[[], Sandbox] | None = field(default=None, compare=False, repr=False)
    """Where code of others runs that a model consists of; None: nowhere."""
    words_per_second: float = 0.0
    """How fast the scripted scientist writes; 0 means at once."""

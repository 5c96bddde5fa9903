"""The installation's settings, as the laboratory needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from workers.model_cache import ModelCache
from workers.record.limits import MAX_EXEMPLARS

if TYPE_CHECKING:
    from workers.protocols.sandbox import Sandbox

Precision = Literal["float32", "float16", "bfloat16"]
Surroundings = Literal["dim", "dark", "weighted"]
"""Look of masked images outside the bright region: 55 % brightness with half its colour, or, as published, 25 %.
"weighted": 25 % too, and brightness in the region grows with the activation.
"""

CacheHint = Literal["auto", "marks", "key", "none"]
"""How a provider is told what to cache: by marks in the conversation (Claude), or by a key for each run (OpenAI).
`auto` decides by address and model.
"""
AutoSwitch = Literal["auto", "yes", "no"]
"""A switch for something that only some providers accept. `auto`: if the provider is known to accept it."""


class Price(NamedTuple):
    """Prices in US dollars for a million tokens."""

    prompt: float
    completion: float
    cached: float | None = None
    """Prompt tokens that the provider reads from its cache; None: the price of other prompt tokens."""


@dataclass(frozen=True)
class Provider:
    """A server of vision-language models: any that speaks OpenAI's chat completions."""

    key: str = field(default="", repr=False)
    """Secret; empty if there is none."""
    base_url: str = ""
    """Empty for OpenAI's own."""
    models: tuple[str, ...] = ()
    """The provider's names of the offered models; the first is the default."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    context_tokens: int = 128_000
    """Maximum tokens of a conversation with its reply; above it, images are replaced by captions, exemplars last."""
    attempts: int = 8
    """Maximum requests for one reply, including the first, when the provider is busy, silent or breaks."""
    silence: float = 300.0
    """Seconds of silence after which a request is given up."""
    reasoning_effort: str = ""
    """Reasoning effort of models, such as `low`; empty: not sent."""
    image_detail: str = ""
    """Detail at which images are looked at, such as `high`; empty: not sent."""
    cache: CacheHint = "auto"
    return_reasoning: AutoSwitch = "auto"
    """Switch: return the thoughts of its models to it."""
    tools: AutoSwitch = "auto"
    """Switch: offer its models functions to call instead of tags in a reply."""


@dataclass(frozen=True)
class LabSettings:
    """The installation's settings, as the laboratory needs them; built in one place, from the environment."""

    state: Path
    """Folder for indexes and caches."""
    device: str = "cpu"
    precision: Precision = "float32"
    """Precision of weights and activations inside networks and pipelines; their results are float32."""
    model_cache: ModelCache = field(default_factory=ModelCache, compare=False)
    """Keeps the loaded weights of this process within its memory budget."""
    provider: Provider = Provider()
    dataset: str = "toybox"
    """Key of the default dataset for exemplars."""
    generator: str = "stable-diffusion-v1-5/stable-diffusion-v1-5"
    """Text-to-image pipeline of the toolset "diffusion": hub id or folder."""
    editor: str = "timbrooks/instruct-pix2pix"
    """Editing pipeline of the toolset "diffusion": hub id or folder."""
    image_batch: int = 4
    """Images that a pipeline makes at a time."""
    image_steps: int = 0
    """Denoising steps; 0 means the default of the pipeline's authors."""
    image_guidance: float = 0
    """Guidance of a drawing by its prompt; 0 means the default of the pipeline's authors."""
    image_size: int = 0
    """Side in pixels of the squares that are drawn; 0 means the default of the pipeline's authors."""
    edit_steps: int = 0
    """Denoising steps of an edit; 0 means `image_steps`."""
    edit_guidance: float = 0
    """Guidance of an edit by its instruction; 0 means the default of the pipeline's authors."""
    edit_size: int = 0
    """Side in pixels of a square with the area on which an edit is worked; 0 means the size of the network's
    training.
    """
    batch_size: int = 64
    dataset_images: int = 0
    """Images of a dataset that are used, from the first; 0 means all. A few make a quick trial."""
    exemplars: int = MAX_EXEMPLARS
    """Exemplars kept for each unit."""
    mask_quantile: float = 0.99
    """Quantile of a unit's spatial activations over the dataset above which its mask is bright."""
    surroundings: Surroundings = "dim"
    """Default look of masked images outside the bright region."""
    game_models: str = ""
    """Folder of `.glb` files, each of which adds a noun to the game engine; empty: none."""
    sentences: str = ""
    """Folder of the sentence-embedding model that compares words; empty: the one that comes with a package."""
    find_sandbox: Callable[[], Sandbox] | None = field(default=None, compare=False, repr=False)
    """Runs foreign code that a model consists of; None: refused."""
    words_per_second: float = 0.0
    """Speed at which the scripted scientist writes; 0 means at once."""

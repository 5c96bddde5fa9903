"""The contracts between the parts of the laboratory: plain data, and protocols of one to three verbs.

Plug-ins implement these and import nothing else of ours but `errors` and `lab.imaging`.
Images are `PIL.Image.Image` in mode RGB everywhere, unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

Json = Any
"""Whatever `json.dumps` takes. Only at the edge: rows, the wire, files."""

Origin = Literal["exemplar", "generated", "edited", "original", "uploaded"]
"""Where an image came from. An original is an image generated to be edited."""

Progress = Callable[[str, int, int], None]
"""Called as `progress(what, done, total)` between steps of long work. May raise `Cancelled`."""


def silent(what: str, done: int, total: int) -> None:
    """The progress report nobody listens to."""


@dataclass(frozen=True)
class LabSettings:
    """What the laboratory needs to know of the installation; built in one place, from the environment."""

    state: Path
    """Folder for indexes and caches."""
    device: str = "cpu"
    batch_size: int = 64
    data_set_images: int = 0
    """Images of a data set that are used, from its first on; 0 means all. A few make a quick trial."""
    exemplars: int = 15
    """Exemplars kept for each unit (paper, section 3.2)."""
    mask_quantile: float = 0.99
    """Quantile of a unit's spatial activations over the data set above which its mask is bright."""
    words_per_second: float = 60.0
    """How fast the scripted scientist writes; 0 means at once."""


# --- images ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Picture:
    """An image and the scene behind it, where there is one."""

    image: Image
    scene: Json = None
    """Plain data from which its generator can draw the image again; None for mere pixels."""
    remark: str = ""
    """What the maker wants to say of it, such as the words of a prompt it did not understand."""


@dataclass(frozen=True)
class Provenance:
    """What the laboratory remembers of an image."""

    origin: Origin
    prompt: str = ""
    seed: int | None = None
    scene: Json = None
    raw: str | None = None
    """Key of the unmasked image, if this one is masked."""
    original: str | None = None
    """Key of the image this one was edited from."""


class ImageMemory(Protocol):
    """Remembers images by key (`lab.imaging.image_key`) across rounds and workers.

    What is known of a key is kept; only "uploaded" gives way to something better known.
    """

    def remember(self, image: Image, provenance: Provenance) -> str:
        """Store the image and what is known of it; return its key."""
        ...

    def recall(self, key: str) -> Provenance | None:
        """What is known of the image, None if nothing is."""
        ...

    def load(self, key: str) -> Image:
        """The image. Raises KeyError if it was never stored."""
        ...


class ImageGenerator(Protocol):
    def generate(self, prompts: Sequence[str], seeds: Sequence[int], progress: Progress = silent) -> list[Picture]:
        """Draw one image for each prompt; the same prompt and seed give the same pixels.

        Raises ToolRefused if a prompt cannot be drawn at all, Cancelled between steps.
        """
        ...


class ImageEditor(Protocol):
    def edit(
        self,
        originals: Sequence[Picture],
        instructions: Sequence[str],
        seeds: Sequence[int],
        progress: Progress = silent,
    ) -> list[Picture]:
        """Apply one instruction to each original; everything else in the image stays.

        Raises ToolMisuse if an instruction makes no sense for its image, or the editor needs the
        scene behind the image and there is none; Cancelled between steps.
        """
        ...


class Describer(Protocol):
    """Puts images into words, knowing nothing of the hypotheses. Looks at the bright region of masked images."""

    def describe(self, images: Sequence[Image]) -> list[str]:
        """One description for each image."""
        ...

    def summarize(self, images: Sequence[Image]) -> str:
        """What the images have in common."""
        ...


# --- models and systems ---------------------------------------------------------------------------


@dataclass(frozen=True)
class LayerInfo:
    """A named place in a model."""

    name: str
    """Stable name: the paper's, where it has one."""
    path: str
    """Module path in the network."""
    kind: Literal["conv", "mlp", "logit"]
    units: int


class VisionModel(Protocol):
    """A trained network. `maps` may be called from several threads: it holds the model's own lock."""

    name: str
    revision: str
    """Changes whenever the weights do; part of the name of everything computed from them."""

    def layers(self) -> Sequence[LayerInfo]: ...

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """Forward pass. For each layer name a float32 tensor (batch, units, height, width) on the CPU or GPU.

        Logits have height and width 1. Raises UnknownName for a layer that does not exist.
        """
        ...


class DataSet(Protocol):
    """Images in a fixed order."""

    name: str
    revision: str

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Picture: ...


@dataclass(frozen=True)
class SystemSpec:
    """Names a system: what a person picks on the New query page."""

    kind: str
    """Key in `registry.SYSTEMS`, for example "unit"."""
    model: str
    layer: str
    unit: int
    options: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """What a system answers to one image."""

    activation: float
    masked: Image


@dataclass(frozen=True)
class Exemplar:
    """A data set image that maximally activates a system."""

    activation: float
    picture: Picture
    masked: Image
    index: int
    """Position in the data set."""


class Subject(Protocol):
    """The thing under study behind `system`: one unit, a logit, a synthetic neuron."""

    spec: SystemSpec

    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Activation and masked image for each image; depends on the image alone."""
        ...

    def exemplars(self, progress: Progress = silent) -> Sequence[Exemplar]:
        """The data set images that activate it most, best first; empty if none activates it at all."""
        ...


# --- the experiment log -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Observation:
    """One image an experiment logged. `image` and `masked` are keys; `image` is always the raw one."""

    title: str
    activation: float
    image: str
    masked: str | None = None
    origin: Origin = "uploaded"
    prompt: str = ""
    seed: int | None = None
    original: str | None = None
    """Key of the image this one was edited from."""


@dataclass(frozen=True)
class LogEntry:
    """What one call of `tools.log_experiment` (or `tools.display`) left: observations, then words."""

    observations: tuple[Observation, ...]
    text: str = ""


# --- conversation and backbone ----------------------------------------------------------------------


@dataclass(frozen=True)
class ImagePart:
    """An image in a message, by key, with the title and activation that stand in for it when it must give way."""

    key: str
    caption: str


@dataclass(frozen=True)
class Message:
    """One turn. `parts` are strings and images in reading order."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[str | ImagePart, ...]

    @property
    def text(self) -> str:
        """The words alone."""
        return "\n".join(part for part in self.parts if isinstance(part, str))


@dataclass(frozen=True)
class Usage:
    """What a reply took. Tokens as the provider counts them; cost in US dollars."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class Reply:
    text: str
    usage: Usage = Usage()


class Backbone(Protocol):
    """What writes the replies. Stateless: the conversation is all it knows."""

    label: str

    def reply(
        self, messages: Sequence[Message], load: Callable[[str], Image], emit: Callable[[str], None], seed: int
    ) -> Reply:
        """Answer the conversation. `load` gives an image by key; `emit` takes each piece of text as it comes.

        `emit` may raise Cancelled, which must pass through at once. Raises BackboneUnavailable, BackboneRefused.
        """
        ...


# --- sandbox ----------------------------------------------------------------------------------------

ExperimentStatus = Literal["ok", "program_error", "tool_error", "timeout", "memory", "killed"]


@dataclass(frozen=True)
class Bounds:
    """Limits of one program."""

    seconds: float = 60.0
    """Wall-clock for the program's own time; time inside tools is counted apart."""
    tool_seconds: float = 600.0
    output_chars: int = 20_000
    memory_bytes: int = 2 << 30
    frame_bytes: int = 64 << 20
    """Bytes of one message, either way."""
    total_bytes: int = 4 << 30
    """Bytes of all that a program sends."""
    calls: int = 1_000
    pixels: int = 4096 * 4096
    """Pixels of one image."""


@dataclass(frozen=True)
class ToolCall:
    """One call that a program made; `arguments` is a short, readable summary."""

    name: str
    arguments: str
    seconds: float


@dataclass(frozen=True)
class ExperimentResult:
    """What came of a program. Our machinery's failure is never one of these: it is a MachineryError."""

    status: ExperimentStatus
    output: str = ""
    output_truncated: bool = False
    error: str = ""
    """Traceback with the program's own line numbers, or the reason in words; empty when ok."""
    seconds: float = 0.0
    """The program's own time, in seconds."""
    tool_seconds: float = 0.0
    calls: tuple[ToolCall, ...] = ()
    state: bytes = b""
    """What a free-form script leaves to the next: msgpack of plain data; opaque to everyone but the guest."""


class Sandbox(Protocol):
    def run(
        self,
        program: str,
        calls: Mapping[str, Callable[..., Any]],
        facts: Mapping[str, Json],
        *,
        bounds: Bounds,
        state: bytes = b"",
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ExperimentResult:
        """Run a program that the agent wrote in a child of its own.

        `calls` maps "system.neuron", "tools.text2image", … to the functions that serve them; their arguments
        and results are numbers, text, None, PIL images, and lists and dicts of these. `facts` are the plain attributes
        that the proxies show, as {"system.layer": "layer4", …}. A ToolError raised by a call is raised again in the
        program. Raises Cancelled when `cancelled()` turns true (the child is killed), SandboxBroke when it cannot run
        at all; any other exception of a call kills the child and passes through.
        """
        ...

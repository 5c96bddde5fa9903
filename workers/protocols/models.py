"""Trained networks, detectors, and the datasets that exemplars come from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from workers.errors import MissingPart, UnknownName
from workers.protocols.images import Picture, Progress, no_progress
from workers.record.circuits import CircuitMember

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from PIL.Image import Image


Scale = Literal["", "softmax", "sigmoid"]
"""How logits become probabilities; "" for values that are not logits of classes.

"softmax" for classes of which an image shows one: they share a probability of 1. "sigmoid" for classes of which it may
show any number: each has its own probability.
"""


def probabilities(logits: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Return probabilities in [0, 1] of logits (batch, classes, ...); values without a scale stay as they are."""
    if not scale:
        return logits
    # Classes are the second dimension; further ones are places
    return logits.sigmoid() if scale == "sigmoid" else logits.softmax(1)


@dataclass(frozen=True)
class LayerInfo:
    """A named place in a model."""

    name: str
    """Stable name: the paper's, where it has one."""
    path: str
    """Module path in the network."""
    kind: Literal["conv", "mlp", "logit", "concept", "latent", "function", "circuit"]
    units: int
    names: tuple[str, ...] = ()
    """Names of the units if they have some: the classes of logits, the concepts of synthetic neurons."""
    scale: Scale = ""


def check_layers(model: str, layers: Iterable[str], known: Collection[str]) -> None:
    """Raise UnknownName, listing a model's layers, for a layer that it does not have."""
    for layer in layers:
        if layer not in known:
            raise UnknownName(f"{model} has no layer {layer!r}. Choose one of: {', '.join(known)}.")


class VisionModel(Protocol):
    """A trained network. `maps` may be called from several threads: it holds the model's own lock.

    It may have `about()`: a sentence for people that says which weights it has; and `base`: the key of the model whose
    layers it reads, if it is built on another one.
    """

    name: str
    revision: str
    """Changes whenever the weights do; part of the name of everything computed from them."""

    def layers(self) -> Sequence[LayerInfo]: ...

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """Run a forward pass. Returns for each layer name a float32 tensor (batch, units, height, width) on the CPU or
        GPU.

        Logits have height and width 1. Raises UnknownName for a layer that does not exist.
        """


Box = tuple[float, float, float, float]
"""Left, top, right and bottom edge of a part of an image, as shares of its width and height.

Below 0 or above 1 where the part reaches beyond the image."""
WHOLE_IMAGE: Box = (0.0, 0.0, 1.0, 1.0)


class CroppingModel(VisionModel, Protocol):
    """A model that sees only part of an image, which its maps cover."""

    def find_visible(self, size: tuple[int, int]) -> Box:
        """Return the part that it sees of an image of `size` (width, height)."""


def visible_part(model: VisionModel, size: tuple[int, int]) -> Box:
    """Return the part of an image of `size` (width, height) that the maps of a model cover: all of it, unless it
    crops.
    """
    # Optional method of the protocol: most models see the whole image
    find: Callable[[tuple[int, int]], Box] | None = getattr(model, "find_visible", None)
    return find(size) if find else WHOLE_IMAGE


Rewrite = Callable[["torch.Tensor"], "torch.Tensor"]
"""A function from the maps of a layer, float32 (batch, units, height, width), to their replacement: the same shape, or
one that broadcasts to it, such as (units, 1, 1).
"""


class RewritableModel(VisionModel, Protocol):
    """A model that can compute its output with the activations of one layer replaced.

    It may have `output_layers()`: the layers of the model whose output that is, if they are not its own.
    """

    def outputs(
        self, images: Sequence[Image], layer: str, rewrite: Rewrite | None = None, *, gradients: bool = False
    ) -> torch.Tensor:
        """Return the model's own output, float32 (batch, outputs): its logits, or without classes its embedding.

        `rewrite` replaces the output of `layer`, wherever the network uses it; without it nothing is replaced. It is
        called while the model holds its lock, so it must not run another model. With `gradients`, gradients can be
        taken with respect to what `rewrite` returns, one tensor for each batch; otherwise not. Raises UnknownName for a
        layer that does not exist, MissingPart for one whose replacement cannot change the output.
        """


class TraceableModel(RewritableModel, Protocol):
    """A model of which several layers can be replaced, or read, in one pass."""

    def trace(
        self, images: Sequence[Image], rewrites: Mapping[str, Rewrite | None], *, gradients: bool = False
    ) -> torch.Tensor:
        """As `outputs`, with the maps of each of these layers replaced, in the order of computation.

        A rewrite that returns its argument reads its layer, after the rewrites of earlier layers.
        """


class OverlaidModel(VisionModel, Protocol):
    """A model whose units are read from, and write to, a layer of another model."""

    def lift(self, rewrite: Rewrite) -> AbstractContextManager[Rewrite]:
        """Within the `with` block, turn `rewrite` of its units into a rewrite of the layer below.

        It holds its own lock meanwhile: enter it before the model below runs, and several in the order of their names.
        """


def check_rewritable(model: str, layer: str, layers: Sequence[LayerInfo]) -> None:
    """Raise UnknownName for a layer that a model does not have, MissingPart for logits."""
    kinds = {info.name: info.kind for info in layers}
    check_layers(model, [layer], kinds)
    if kinds[layer] == "logit":
        raise MissingPart(
            f"{layer} of {model} is the output itself, so nothing follows from replacing it. Choose an earlier layer."
        )


def find_classes(model: VisionModel) -> LayerInfo | None:
    """Return the classes whose logits a model outputs; None if it outputs an embedding."""
    # A model laid over another has the classes of that one
    layers: Callable[[], Sequence[LayerInfo]] = getattr(model, "output_layers", model.layers)
    return next((info for info in layers() if info.kind == "logit"), None)


class Classifier(VisionModel, Protocol):
    """A model with a layer of kind "logit" that can say where in an image it sees a class."""

    def evidence(self, images: Sequence[Image], unit: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the probability of the class for each image, (batch,) in [0, 1], and a map of the regions that speak
        for it.

        The maps are (batch, height, width), at least 0. The probabilities are on the scale of the logits' `LayerInfo`.
        """


class ConceptModel(VisionModel, Protocol):
    """A model with layers of kind "concept": each unit looks for one or two concepts, and costs only those."""

    def unit_maps(self, images: Sequence[Image], layer: str, unit: int) -> torch.Tensor:
        """Return the maps of one unit, float32 (batch, height, width) in [0, 1], as `maps` gives them; 0 where it is
        silent.

        Raises UnknownName for a layer that does not exist.
        """


class LatentModel(ConceptModel, Protocol):
    """A model whose units are latents of a layer below."""

    def find_strongest(self, images: Sequence[Image], unit: int) -> int | None:
        """Return the latent that adds most to a unit of the layer below, where that unit is strongest in these images;
        None if none adds anything.
        """


@dataclass(frozen=True)
class MeasuredMembers:
    """The activations of a circuit's members on some images."""

    activations: NDArray[np.float32]
    """(images, members): the highest value of each member's map."""
    maps: NDArray[np.float32]
    """(images, height, width): the mean over the members of map / threshold."""


class MemberModel(VisionModel, Protocol):
    """A circuit as a model; see `lab.circuits`."""

    members: Sequence[CircuitMember]

    def find_thresholds(self, progress: Progress = no_progress) -> NDArray[np.float32]:
        """Return (members,), all above 0. Computes what is not indexed yet."""

    def measure_members(self, images: Sequence[Image]) -> MeasuredMembers:
        """Measure the members. Needs the thresholds."""


@dataclass(frozen=True)
class Detection:
    """One place where a detector found a concept."""

    confidence: float
    """In [0, 1]."""
    mask: NDArray[np.bool_]
    """(height, width), over the whole image at the detector's own resolution; never empty."""


class Detector(Protocol):
    """Finds concepts, named in words, in images. Holds its own lock while one batch runs.

    It may have `neurons`: the synthetic neurons that suit it, by kind, as `synthetic.neuron.build_table` takes them.
    """

    name: str
    revision: str

    def detect(self, images: Sequence[Image], concepts: Sequence[str]) -> list[dict[str, list[Detection]]]:
        """Return for each image the detections of each concept; an empty list if it is absent.

        What is found in an image depends on that image alone. Raises UnknownName for a concept it cannot know.
        """


class Dataset(Protocol):
    """Images in a fixed order. Safe for threads.

    It may have `list_files(progress)`, called before its length and revision are first needed; `prepare(progress)`,
    called before an index is computed; `source(index)`: the name of the image at a position, such as its file;
    `count()`: how many of its positions hold an image, as far as that is known without decoding all; raises MissingPart
    if none does; `title`: its name for people, if its key does not tell; and `held_out(split)`: fresh images of the
    same world for the split "development" or "probe", none of them its own.
    """

    name: str
    revision: str

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Picture:
        """The image at a position. Raises BrokenImage."""


@dataclass(frozen=True)
class PublishedLayer:
    """Published exemplars of a layer's units."""

    activations: NDArray[np.floating[Any]]
    """(size, units), best first."""
    positions: NDArray[np.integer[Any]]
    """(size, units), of the same images in the dataset."""
    thresholds: NDArray[np.float64] | None
    """(units,): above this, a unit's map is bright. None if not published."""


class PublishedDataset(Dataset, Protocol):
    """A dataset that knows which images are exemplars of which units.

    It may have `mask(position)`: the published bright region of an image, (height, width), or None.
    """

    layer_names: Sequence[str]

    def layer_of(self, index: int) -> str:
        """Return the layer whose exemplar is at a position."""

    def published(self, layer: str) -> PublishedLayer:
        """Return the published exemplars of a layer. Raises MissingPart if there are none."""

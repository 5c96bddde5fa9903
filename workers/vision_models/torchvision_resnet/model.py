"""torchvision's ResNets as models under study, by file, folder or hub id: "torchvision:/path/resnet152-394f9c45.pth".

IMAGENET1K_V1 of ResNet-152 is the network that MAIA's paper studies. Its weights are available as torchvision's own
file, or as timm/resnet152.tv_in1k on the hub, which has the same weights under the same names. Loaded through the
registry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from workers import hub
from workers.errors import UnknownName
from workers.protocols import LabSettings, LayerInfo
from workers.vision_models.centre_crop import CentreCrop
from workers.vision_models.single_file import SingleFileModel, file_of
from workers.vision_models.torchvision_resnet import weights
from workers.vision_models.torchvision_resnet.network import ResNet

FILES: hub.Groups = (("model.safetensors", "pytorch_model.bin"),)
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
"""ImageNet's mean and deviation by channel."""
CROP = CentreCrop(224, 256, Image.Resampling.BILINEAR, MEAN, DEVIATION)
"""Preprocessing of torchvision for IMAGENET1K_V1."""
FILE_OF_PAPER = "resnet152-394f9c45.pth"
PAPER = "timm/resnet152.tv_in1k"


def load(settings: LabSettings, name: str) -> TorchvisionResNet:
    """Return the model by file, folder or hub id. Nothing is read yet, so no error is raised yet."""
    return TorchvisionResNet(settings, "torchvision", name, FILES)


def missing(settings: LabSettings, name: str) -> str:  # noqa: ARG001 - the registry's contract
    """Say what keeps the model from loading offline, and the command that downloads it; "" if nothing does."""
    lack = "" if file_of(name) else hub.missing(name, FILES)
    if not lack or name != PAPER:
        return lack
    return (
        f"{lack}. Or download https://download.pytorch.org/models/{FILE_OF_PAPER} and add it by its path: "
        f"manage.py models torchvision:/path/{FILE_OF_PAPER}"
    )


class TorchvisionResNet(SingleFileModel[ResNet]):
    """See `single_file.SingleFileModel`; also a `protocols.Classifier`."""

    def evidence(self, images: Sequence[Image.Image], unit: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the probability of a class, by a softmax over all, and where it is seen; see
        `protocols.Classifier.evidence`.

        The head is linear after a mean, so Grad-CAM's weights are the head's divided by the number of positions, and
        its map is the class activation map (Zhou et al., CVPR 2016). Raises UnknownName.
        """
        classes = sum(layer.units for layer in self.layers() if layer.kind == "logit")
        if not 0 <= unit < classes:
            known = f"classes from 0 to {classes - 1}" if classes else "no head"
            raise UnknownName(f"{self.name} has {known}, so it knows no class {unit}.")
        found = self.maps(images, ["layer4", "logits"])
        with self._open().slot as network:
            weights = network.get_parameter("fc.weight")[unit].float() / max(1, found["layer4"][:1, 0].numel())
        maps = torch.einsum("u,buhw->bhw", weights, found["layer4"]).relu()
        probabilities = found["logits"].flatten(1).softmax(1)[:, unit]
        return probabilities.numpy(force=True), maps.numpy(force=True)

    def about(self) -> str:
        """Say which weights these are, for people."""
        path = self._path()
        called = weights.PUBLISHED.get(hub.file_fingerprint(path)[:8], "")
        if called:
            return f"torchvision's own file of {called}, by its hash"
        known = "in another form than torchvision's own, so that nothing proves which weights they are"
        # The hash in the names is of .pth files; safetensors of the same weights have another one.
        if path.suffix != ".safetensors":
            known = "in a file that torchvision did not publish, by its hash"
        has_head = any(layer.kind == "logit" for layer in self.layers())
        return known if has_head else f"{known}; without a head of one linear layer, so that there are no logits"

    def _network(self, path: Path) -> ResNet:
        return weights.load(path)

    def _layers(self, network: ResNet) -> list[LayerInfo]:
        layers = [LayerInfo(name, name, "conv", units) for name, units in network.widths.items()]
        if network.fc is not None:
            classes = network.fc.out_features
            layers.append(LayerInfo("logits", "fc", "logit", classes, self._name_classes(classes), "softmax"))
        return layers

    def _name_classes(self, count: int) -> tuple[str, ...]:
        """Return the class names from a config.json of transformers beside the weights; empty if it does not name
        each class."""
        try:
            # Keys of JSON objects are text.
            named = json.loads((self._path().parent / "config.json").read_text("utf-8"))["id2label"]
            names = tuple(str(named[str(unit)]) for unit in range(len(named)))
        except (OSError, ValueError, KeyError, TypeError):
            return ()
        # A config of another head would name the wrong classes.
        return names if len(names) == count else ()

    def _crop(self, network: ResNet) -> CentreCrop:  # noqa: ARG002 - it is the same for all
        return CROP

    def _maps(self, network: ResNet, pixels: torch.Tensor) -> Mapping[str, torch.Tensor]:
        return network.maps(pixels)

"""The models of timm, by name: "timm:resnet50.a1_in1k". Needs the package `timm`; weights come from the hub's cache.

Preprocessing is what timm's own configuration of the weights says: size, share of the centre, mean and deviation.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

from PIL import Image

from workers import hub
from workers.errors import MissingPart, UnknownName
from workers.plugins.modules import ModuleModel, Study, study
from workers.protocols import LabSettings
from workers.vision_models.centre_crop import CentreCrop
from workers.weights import get_first_line

FILES: hub.Groups = (("model.safetensors", "pytorch_model.bin"),)
_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def missing(settings: LabSettings, name: str) -> str:  # noqa: ARG001 - the registry's contract
    """Say what keeps the model from being used offline, and the command that gets it; "" if nothing does."""
    if find_spec("timm") is None:
        return f"timm:{name} needs the package timm. Get it where the worker runs: .venv/bin/pip install timm"
    return hub.missing(_read_config(name).hf_hub_id, FILES)


def load(settings: LabSettings, name: str) -> ModuleModel:
    """Load the model by timm's name of it. Raises UnknownName, MissingPart."""
    if lack := missing(settings, name):
        raise MissingPart(lack)
    # Imported here: the package is optional
    import timm

    make = partial(_make, name)
    # The version of timm decides the architecture, as a plug-in's file does
    return ModuleModel(settings, f"timm:{name}", make(), make, f"timm-{timm.__version__}")


def _make(name: str) -> Study:
    import timm

    config = _read_config(name)
    file = hub.files(hub.folder(config.hf_hub_id, FILES), FILES)[0]
    network: Any = timm.create_model(name, pretrained=False, checkpoint_path=str(file))
    channels, height, width = config.input_size
    # `CentreCrop` makes squares in RGB
    if channels != 3 or height != width:
        raise MissingPart(
            f"timm:{name} takes images of {channels} x {height} x {width}, and only squares in RGB are made."
        )
    # timm names the share of the image that the crop keeps
    shorter = int(height / config.crop_pct)
    resampling = _FILTERS.get(config.interpolation, Image.Resampling.BICUBIC)
    crop = CentreCrop(height, shorter, resampling, tuple(config.mean), tuple(config.std))
    # Without names their number is enough; 0 means no classes
    classes = list(config.label_names or ()) or int(network.num_classes) or None
    return study(network, crop, classes)


def _read_config(name: str) -> Any:
    """Return what timm knows of the weights. Raises UnknownName."""
    from timm.models import get_pretrained_cfg

    try:
        config = get_pretrained_cfg(name)
    except Exception as error:
        raise UnknownName(f"timm has no weights called {name!r}: {get_first_line(error)}") from error
    if config is None or not config.hf_hub_id:
        raise UnknownName(f"timm has no weights called {name!r}. timm.list_pretrained() lists them.")
    return config

"""A laboratory small enough to work out by hand: a network with hand-set weights, and squares of colour.

A picture is 8 x 8 pixels, black but for a 4 x 4 square of one colour in one corner. The layer "patches" averages 4 x 4
patches, so its maps are 2 x 2.
"""

from __future__ import annotations

import base64
from functools import partial
from pathlib import Path
from threading import Lock

import torch
from PIL import Image

from workers import registry
from workers.errors import RequestError, UnknownName
from workers.lab.image_tools import ImageSeeds, ImageTools, ToolBackends
from workers.lab.imaging import encode_png, refused_picture
from workers.lab.memory import ImagesInMemory
from workers.lab.system import System
from workers.lab.tools import Tools
from workers.protocols import LabSettings, LayerInfo, Picture, no_progress
from workers.record.systems import SystemSpec
from workers.systems.unit import Unit

COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "grey": (51, 51, 51), "black": (0, 0, 0)}
CORNERS = ((0, 0), (4, 0), (0, 4), (4, 4))
RED, GREEN, DEAD, RED_NOT_BLUE = range(4)
WEIGHTS = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0), (2.0, 0.0, -2.0)]
SPEC = SystemSpec("unit", "tiny", "patches", RED)


def draw(scene):
    image = Image.new("RGB", (8, 8))
    image.paste(COLOURS[scene["colour"]], (*scene["corner"], scene["corner"][0] + 4, scene["corner"][1] + 4))
    return Picture(image, scene)


def to_base64(image):
    """The image as a plain Base64 PNG string, as the published API passes masked images."""
    return base64.b64encode(encode_png(image)).decode("ascii")


def square(colour, corner=0):
    return draw({"colour": colour, "corner": CORNERS[corner]}).image


class TinyModel:
    """A `VisionModel`: patch means times `WEIGHTS`, and the mean over the whole picture as logits."""

    name = "tiny"

    def __init__(self, revision="1"):
        self.revision = revision
        self.batches = []
        self._lock = Lock()
        self._conv = torch.nn.Conv2d(3, len(WEIGHTS), 4, stride=4, bias=False)
        self._conv.weight.data = (torch.tensor(WEIGHTS) / 16)[:, :, None, None].expand(-1, -1, 4, 4).clone()

    def layers(self):
        return [LayerInfo("patches", "conv", "conv", len(WEIGHTS)), LayerInfo("logits", "fc", "logit", len(WEIGHTS))]

    def maps(self, images, layers):
        with self._lock, torch.no_grad():
            self.batches.append(len(images))
            images = [image.resize(images[0].size) for image in images]  # what stands for no image has its own size
            pixels = torch.stack([torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8) for image in images])
            pixels = pixels.view(len(images), images[0].height, images[0].width, 3).permute(0, 3, 1, 2) / 255
            patches = self._conv(pixels)  # (batch, units, 2, 2)
            found = {"patches": patches, "logits": patches.mean((2, 3), keepdim=True)}
        if unknown := set(layers) - set(found):
            raise UnknownName(f"No layer {unknown}.")
        return {layer: found[layer] for layer in layers}


class TinyPictures:
    """A `Dataset`: squares, named as "red 0" (colour, corner)."""

    name = "squares"

    def __init__(self, *names, revision="1"):
        self.revision = revision
        self.names = names
        self.shown = 0

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        self.shown += 1
        colour, corner = self.names[index].split()
        return draw({"colour": colour, "corner": CORNERS[int(corner)]})


class TinyGenerator:
    """Draws the colour a prompt names, in the corner the seed says."""

    def __init__(self):
        self.asked = []

    def generate(self, prompts, seeds, progress=no_progress):
        self.asked += zip(prompts, seeds, strict=True)
        pictures: list[Picture] = []
        for prompt, seed in zip(prompts, seeds, strict=True):
            progress("drawing", len(pictures), len(prompts))
            if "forbidden" in prompt:
                pictures.append(refused_picture("the filter refuses 'forbidden'"))
                continue
            colour = next((word for word in prompt.split() if word in COLOURS), None)
            picture = draw({"colour": colour or "black", "corner": CORNERS[seed % 4]})
            remark = "" if colour else "understood no colour."
            pictures.append(Picture(picture.image, picture.scene, remark))
        return pictures


class TinyEditor:
    """Understands "make it COLOUR", of the colours that there are."""

    vocabulary = "It knows red and green."

    def __init__(self):
        self.seeds = []

    def edit(self, originals, instructions, seeds, progress=no_progress):
        self.seeds += seeds
        return [self._edit(*each) for each in zip(originals, instructions, strict=True)]

    def _edit(self, original, instruction):
        if original.scene is None:
            return refused_picture("the scene behind this image is unknown, so it cannot be edited")
        if instruction.removeprefix("make it ") not in COLOURS:
            return refused_picture(f"there is no way to {instruction}")
        return draw({**original.scene, "colour": instruction.removeprefix("make it ")})


class TinyDescriber:
    def describe(self, images):
        return ["bright" if max(max(each) for each in image.getextrema()) > 200 else "dark" for image in images]

    def summarize(self, images):
        return f"{self.describe(images).count('bright')} of {len(images)} are bright"


class TinyJudge:
    """A `PresenceJudge` that looks: knows the colours by their names."""

    name, revision, kind = "tiny", "1", "embedding"

    def read(self, label):
        """Labels are taken as they are written."""

    def judge(self, label, pictures, progress=no_progress):
        if label not in COLOURS:
            raise RequestError(f"The label {label!r} is no colour.")
        return [float(COLOURS[label] in {colour for _, colour in each.image.getcolors()}) for each in pictures]


def load_model(settings):
    return TinyModel()


def load_pictures(settings):
    return TinyPictures("black 0", "red 0", "red 1", "green 2", "grey 3", "blue 0")


def load_generator(settings):
    return TinyGenerator()


def load_editor(settings):
    return TinyEditor()


def load_describer(settings):
    return TinyDescriber()


class TinyContext:
    """System and tools of one experiment on one unit, over an index that lies in `folder`."""

    def __init__(
        self,
        index,
        unit=RED,
        *,
        layer="patches",
        seed=0,
        earlier=(),
        memory=None,
        model=None,
        describer=TinyDescriber,
        progress=no_progress,
        game_models="",
    ):
        self.memory = memory or ImagesInMemory()
        self.generator, self.editor = TinyGenerator(), TinyEditor()
        known = LabSettings(Path("unused"), game_models=game_models)
        engine = partial(registry.load(registry.GAME_ENGINES, "toybox"), known)
        equipment = ToolBackends(lambda: self.generator, lambda: self.editor, describer, engine)
        self.subject = Unit(SystemSpec("unit", "tiny", layer, unit), model or TinyModel(), index, batch_size=4)
        self.system = System(self.subject, self.memory, progress)
        studio = ImageTools(equipment, self.memory, ImageSeeds(seed, earlier), no_progress)
        self.tools = Tools(self.system, self.memory, studio, earlier, progress)


def tiny_bench(lab, spec=SPEC, **options):
    return lab.experiment_context(spec, ImagesInMemory(), 0, **{"toolset": "tiny"} | options)

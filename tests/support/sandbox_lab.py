"""A small system and tools for programs in the sandbox, and what can be seen of its processes from outside."""

from __future__ import annotations

import contextlib
from pathlib import Path

from PIL import Image

from workers.errors import ToolMisuse, ToolRefused
from workers.protocols import Bounds
from workers.sandbox import jail
from workers.sandbox.watch import read_field

BOUNDS = Bounds(seconds=20, memory_bytes=512 << 20)


class Lab:
    """A small system and tools, in every published dialect's names."""

    def __init__(self):
        self.logged = []
        self.calls = {
            "system.neuron": self.neuron,
            "system.call_neuron": self.neuron,
            "tools.text2image": self.text2image,
            "tools.dataset_exemplars": self.dataset_exemplars,
            "tools.log_experiment": self.log_experiment,
            "tools.save_experiment_log": self.log_experiment,
            "tools.display": self.display,
            "tools.experiment_log": lambda: "so far",
        }

    def neuron(self, image_list):
        """Brightness of the first pixel, and the image upside down."""
        if not isinstance(image_list, list) or not all(isinstance(image, Image.Image) for image in image_list):
            raise ToolMisuse("system.neuron: image_list must be a list of images")
        return [float(image.getpixel((0, 0))[0]) for image in image_list], [image.rotate(180) for image in image_list]

    def text2image(self, prompt_list):
        if "forbidden" in prompt_list:
            raise ToolRefused("the generator refuses 'forbidden'")
        return [Image.new("RGB", (8, 8), (len(prompt), 0, 0)) for prompt in prompt_list]

    def dataset_exemplars(self, system):
        return [9.0, 8.0], [Image.new("RGB", (8, 8), "red")] * 2

    def log_experiment(self, activation_list, image_list, image_titles, image_textual_information):
        self.logged.append((activation_list, image_list, image_titles, image_textual_information))

    def display(self, *things):
        self.logged.append(things)


def runner(sandbox, lab):
    """A function that runs a program in the sandbox against the lab, within BOUNDS unless told otherwise."""

    def run(program, facts=None, *, calls=None, **options):
        options.setdefault("bounds", BOUNDS)
        return sandbox.run(program, lab.calls if calls is None else calls, facts or {}, **options)

    return run


def zygote_of(sandbox):
    """The zygote that was started first; there are more where programs ran at the same time."""
    return sandbox._launcher._zygotes[0]


def zygote_pid(sandbox):
    """The process that children are forked from: in a namespace of its own it is a child of the one started."""
    started = zygote_of(sandbox).process.pid
    inside = [pid for pid in born_of(started) if depth(pid) > depth(started)]
    return inside[0] if inside else started


def children_of(sandbox):
    """Pids of all that was forked from the zygote and lives, or waits to be reaped."""
    return descendants(zygote_pid(sandbox))


def descendants(pid):
    return [one for born in born_of(pid) for one in (born, *descendants(born))]


def born_of(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def depth(pid):
    """In how many process namespaces the process has a number."""
    try:
        return len(read_field(Path(f"/proc/{pid}/status"), "NSpid"))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def folder_of(sandbox):
    """Where the scratch folders are made."""
    return zygote_of(sandbox).folder


@contextlib.contextmanager
def layers_found(*layers):
    """As if this process had found these layers on its machine."""
    before, jail.layers = jail.layers, lambda: layers
    yield
    jail.layers = before

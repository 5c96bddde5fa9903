"""The composition root: load each plug-in once, name the parts, and set up the context of an experiment.

The only module that knows both the registry and the parts. Safe for threads.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from workers import registry
from workers.errors import UnknownName
from workers.lab import circuits, program_api
from workers.lab.ablation import Ablation
from workers.lab.circuits import CircuitModel
from workers.lab.exemplars import ExemplarIndex
from workers.lab.function_calls import CallableSubject, FunctionSystem, FunctionTools
from workers.lab.image_tools import ImageSeeds, ImageTools, ToolBackends, derive_seed
from workers.lab.label_tests import LabelTestRules, LabelTests
from workers.lab.measured_splits import MeasuredSplit
from workers.lab.ordinary import measure_ordinary
from workers.lab.splits import HeldOutSplit
from workers.lab.system import System
from workers.lab.tools import Tools
from workers.protocols import (
    Backbone,
    Dataset,
    Describer,
    GameEngine,
    ImageEditor,
    ImageGenerator,
    ImageMemory,
    Json,
    LabSettings,
    LayerInfo,
    OneShotLabeller,
    PresenceJudge,
    Progress,
    PromptWriter,
    Subject,
    VisionModel,
    check_layers,
    no_progress,
)
from workers.record.circuits import CIRCUIT
from workers.record.experiments import LogEntry, Observation
from workers.record.systems import SystemSpec

MAX_SUBJECTS = 32
"""Maximum number of subjects kept: each holds its exemplars, a few MB."""


@dataclass(frozen=True)
class ExperimentContext:
    """What one experiment works with."""

    system: System
    tools: Tools

    def calls(self, style: program_api.ProgramStyle) -> dict[str, Callable[..., Any]]:
        """Return the functions that the program may call."""
        return program_api.list_calls(self.system, self.tools, style)

    @property
    def facts(self) -> Mapping[str, Json]:
        """The attributes that the program may read."""
        return program_api.list_facts(self.system)


@dataclass(frozen=True)
class FunctionContext:
    """What one experiment on a function works with."""

    system: FunctionSystem
    tools: FunctionTools

    def calls(self, style: program_api.ProgramStyle) -> dict[str, Callable[..., Any]]:
        """Return the functions that the program may call, in any style."""
        del style
        return program_api.list_function_calls(self.system, self.tools)

    @property
    def facts(self) -> Mapping[str, Json]:
        """The attributes that the program may read."""
        return program_api.list_function_facts(self.system)


class Laboratory:
    """Everything loaded in this process. Methods that take a key raise UnknownName if there is no such plug-in."""

    def __init__(self, settings: LabSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._locks: dict[Hashable, threading.Lock] = {}
        self._loaded: dict[Hashable, Any] = {}
        self._subjects: dict[Hashable, Subject] = {}

    def model(self, key: str) -> VisionModel:
        return self._plugin("model", registry.VISION_MODELS, key)

    def layers(self, key: str) -> Sequence[LayerInfo]:
        """Return the layers of a model."""
        return self.model(key).layers()

    def list_held_models(self) -> list[str]:
        """List the keys of the vision models whose weights are in memory, latest use first."""
        with self._lock:
            # A copy under the lock: other threads load parts meanwhile.
            loaded = dict(self._loaded)
        kinds = (each for each in loaded if isinstance(each, tuple) and each[0] == "model")
        models = {f"{loaded[name].name} {loaded[name].revision}": str(name[1]) for name in kinds}
        return [models[each.name] for each in self.settings.model_cache.loaded() if each.name in models]

    def dataset(self, key: str) -> Dataset:
        return self._plugin("dataset", registry.DATASETS, key)

    def generator(self, key: str) -> ImageGenerator:
        return self._plugin("generator", registry.IMAGE_GENERATORS, key)

    def editor(self, key: str) -> ImageEditor:
        return self._plugin("editor", registry.IMAGE_EDITORS, key)

    def game_engine(self, key: str = "toybox") -> GameEngine:
        return self._plugin("game engine", registry.GAME_ENGINES, key)

    def list_problems(self) -> list[str]:
        """List what loaded game engines left out at their last look. Reads nothing."""
        with self._lock:
            loaded = [each for key, each in self._loaded.items() if isinstance(key, tuple) and key[0] == "game engine"]
        return [problem for each in loaded for problem in getattr(each, "problems", ())]

    def describer(self, key: str) -> Describer:
        return self._plugin("describer", registry.DESCRIBERS, key)

    def backbone(self, key: str, model: str = "") -> Backbone:
        """Return a backbone. `model` is the provider's name of it; "" means the default. Raises MissingPart without a
        key."""
        # The registry is asked first, so that an unknown key fails before a lock is made for it.
        load = registry.load(registry.BACKBONES, key)
        return self._once(("backbone", key, model), lambda: load(self.settings, model))

    def prompt_writer(self, key: str) -> PromptWriter:
        return self._plugin("prompt writer", registry.PROMPT_WRITERS, key)

    def one_shot_labeller(self, key: str) -> OneShotLabeller:
        return self._plugin("one-shot labeller", registry.ONE_SHOT_LABELLERS, key)

    def presence_judge(self, key: str) -> PresenceJudge:
        return self._plugin("presence judge", registry.PRESENCE_JUDGES, key)

    def tool_backends(self, toolset: str, describer: Describer | None = None) -> ToolBackends:
        """Return what makes images and describes them. `describer` replaces the toolset's own."""
        tools = registry.TOOLSETS[toolset]
        # Loaded on first use: most experiments describe nothing.
        describe = partial(self.describer, tools.describer) if describer is None else lambda: describer
        generator, editor = partial(self.generator, tools.generator), partial(self.editor, tools.editor)
        return ToolBackends(generator, editor, describe, self.game_engine)

    def index(self, model: str, dataset: str) -> ExemplarIndex:
        """Return the exemplar index of a model over a dataset; computed layer by layer when first read."""
        load = partial(ExemplarIndex, self.settings, self.model(model), self.dataset(dataset))
        return self._once(("index", model, dataset), load)

    def held_out(self, model: str, dataset: str, split: HeldOutSplit) -> MeasuredSplit:
        """Return the images on which labels of a model are tried or checked; measured layer by layer when first
        read."""
        index = self.index(model, dataset)
        load = partial(MeasuredSplit, self.settings, self.model(model), self.dataset(dataset), index, split)
        return self._once((split, model, dataset), load)

    def index_of(self, spec: SystemSpec) -> ExemplarIndex:
        """Return the index of the system's model over its dataset: the option "dataset", else that of the settings."""
        dataset = self._dataset_key(spec)
        if spec.kind != CIRCUIT:
            return self.index(spec.model, dataset)
        load = partial(ExemplarIndex, self.settings, self._circuit(spec), self.dataset(dataset))
        return self._once(("index", self._circuit(spec), dataset), load)

    def _circuit(self, spec: SystemSpec) -> CircuitModel:
        """Return the circuit as a model; its members are divided by their thresholds over the system's dataset."""
        members, dataset = circuits.read_members(spec), self._dataset_key(spec)

        def load() -> CircuitModel:
            keys = {each.model for each in members}
            models = {key: self.model(key) for key in keys}
            circuits.check_network(spec.model, models)
            for each in members:
                self._check_unit(each.model, each.layer, each.unit)
            return CircuitModel(members, models, {key: self.index(key, dataset) for key in keys})

        # The thresholds depend on the dataset, so it is part of the name.
        return self._once((CIRCUIT, spec.model, members, dataset), load)

    def held_out_of(self, spec: SystemSpec, split: HeldOutSplit) -> MeasuredSplit:
        """Return the images of its dataset on which labels of a system are tried or checked."""
        if spec.kind != CIRCUIT:
            return self.held_out(spec.model, self._dataset_key(spec), split)
        dataset, model, index = self._dataset_key(spec), self._circuit(spec), self.index_of(spec)
        load = partial(MeasuredSplit, self.settings, model, self.dataset(dataset), index, split)
        return self._once((split, model, dataset), load)

    def find_revision(self, spec: SystemSpec) -> str:
        """Return the revision of the weights that a system's activations come from."""
        return (self._circuit(spec) if spec.kind == CIRCUIT else self.model(spec.model)).revision

    def _dataset_key(self, spec: SystemSpec) -> str:
        return str(spec.options.get("dataset") or self.settings.dataset)

    def check(self, spec: SystemSpec) -> None:
        """Raise UnknownName, naming the choices, if the kind, model, layer or unit does not exist."""
        registry.load(registry.SYSTEMS, spec.kind)
        if spec.kind == CIRCUIT:
            self._circuit(spec)
        else:
            self._check_unit(spec.model, spec.layer, spec.unit)

    def _check_unit(self, model: str, layer: str, unit: int) -> None:
        layers = {info.name: info for info in self.layers(model)}
        check_layers(model, [layer], layers)
        units = layers[layer].units
        # bool is an int to Python, and True would be unit 1.
        if isinstance(unit, bool) or not isinstance(unit, int) or not 0 <= unit < units:
            raise UnknownName(f"{layer} of {model} has no unit {unit!r}. Choose one from 0 to {units - 1}.")

    def subject(self, spec: SystemSpec) -> Subject:
        """Return the system that `spec` names. Its dataset is the option "dataset", else that of the settings.

        Raises UnknownName. Nothing is measured yet.
        """
        self.check(spec)
        # For its index it is the only unit of its layer
        spec = replace(spec, unit=0) if spec.kind == CIRCUIT else spec
        # Options are a dictionary, which cannot be a key.
        name = (spec.kind, spec.model, spec.layer, spec.unit, json.dumps(dict(spec.options), sort_keys=True))
        model = self._circuit(spec) if spec.kind == CIRCUIT else self.model(spec.model)
        index = self.index_of(spec)
        with self._lock:
            if name not in self._subjects:
                load = registry.load(registry.SYSTEMS, spec.kind)
                self._subjects[name] = load(self.settings, spec, model, index)
            # The oldest goes: it can be loaded again from its index.
            while len(self._subjects) > MAX_SUBJECTS:
                del self._subjects[next(iter(self._subjects))]
            return self._subjects[name]

    def experiment_context(
        self,
        spec: SystemSpec,
        memory: ImageMemory,
        seed: int,
        *,
        toolset: str = "toybox",
        describer: Describer | None = None,
        earlier: Sequence[LogEntry] = (),
        label_tests: LabelTestRules = LabelTestRules(),  # noqa: B008  frozen
        ablation: bool = False,
        progress: Progress = no_progress,
    ) -> ExperimentContext:
        """Return system and tools for one experiment of a run.

        `earlier` is what the run has logged so far; `ablation` is true if its programs may change the unit. Computes
        the exemplar index if there is none yet. Raises UnknownName, and Cancelled if `progress` does.
        """
        subject = self.subject(spec)
        # The index is computed now, with progress, and not in the middle of a program.
        subject.exemplars(progress)
        backends = self.tool_backends(toolset, describer)
        changes = self.ablation(spec, progress) if ablation else None
        system = System(subject, memory, progress, changes)
        image_tools = ImageTools(backends, memory, ImageSeeds(seed, earlier), progress)
        lacks = registry.TOOLSETS[toolset].lacks
        tests = LabelTests(
            label_tests, subject.spec, self.held_out_of(spec, "development"), self.presence_judge, memory, progress
        )
        return ExperimentContext(system, Tools(system, memory, image_tools, earlier, progress, lacks, tests))

    def ablation(self, spec: SystemSpec, progress: Progress = no_progress) -> Ablation:
        """Return what changes the system's unit inside its model."""
        return Ablation(self.model(spec.model), spec, self.settings.batch_size, progress)

    def function_context(
        self, spec: SystemSpec, earlier: Sequence[LogEntry] = (), experiment: int = 1
    ) -> FunctionContext:
        """Return system and tools for one experiment on a function; its number decides the noise. Raises
        UnknownName."""
        # Numbers of calls far apart, so that two experiments never share noise.
        system = FunctionSystem(cast("CallableSubject", self.subject(spec)), 1_000 * experiment)
        return FunctionContext(system, FunctionTools(system, earlier))

    def ordinary_images(
        self, spec: SystemSpec, memory: ImageMemory, seed: int, toolset: str, progress: Progress = no_progress
    ) -> tuple[Observation, ...]:
        """Measure random ordinary images of the system's dataset, for the first round of a run. Raises Cancelled."""
        # Without exemplars, a run sees no image of the dataset.
        if "dataset_exemplars" in registry.TOOLSETS[toolset].lacks:
            return ()
        dataset = self.dataset(self._dataset_key(spec))
        lot = derive_seed(seed, "ordinary images", 0)
        return measure_ordinary(self.subject(spec), self.index_of(spec), dataset, memory, lot, progress)

    def _plugin(self, kind: str, plugins: registry.Plugins, key: str) -> Any:
        return self._once((kind, key), lambda: registry.load(plugins, key)(self.settings))

    def _once(self, name: Hashable, load: Callable[[], Any]) -> Any:
        """Return what `load` returns, called once for each name; other names do not wait meanwhile."""
        with self._lock:
            # A lock for each name: while one part loads, others can be used.
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            if name not in self._loaded:
                self._loaded[name] = load()
            return self._loaded[name]

"""Play rounds of a claimed run: connects the database and the laboratory.

Called by `rounds` (one round per claim) and by `foreground` (the command line).
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from importlib.metadata import version
from threading import Event
from typing import Any

from experiments.core.catalogue import explain_unoffered, find_unknown_part
from experiments.core.compatibility import PERSON
from experiments.core.display_name import person
from experiments.models import Run
from workers import registry
from workers.agent.instructions import Known
from workers.agent.loop import ProgramOutcome, attempt, run_agent, start
from workers.agent.rules import GRACE, time_left
from workers.backbones.person import PersonBackbone
from workers.errors import Cancelled, MissingPart, RequestError, ToolMisuse, ToolRefused, UnknownName
from workers.jobs import briefing, forking, functions, jail, unit_profiles
from workers.jobs.images import ImagesInDatabase
from workers.jobs.label_checks import label_tests
from workers.jobs.label_checks.grading import LabelGrader
from workers.jobs.laboratory import laboratory, sandbox
from workers.jobs.lease import MAX_CLAIMS
from workers.jobs.run_log import LOOK_EVERY, DatabaseRunLog
from workers.lab.describing import BackboneDescriber
from workers.lab.laboratory import ExperimentContext, FunctionContext
from workers.lab.memory import StorageBudget
from workers.lab.reference import build_function_reference, build_reference
from workers.protocols import Backbone, Bounds, ExperimentResult
from workers.record.circuits import CIRCUIT
from workers.record.events import Ended, Started
from workers.record.experiments import Observation
from workers.record.grammar.written import compose
from workers.record.limits import Limits, Usage, without_price
from workers.record.systems import SystemSpec
from workers.record.tasks import FUNCTION
from workers.sandbox.program import program_style

POISON = (
    "{claims} workers in a row ended while they held this run, without recording a step. The worker's output says why; "
    "too little memory is the usual reason. What was recorded before is kept."
)

RunLogOf = Callable[[Run, ImagesInDatabase, Event], DatabaseRunLog]


def execute_round(run: Run, lost: Event, run_log_of: RunLogOf = DatabaseRunLog, *, any_model: bool = False) -> bool:
    """Play one round. `any_model` allows a model of the provider that is not in the list.

    Return True if the run continues. Raises MachineryError, LeaseLost; see `agent.loop.run_agent`.
    """
    images = ImagesInDatabase()
    run_log = run_log_of(run, images, lost)
    # A run that kills its workers must not be tried forever
    if run.claims > MAX_CLAIMS:
        run_log.append("failed", Ended(POISON.format(claims=run.claims - 1)))
        return False
    backbone = attempt(run_log, run.rounds, partial(prepare, run, run_log, any_model))
    if backbone is None:
        return False
    goes_on = run_agent(
        run_log, backbone, SandboxRunner(run, run_log, images, backbone), images.load, LabelGrader(run, run_log)
    )
    if goes_on:
        # Only while it continues: an ended run needs no state.
        run_log.keep_state()
    return goes_on


def prepare(run: Run, run_log: DatabaseRunLog, any_model: bool) -> Backbone:
    """Record the start of the run if missing, and return the backbone that writes its replies. Raises RequestError."""
    laboratory()  # Plug-ins register their parts here
    # Raises UnknownName for parts that a form would not offer: an imported run may name anything
    unknown = find_unknown_part(run)
    if not unknown and not any_model:
        unknown = explain_unoffered(run, registry.list_models(registry.BACKBONES, run.backbone, laboratory().settings))
    if unknown:
        raise UnknownName(unknown)
    if run.started is None:
        first = get_first_event(run)
        if run.fork_round:
            forking.record_beginning(run, run_log, first)
        else:
            run_log.append("started", first)
    if run.backbone == PERSON:
        # Sent, not merely drafted.
        replies = run.human_replies.filter(round=run.rounds + 1, sent__isnull=False)
        if sent := replies.select_related("author").first():
            return PersonBackbone(person(sent.author), compose(sent.values))
    return laboratory().backbone(run.backbone, run.backbone_model)


def get_first_event(run: Run) -> Started:
    """Return what the agent is told, and what the run is made with.

    Raises RequestError for an invalid question, limit or system, MissingPart if something is missing.
    """
    spec = _spec_of(run)
    laboratory().check(spec)
    if run.options.get("ablation"):
        _check_ablation(spec)
    # Recorded once: a worker that is updated later must not change it
    made_with = _name_parts(run) | versions() | {"sandbox": jail.record()}
    return start(
        run.question,
        run.task,
        spec,
        backbone=run.backbone,
        limits=limits_of(run),
        seed=run.seed,
        reference=_write_reference(run, spec),
        versions=made_with,
        known=_find_known(run, spec),
        reflections=int(run.options.get("reflections") or 0),
    )


def _check_ablation(spec: SystemSpec) -> None:
    """Raise RequestError if changing the unit has no effect on the output, before anything is paid for."""
    try:
        laboratory().ablation(spec).check()
    except ToolMisuse as error:
        # Not MissingPart, which would make the run wait for something that cannot come
        raise RequestError(f"{error} Or ask without ablation.") from error


def _find_known(run: Run, spec: SystemSpec) -> Known:
    if spec.kind == FUNCTION:
        return Known(hints=functions.list_hints(run) if run.options.get("hints") else "")
    return briefing.find_known(spec, run.toolset)


def _write_reference(run: Run, spec: SystemSpec) -> str:
    if spec.kind == FUNCTION:
        return build_function_reference()
    lacks = registry.TOOLSETS[run.toolset].lacks | label_tests.find_lacking_tools(run, spec)
    ablation = bool(run.options.get("ablation"))
    vocabulary, changes = briefing.vocabulary_of(run), briefing.changes_of(run)
    extras, is_circuit = briefing.read_extras(), spec.kind == CIRCUIT
    return build_reference(vocabulary, changes, lacks, extras=extras, ablation=ablation, is_circuit=is_circuit)


class StopButton:
    """Stops a program that a person wrote; its run continues. An agent's program cannot be stopped alone."""

    def __init__(self, run: Run, number: int, run_log: DatabaseRunLog) -> None:
        round_number = run.experiments.filter(number=number).values("round")[:1]
        by_person = run_log.known.reply.by_person
        sent = run.human_replies.filter(sent__isnull=False, round=round_number)
        self.reply = sent.first() if by_person else None
        self.run_log = run_log
        self.who = ""
        """Who stopped it, or ""."""
        self.began = self.looked = time.monotonic()

    def is_pressed(self) -> bool:
        """True if the program must end, alone or with its run. Cheap to call often. Raises LeaseLost."""
        return self.run_log.is_cancelled() or self.is_stopped()

    def progress(self, what: str, done: int, total: int) -> None:
        """Show the progress of a tool. Raises Cancelled if it must end."""
        self.run_log.progress(what, done, total)
        if self.is_stopped():
            raise Cancelled("A person stopped the program.")

    def is_stopped(self) -> bool:
        now = time.monotonic()
        if self.reply and not self.who and now - self.looked >= LOOK_EVERY:
            self.looked = now
            self.reply.refresh_from_db(fields=["stopped_by"])
            self.who = self.reply.stopped_by
        return bool(self.who)


class SandboxRunner:
    """Runs an experiment's program in the sandbox, with the run's system and tools."""

    def __init__(self, run: Run, run_log: DatabaseRunLog, images: ImagesInDatabase, backbone: Backbone) -> None:
        self.run = run
        self.run_log = run_log
        self.images = images
        self.backbone = backbone

    def __call__(self, code: str, number: int, state: bytes) -> ProgramOutcome:
        describer = self.describer(number) if self.backbone.sees else None
        stop = StopButton(self.run, number, self.run_log)
        self.images.budget = budget = StorageBudget(spent_before=self.run.image_bytes)
        context = self.make_context(number, describer, stop)
        # Once per run: they are the same for all experiments
        ordinary = self.ordinary_images() if number == 1 else ()
        try:
            result = sandbox().run(
                code,
                context.calls(program_style(code)),
                # Another seed for each experiment, or programs would draw the same numbers.
                {**context.facts, "experiment.seed": self.run.seed + number},
                bounds=Bounds(),
                state=state,
                cancelled=stop.is_pressed,
            )
        except Cancelled:
            # The run itself was stopped, not this program alone.
            if not stop.who:
                raise
            words, seconds = f"{stop.who} stopped the program.", time.monotonic() - stop.began
            result = ExperimentResult("timeout", error=words, seconds=seconds, state=state)
        finally:
            self.run.image_bytes += budget.spent
            # Also after a failure: stored images count against the run's budget
            Run.objects.filter(pk=self.run.pk).update(image_bytes=self.run.image_bytes)
        if context.tools.exemplar_mean is not None:
            unit_profiles.ask_for(self.run)
        usage, tools = describer.usage if describer else Usage(), context.tools
        return ProgramOutcome(
            result,
            tuple(tools.entries),
            tools.exemplar_mean,
            usage,
            tools.measured,
            tools.best,
            tools.ordinary,
            ordinary,
        )

    def make_context(
        self, number: int, describer: BackboneDescriber | None, stop: StopButton
    ) -> ExperimentContext | FunctionContext:
        """Return system and tools of experiment `number`."""
        spec, earlier = _spec_of(self.run), self.run_log.entries()
        if spec.kind == FUNCTION:
            return laboratory().function_context(spec, earlier, number)
        return laboratory().experiment_context(
            spec,
            self.images,
            seed=self.run.seed,
            toolset=self.run.toolset,
            describer=describer,
            earlier=earlier,
            label_tests=label_tests.rules_of(self.run, spec, self.run_log.known.results),
            ablation=bool(self.run.options.get("ablation")),
            progress=stop.progress,
        )

    def ordinary_images(self) -> tuple[Observation, ...]:
        """Return random ordinary images of the dataset, the same ones if the first experiment is repeated."""
        spec = _spec_of(self.run)
        if spec.kind == FUNCTION:
            return ()
        return laboratory().ordinary_images(spec, self.images, self.run.seed, self.run.toolset, self.run_log.progress)

    def describer(self, number: int) -> BackboneDescriber:
        """Return the run's backbone as an observer. Deletes its answers in earlier experiments."""
        folder = laboratory().settings.state / "descriptions"
        # The time of creation is part of the name, because a database may reuse the number of a deleted run.
        kept = folder / f"{self.run.pk}-{self.run.created:%Y%m%d%H%M%S%f}-{number}.jsonl"
        # Answers of earlier experiments are not asked for again.
        for other in folder.glob(f"{self.run.pk}-*"):
            if other != kept:
                other.unlink(missing_ok=True)
        # Also ends a tool's waiting after the run's time limit
        until = time.monotonic() + time_left(self.run_log.known, self.run_log.seconds()) + GRACE

        def progress(what: str, done: int, total: int) -> None:
            self.run_log.progress(what, done, total)
            if time.monotonic() >= until:
                raise ToolRefused("The time of this investigation is up. Nothing more is described: conclude.")

        return BackboneDescriber(self.backbone, self.run.seed + number, kept, progress)


def _spec_of(run: Run) -> SystemSpec:
    return SystemSpec(run.system_kind, run.model, run.layer, run.unit, run.options)


def limits_of(run: Run) -> Limits:
    """Return the run's limits. A missing or null one means no limit."""
    return Limits(**{each.name: run.limits.get(each.name) for each in fields(Limits)})


def _name_parts(run: Run) -> dict[str, str]:
    """Return the parts of the run with names and revisions. Raises MissingPart, before anything is paid for."""
    lab = laboratory()
    backbone = lab.backbone(run.backbone, run.backbone_model)
    # Before anything is paid for.
    if problem := without_price(limits_of(run), backbone.label, backbone.price_known):
        raise MissingPart(problem)
    lab.tool_backends(run.toolset)  # Raises UnknownName
    tools = registry.TOOLSETS[run.toolset]
    dataset = str(run.options.get("dataset") or lab.settings.dataset)
    scale = next((layer.scale for layer in lab.layers(run.model) if layer.name == run.layer), "")
    return {
        "backbone": backbone.label,
        "model": _format_key(run.model, lab.model(run.model)),
        "dataset": _format_key(dataset, lab.dataset(dataset)),
        "toolset": run.toolset,
        "generator": _format_key(tools.generator, lab.generator(tools.generator)),
        "editor": _format_key(tools.editor, lab.editor(tools.editor)),
        "describer": backbone.label if backbone.sees else tools.describer,
    } | ({"activation": registry.SCALES[scale]} if scale else {})


def _format_key(key: str, part: Any) -> str:
    """Return the key of a plug-in, with its name and revision if it has them."""
    own = [str(getattr(part, field, "")) for field in ("name", "revision")]
    return " ".join([key, *(word for word in own if word and word != key)])


def versions() -> dict[str, str]:
    """Return versions of packages that affect results, so that they can be reproduced."""
    packages = ("torch", "transformers", "diffusers", "datasets", "openai", "numpy", "pillow", "panda3d")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}

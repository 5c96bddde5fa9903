"""Describe a run's system and tools for the agent, before its first experiment. Called once per run."""

from __future__ import annotations

from contextlib import suppress

from experiments.models import Run
from workers import registry
from workers.agent.instructions import Known
from workers.agent.measurements import ORDINARY_UNKNOWN
from workers.errors import MissingPart
from workers.jobs.laboratory import laboratory
from workers.jobs.plugin_keys import layer_of, name_of
from workers.record.figures import format_activation
from workers.record.systems import SystemSpec


def vocabulary_of(run: Run) -> str:
    """Describe what the run's generator can draw, in a sentence; "" if it accepts any prompt."""
    generator = registry.TOOLSETS[run.toolset].generator
    return str(getattr(laboratory().generator(generator), "vocabulary", ""))


def read_extras() -> str:
    """Describe what only the game engine can draw, in a sentence; "" if nothing."""
    return str(getattr(laboratory().game_engine(), "extras", ""))


def changes_of(run: Run) -> str:
    """Describe the changes that the run's editor can make, in a sentence; "" if it accepts any text or is missing."""
    # Without the editor's weights a run can still draw and measure.
    with suppress(MissingPart):
        return str(getattr(laboratory().editor(registry.TOOLSETS[run.toolset].editor), "vocabulary", ""))
    return ""


def find_known(spec: SystemSpec, toolset: str) -> Known:
    """Return the name of a class, and the scale of the activations. Raises UnknownName, and the errors of measuring."""
    kind = registry.SCALES.get(layer_of(spec).scale, "") if spec.kind == "logit" else ""
    scale = [f"Its activation is {kind}."] if kind else []
    return Known(name_of(spec) if spec.kind == "logit" else "", " ".join([*scale, scale_of(spec, toolset)]).strip())


def scale_of(spec: SystemSpec, toolset: str) -> str:
    """Describe low and high activations in a sentence; "" if the layer has no index yet."""
    lab = laboratory()
    # Building an index takes minutes, too long before a run's first round
    if not lab.index_of(spec).known([spec.layer]):
        return ""
    subject = lab.subject(spec)
    ordinary, exemplars = subject.ordinary(), subject.exemplars()
    # Published exemplars come without activations of other images
    parts = [] if ordinary else [ORDINARY_UNKNOWN]
    if ordinary is not None:
        median, q90, q99 = map(format_activation, (ordinary.median, ordinary.q90, ordinary.q99))
        parts.append(f"half of the ordinary images stay below {median}, nine in ten below {q90}, 99 in 100 below {q99}")
    # An agent without exemplars must not learn their mean.
    if exemplars and "dataset_exemplars" not in registry.TOOLSETS[toolset].lacks:
        mean = sum(each.activation for each in exemplars) / len(exemplars)
        parts.append(f"the {len(exemplars)} exemplars reach {format_activation(mean)} on average")
    return f"The scale of its activations over the dataset: {'; '.join(parts)}." if parts else ""

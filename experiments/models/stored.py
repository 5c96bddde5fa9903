"""JSON that has a shape. What a row holds in another shape is left out when it is read, so that no page meets it."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
from django.db import models
from django.db.models.fields.json import KeyTransform

from workers.record.decoding import fits

Measure = Annotated[float, msgspec.Meta(ge=0, le=1e15)] | None
Scalar = str | bool | int | float | None


class StoredLimits(TypedDict, total=False):
    """What a run may use; null is no limit."""

    rounds: Measure
    tokens: Measure
    cost: Measure
    seconds: Measure


class StoredMember(TypedDict):
    """A member of a circuit."""

    model: str
    layer: str
    unit: Annotated[int, msgspec.Meta(ge=0)]


class Options(TypedDict, total=False):
    dataset: str
    label_check: bool
    exemplars: int
    reflections: int
    ablation: bool
    """Whether programs may change the unit inside its model."""
    members: list[StoredMember]
    """Of a circuit: what it was made of when the run was asked."""
    circuit: int
    """The key of the circuit, of a run asked here."""
    circuit_name: str
    """What it was called then."""
    hints: bool
    """Of a function: whether the agent is given some inputs with their outputs to begin with."""


class Selection(TypedDict, total=False):
    """Which units a sweep asks about: as they were chosen, where what counts depends on `kind`, and which these are."""

    kind: str
    model: str
    layers: list[str]
    state: str
    words: str
    sample: int
    below: float
    units: dict[str, str]
    """Name of a layer -> its units as stretches: "0-11,40"."""


class Variant(TypedDict):
    """Who asks: a backbone, and a toolset."""

    backbone: str
    backbone_model: str
    toolset: str


class EvaluationOptions(TypedDict, total=False):
    """What an evaluation is about; which of these count depends on its kind."""

    units: int
    model: str
    layers: list[str]
    dataset: str
    toolset: str
    sources: list[str]
    batch: str
    repeats: int
    reflections: int
    repair: float
    judge: str
    people: bool
    hints: bool
    autoencoders: list[str]
    latents: int


class StoredConclusion(TypedDict, total=False):
    description: str
    labels: list[str]
    reasoning: str
    bias: str
    domain: str
    code: str


class StoredScore(TypedDict, total=False):
    """How right a conclusion about a function is; see `workers.record.functions.FunctionScore`."""

    outcome: str
    success: bool
    error: float | None
    right: int | None
    ceiling: int


class StoredBias(TypedDict, total=False):
    """What the test of a stated bias came to; see `workers.record.bias_tests.BiasTest`."""

    text: str
    context: str
    after: int | None
    fresh: bool
    inside: int
    outside: int
    inside_mean: float | None
    outside_mean: float | None
    effect: float | None
    low: float | None
    high: float | None
    p: float | None
    adjusted_p: float | None
    holds: bool
    why: str


class Histogram(TypedDict):
    start: float
    width: float
    counts: list[Annotated[int, msgspec.Meta(ge=0)]]


class Unreadable(TypedDict):
    """A file of a dataset that cannot be read."""

    file: str
    reason: str


class DraftHypothesis(TypedDict):
    number: int
    text: str
    status: str
    reason: str


class Call(TypedDict):
    name: str
    arguments: str
    seconds: float
    failed: NotRequired[bool]


class Neighbours(TypedDict, total=False):
    """The units most like one: rows of layer, number, likeness and shared exemplars."""

    measure: str
    images: int
    layers: int
    same: list[tuple[int, int, float, int]]
    others: list[tuple[int, int, float, int]]
    problem: str


class JobOptions(TypedDict, total=False):
    model: str
    layers: list[str]
    exemplars: bool
    label: str
    layer: str
    dataset: str
    latents: int
    k: int
    kind: str
    name: str
    steps: int
    images: int
    seed: int
    check: int
    """Key of a causal check."""
    graph: int
    """Key of the graph of a circuit."""


class SparseQuality(TypedDict):
    """How well an auto-encoder rebuilds activations of held-out images."""

    unexplained: float
    active: float
    dead: float
    positions: int


class PublishedSparse(TypedDict, total=False):
    """What earlier cards of auto-encoders lack."""

    source: str
    normalisation: str
    signed: bool


class StoredSparseCard(PublishedSparse):
    """What is known of an auto-encoder, as the card in its file."""

    name: str
    kind: str
    k: int
    latents: int
    model: str
    model_revision: str
    model_key: str
    layer: str
    layer_path: str
    units: int
    dataset: str
    dataset_revision: str
    dataset_key: str
    seed: int
    steps: int
    batch: int
    images: int
    scale: float
    fingerprint: str
    quality: SparseQuality


class Origin(TypedDict, total=False):
    """Where an imported run was forked from."""

    identity: str
    number: int
    created: str


class ShapedJSONField(models.JSONField):
    """`shape` is a TypedDict, `list[...]`, `dict[str, ...]`, or `tuple[..., ...]` for a list whose places count.

    For the database it is any JSON field.
    """

    def __init__(self, *args: Any, shape: Any = dict, **options: Any) -> None:
        self.shape = shape
        super().__init__(*args, **options)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        read = super().from_db_value(value, expression, connection)
        return read if isinstance(expression, KeyTransform) or value is None else _keep_shape(read, self.shape)

    def deconstruct(self) -> tuple[str, str, Any, dict[str, Any]]:
        name, _, args, options = super().deconstruct()
        return name, "django.db.models.JSONField", args, options


def _keep_shape(value: Any, shape: Any) -> Any:
    """`value` without the keys and items that are not of this shape; empty if it is none at all."""
    if is_typeddict(shape):
        hints, known = get_type_hints(shape, include_extras=True), value if isinstance(value, dict) else {}
        fitting = {key: each for key, each in known.items() if key not in hints or fits(each, hints[key])}
        return fitting if fitting.keys() >= shape.__required_keys__ else {}
    if get_origin(shape) is tuple:
        return value if fits(value, shape) else []
    (*_, inside) = get_args(shape) or (Any,)
    if (get_origin(shape) or shape) is dict:
        return {key: each for key, each in value.items() if fits(each, inside)} if isinstance(value, dict) else {}
    return [each for each in value if fits(each, inside)] if isinstance(value, list) else []

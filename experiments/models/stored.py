"""JSON fields with a shape. Stored values of another shape are left out on reading, so that no page meets them."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
from django.db import models
from django.db.models.fields.json import KeyTransform

from workers.record.decoding import is_of_type

Measure = Annotated[float, msgspec.Meta(ge=0, le=1e15)] | None
Scalar = str | bool | int | float | None


class StoredLimits(TypedDict, total=False):
    """Limits of a run; null is no limit."""

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
    """True if programs may change the unit inside its model."""
    members: list[StoredMember]
    """Of a circuit: its members when the run was asked."""
    circuit: int
    """The key of the circuit, of a run asked here."""
    circuit_name: str
    """The circuit's name at that time."""
    hints: bool
    """Of a function: whether the agent is given some inputs with their outputs at the start."""


class Selection(TypedDict, total=False):
    """The units of a sweep: how they were chosen (the fields used depend on `kind`), and which they are."""

    kind: str
    model: str
    layers: list[str]
    state: str
    words: str
    sample: int
    below: float
    units: dict[str, str]
    """Name of a layer -> its units as ranges: "0-11,40"."""


class Variant(TypedDict):
    """An agent: a backbone and a toolset."""

    backbone: str
    backbone_model: str
    toolset: str


class EvaluationOptions(TypedDict, total=False):
    """Options of an evaluation; the fields used depend on its kind."""

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
    """The result of the test of a stated bias; see `workers.record.bias_tests.BiasTest`."""

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
    """The units most similar to one: rows of layer, number, similarity and shared exemplars."""

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
    """How well an auto-encoder reconstructs activations of held-out images."""

    unexplained: float
    active: float
    dead: float
    positions: int


class PublishedSparse(TypedDict, total=False):
    """Fields that earlier auto-encoder cards lack."""

    source: str
    normalisation: str
    signed: bool


class StoredSparseCard(PublishedSparse):
    """The card in an auto-encoder's file."""

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
    """The run from which an imported run was forked."""

    identity: str
    number: int
    created: str


class ShapedJSONField(models.JSONField):
    """A JSON field with a shape: `shape` is a TypedDict, `list[...]`, `dict[str, ...]`, or `tuple[..., ...]` for a
    list with fixed positions.

    For the database it is any JSON field.
    """

    def __init__(self, *args: Any, shape: Any = dict, **options: Any) -> None:
        self.shape = shape
        super().__init__(*args, **options)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        read = super().from_db_value(value, expression, connection)
        # A query for one key of the JSON returns a part, which has another shape.
        return read if isinstance(expression, KeyTransform) or value is None else _keep_shape(read, self.shape)

    def deconstruct(self) -> tuple[str, str, Any, dict[str, Any]]:
        name, _, args, options = super().deconstruct()
        # Migrations know it as any JSON field: a new shape needs none.
        return name, "django.db.models.JSONField", args, options


def _keep_shape(value: Any, shape: Any) -> Any:
    """Return `value` without the keys and items of another shape; empty if its own type is wrong."""
    if is_typeddict(shape):
        hints, known = get_type_hints(shape, include_extras=True), value if isinstance(value, dict) else {}
        fitting = {key: each for key, each in known.items() if key not in hints or is_of_type(each, hints[key])}
        # Without a required key, the rest has no meaning.
        return fitting if fitting.keys() >= shape.__required_keys__ else {}
    if get_origin(shape) is tuple:
        return value if is_of_type(value, shape) else []
    # The last argument: of `dict[str, X]` and of `list[X]` it is X.
    (*_, inside) = get_args(shape) or (Any,)
    if (get_origin(shape) or shape) is dict:
        return {key: each for key, each in value.items() if is_of_type(each, inside)} if isinstance(value, dict) else {}
    return [each for each in value if is_of_type(each, inside)] if isinstance(value, list) else []

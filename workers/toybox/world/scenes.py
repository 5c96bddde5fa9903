"""Scenes: a few toys on a ground under a light, as plain data. The vocabulary of the toybox world lives here.

Does not draw (see `render`), read prompts (`prompts`) or change scenes (`edits`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from workers.errors import ToolMisuse
from workers.record.engine_parameters import ENGINE_PARAMETERS
from workers.toybox.world import stage

if TYPE_CHECKING:
    from workers.toybox.world.surfaces import AddedToys


@dataclass(frozen=True)
class Shape:
    """What the large one of a kind measures, in world units."""

    radius: float
    """Half its width as the camera sees it, at any turn it is given."""
    height: float
    perch: float
    """The height at which something put on it stands."""
    facing: float = 0.0
    """The turn, in degrees, from which it is known best."""
    wobble: float = 25.0
    """How far, in degrees, it may be turned from there."""


SHAPES: Mapping[str, Shape] = {
    "ball": Shape(0.58, 1.16, 1.13, 0, 180),
    "cube": Shape(0.68, 0.96, 0.96, 30, 12),
    "cone": Shape(0.60, 1.30, 1.27, 0, 180),
    "cylinder": Shape(0.50, 1.15, 1.15, 0, 180),
    "ring": Shape(0.62, 1.24, 1.22, 0, 25),
    "pyramid": Shape(0.82, 1.10, 1.07, 28, 10),
    "star": Shape(0.68, 1.25, 1.22, 0, 20),
    "car": Shape(0.80, 0.75, 0.72, -28, 18),
    "train": Shape(0.80, 0.97, 0.78, -28, 16),
    "boat": Shape(0.80, 1.36, 0.37, -20, 18),
    "rocket": Shape(0.51, 1.40, 1.38, 15, 30),
    "house": Shape(0.76, 1.13, 1.11, -30, 10),
    "tree": Shape(0.58, 1.38, 1.34, 0, 180),
    "mushroom": Shape(0.61, 1.10, 1.07, 0, 180),
    "snowman": Shape(0.54, 1.48, 1.47, 0, 25),
    "duck": Shape(0.72, 1.05, 0.68, 30, 20),
    "chair": Shape(0.56, 1.28, 0.62, -30, 15),
    "table": Shape(0.80, 0.80, 0.80, 20, 12),
    "cup": Shape(0.75, 0.91, 0.90, 0, 25),
    "robot": Shape(0.50, 1.44, 1.27, 0, 25),
}
NOUNS = tuple(SHAPES)
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "white", "black")
SIZES = ("small", "large")
SCALES: Mapping[str, float] = {"small": 0.56, "large": 1.0}
GROUNDS = ("grass", "sand", "snow", "water", "wood", "brick", "carpet", "tiles")
LIGHTS = ("day", "sunset", "night")
WHEN: Mapping[str, str] = {"day": "by day", "sunset": "at sunset", "night": "at night"}
CHOICES: Mapping[str, tuple[str, ...]] = {
    "noun": NOUNS,
    "colour": COLOURS,
    "size": SIZES,
    "ground": GROUNDS,
    "light": LIGHTS,
}
"""What can be said of a toy, or of what is around it: property -> its words."""

OWN_COLOUR = "own"
"""Colour of a thing that is as its file has it."""

MAX_THINGS = 6
BACKDROPS = 16
"""Views of each ground that a scene may have."""


@dataclass(frozen=True)
class Thing:
    """One toy. `x` and `y` in world units (see `stage`), `turn` in degrees about the vertical."""

    noun: str
    colour: str
    size: str
    x: float
    y: float
    turn: float = 0.0
    on: int | None = None
    """Index of the thing that it stands on; None for the ground."""


@dataclass(frozen=True)
class View:
    """From where, how bright and how large a scene is drawn, in the units of `record.engine_parameters`.

    Things lie as the camera sees them, `x` to the right of the picture: `camera` turns the ground and the light alone.
    Elevation and distance keep the point `about` (x, y) of the ground where it is in the picture.
    """

    camera: float = 0.0
    elevation: float = 23.0
    distance: float = 14.0
    light: float = 1.0
    size: float = 1.0
    count: int | None = None
    pose: float | None = None
    about: tuple[float, float] = (0.0, 0.0)

    @property
    def is_unmoved(self) -> bool:
        """Whether the camera is at its usual place; the ground may be turned below it."""
        return (self.elevation, self.distance) == (View.elevation, View.distance)

    @property
    def is_usual(self) -> bool:
        """Whether the toys stand and are seen as without a view; light and pose may differ."""
        return self.is_unmoved and not self.camera % 360 and self.size == 1.0 and self.count is None

    def to_json(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in ENGINE_PARAMETERS}
        known = {name: value for name, value in named.items() if value is not None}
        return {"parameters": known, "about": list(self.about)}

    @classmethod
    def from_json(cls, parameters: Any, about: Any) -> View:
        """The view in plain data. Raises ToolMisuse saying what is wrong with it."""
        if not isinstance(parameters, Mapping) or not set(parameters) <= set(ENGINE_PARAMETERS):
            raise _bad(f"its parameters must be of {', '.join(ENGINE_PARAMETERS)}")
        if not isinstance(about, list | tuple) or len(about) != 2:
            raise _bad("a view is about one point of the ground")
        limits = {name: ENGINE_PARAMETERS[name] for name in parameters}
        known = {name: _number(parameters[name], each.least, each.most, name) for name, each in limits.items()}
        count = known.pop("count", None)
        x, y = (_number(each, -10, 10, "about") for each in about)
        return cls(**known, count=None if count is None else int(count), about=(x, y))


@dataclass(frozen=True)
class Scene:
    things: tuple[Thing, ...]
    ground: str
    light: str
    backdrop: int = 0
    """Which view of the ground, from 0 to `BACKDROPS` - 1."""
    view: View | None = None
    """None for the usual one, where no game engine drew it."""
    added: AddedToys = field(default_factory=dict, compare=False, repr=False)
    """Those of its toys that files have added; empty but in a game engine's scene."""

    def to_json(self) -> dict[str, Any]:
        """Plain data for rows and pictures; `from_json` takes it back, unless files have added some of its toys."""
        data: dict[str, Any] = {"things": [asdict(thing) for thing in self.things]}
        data |= {"ground": self.ground, "light": self.light, "backdrop": self.backdrop}
        if self.added:
            data["added"] = {noun: {"file": toy.file, "sha256": toy.digest} for noun, toy in self.added.items()}
        return data | (self.view.to_json() if self.view else {})

    @classmethod
    def from_json(cls, data: Any) -> Scene:
        """The scene in plain data, which may come from anywhere. Raises ToolMisuse saying what is wrong with it.

        So does a scene with toys that files have added: what reads scenes knows toybox's own alone.
        """
        if isinstance(data, Mapping) and data.get("added"):
            raise ToolMisuse(
                f"This image shows what files have added to the game engine ({_name_added(data['added'])}), which "
                "nothing else of toybox knows. Draw another with tools.game_engine."
            )
        names = ("things", "ground", "light", "backdrop")
        is_viewed = isinstance(data, Mapping) and "parameters" in data
        fields = _fields(data, (*names, "parameters", "about") if is_viewed else names, "scene")
        rows = fields["things"]
        if not isinstance(rows, list | tuple) or len(rows) > MAX_THINGS:
            raise _bad(f"its things must be a list of at most {MAX_THINGS}")
        scene = cls(
            tuple(_thing(row) for row in rows),
            _word(fields["ground"], GROUNDS, "ground"),
            _word(fields["light"], LIGHTS, "light"),
            int(_number(fields["backdrop"], 0, BACKDROPS - 1, "backdrop")),
            View.from_json(fields["parameters"], fields["about"]) if is_viewed else None,
        )
        # Everything stands, at last, on the ground
        for thing in scene.things:
            steps, below = 0, thing.on
            while below is not None:
                if below >= len(scene.things) or steps > len(scene.things):
                    raise _bad(f"a {thing.noun} stands on nothing")
                steps, below = steps + 1, scene.things[below].on
        return scene

    def under(self, *, ground: str | None = None, light: str | None = None) -> Scene:
        """The same things on another ground, or in another light."""
        return replace(self, ground=ground or self.ground, light=light or self.light)

    def foot(self, index: int) -> float:
        """The height at which a thing stands: 0 on the ground, else the sum of the perches below it."""
        below = self.things[index].on
        if below is None:
            return 0.0
        return self.foot(below) + self.shape(below).perch * self.scale(below)

    def shape(self, index: int) -> Shape:
        """What a thing measures, large and at the usual view."""
        return _find_shape(self.things[index].noun, self.added)

    def scale(self, index: int) -> float:
        """How large a thing is drawn, 1 for a large one at the usual view."""
        size = SCALES[self.things[index].size]
        return size if self.view is None else size * self.view.size


def _find_shape(noun: str, added: AddedToys) -> Shape:
    """What the large one of a kind measures, of toybox's own or added."""
    return added[noun].shape if noun in added else SHAPES[noun]


def random_scene(rng: random.Random, things: int | None = None) -> Scene:
    """A scene of `things` toys (1 to 4 if not said), everything about it drawn at random."""
    count = rng.randint(1, 4) if things is None else things
    kinds = [(rng.choice(NOUNS), rng.choice(COLOURS), rng.choice(SIZES)) for _ in range(count)]
    return compose(kinds, rng)


def compose(
    kinds: Sequence[tuple[str, str, str]],
    rng: random.Random,
    *,
    ground: str | None = None,
    light: str | None = None,
    on: Mapping[int, int] | None = None,
    left_of: Sequence[tuple[int, int]] = (),
    sides: Mapping[int, int] | None = None,
    added: AddedToys | None = None,
) -> Scene:
    """A scene of things given as (noun, colour, size), with places and whatever is not said drawn at random.

    `on` maps a thing to the one that it stands on; `left_of` and `sides` are as in `stage.place_boxes`. `added` are
    toys beside toybox's own.
    """
    on = on or {}
    added = {noun: toy for noun, toy in (added or {}).items() if any(kind[0] == noun for kind in kinds)}
    shapes = [_find_shape(noun, added) for noun, _, _ in kinds]
    drawn = rng.choice(GROUNDS), rng.choice(LIGHTS)
    backdrop = rng.randrange(BACKDROPS)
    roots = [_root(index, on) for index in range(len(kinds))]
    standing = sorted(set(roots))
    order = {root: position for position, root in enumerate(standing)}
    spots = stage.place_boxes(
        [_stack(kinds, shapes, [k for k, r in enumerate(roots) if r == root], on) for root in standing],
        rng,
        [(order[roots[i]], order[roots[j]]) for i, j in left_of if roots[i] != roots[j]],
        {order[roots[i]]: side for i, side in (sides or {}).items()},
    )
    things = []
    for k, (noun, colour, size) in enumerate(kinds):
        x, y = spots[order[roots[k]]]
        place = round(x + _shift(k, kinds, shapes, on), 3)
        things.append(Thing(noun, colour, size, place, y, _turn(shapes[k], rng), on.get(k)))
    return Scene(tuple(things), ground or drawn[0], light or drawn[1], backdrop, added=added)


def joined_by(
    scene: Scene,
    kinds: Sequence[tuple[str | None, str | None, str | None]],
    rng: random.Random,
    support: int | None = None,
    room: tuple[float, float] = (-math.inf, math.inf),
) -> Scene:
    """The scene with more things, where there is room or on the thing `support`; what is None is drawn at random.

    `room` is the least and the greatest x that they may stand at; that is met as far as it can be.
    """
    things = list(scene.things)
    for noun, colour, size in kinds:
        drawn = rng.choice(NOUNS), rng.choice(COLOURS), rng.choice(SIZES)
        noun, colour, size = noun or drawn[0], colour or drawn[1], size or drawn[2]
        if support is None:
            box = stage.Box(SHAPES[noun].radius * SCALES[size], SHAPES[noun].height * SCALES[size])
            x, y = stage.place_boxes([box], rng, taken=_frames(things), room=room)[0]
        else:
            x, y = things[support].x, things[support].y
        things.append(Thing(noun, colour, size, x, y, _turn(SHAPES[noun], rng), support))
    return replace(scene, things=tuple(things))


def _frames(things: Sequence[Thing]) -> list[stage.Frame]:
    """Where the things that stand on the ground, with all that is on them, are in the picture."""
    kinds = [(thing.noun, thing.colour, thing.size) for thing in things]
    on = {k: thing.on for k, thing in enumerate(things) if thing.on is not None}
    roots = [_root(k, on) for k in range(len(things))]
    shapes = [SHAPES[thing.noun] for thing in things]
    return [
        stage.frame(
            _stack(kinds, shapes, [k for k, r in enumerate(roots) if r == root], on), things[root].x, things[root].y
        )
        for root in sorted(set(roots))
    ]


def _turn(shape: Shape, rng: random.Random) -> float:
    return round(shape.facing + rng.uniform(-shape.wobble, shape.wobble), 1)


def _root(index: int, on: Mapping[int, int]) -> int:
    """The thing on the ground below a thing."""
    for _ in range(len(on)):
        index = on.get(index, index)
    return index


def _shift(index: int, kinds: Sequence[tuple[str, str, str]], shapes: Sequence[Shape], on: Mapping[int, int]) -> float:
    """How far a thing stands beside the middle of its stack, since several may share what they stand on."""
    below = on.get(index)
    if below is None:
        return 0.0
    beside = sorted(k for k, support in on.items() if support == below)
    step = 0.8 * shapes[below].radius * SCALES[kinds[below][2]] / max(1, len(beside) - 1)
    return _shift(below, kinds, shapes, on) + step * (beside.index(index) - (len(beside) - 1) / 2)


def _stack(
    kinds: Sequence[tuple[str, str, str]], shapes: Sequence[Shape], members: Sequence[int], on: Mapping[int, int]
) -> stage.Box:
    """What a thing and all that stands on it take up together."""
    radius = height = 0.0
    for member in members:
        scale = SCALES[kinds[member][2]]
        top = shapes[member].height * scale
        below = on.get(member)
        while below is not None:
            top += shapes[below].perch * SCALES[kinds[below][2]]
            below = on.get(below)
        radius = max(radius, shapes[member].radius * scale)
        height = max(height, top)
    return stage.Box(radius, height)


# --- reading plain data -----------------------------------------------------------------------------


def _thing(row: Any) -> Thing:
    fields = _fields(row, ("noun", "colour", "size", "x", "y", "turn", "on"), "thing")
    on = fields["on"]
    return Thing(
        _word(fields["noun"], NOUNS, "noun"),
        _word(fields["colour"], COLOURS, "colour"),
        _word(fields["size"], SIZES, "size"),
        _number(fields["x"], -10, 10, "x"),
        _number(fields["y"], -10, 10, "y"),
        _number(fields["turn"], -720, 720, "turn"),
        None if on is None else int(_number(on, 0, MAX_THINGS - 1, "on")),
    )


def _name_added(added: Any) -> str:
    nouns = list(added)[:MAX_THINGS] if isinstance(added, Mapping) else []
    return ", ".join(str(noun)[:40] for noun in nouns) or "unnamed"


def _fields(data: Any, names: Sequence[str], what: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping) or set(data) != set(names):
        raise _bad(f"a {what} has exactly {', '.join(names)}")
    return data


def _word(value: Any, vocabulary: Sequence[str], what: str) -> str:
    if not isinstance(value, str) or value not in vocabulary:
        raise _bad(f"the {what} {value!r:.40} is not one of {', '.join(vocabulary)}")
    return value


def _number(value: Any, least: float, most: float, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _bad(f"{what} must be a number, but is {value!r:.40}")
    if not least <= value <= most:
        raise _bad(f"{what} must lie between {least} and {most}, but is {value}")
    return value


def _bad(reason: str) -> ToolMisuse:
    return ToolMisuse(f"This is not a scene that toybox can draw: {reason}. Use a scene that toybox made.")

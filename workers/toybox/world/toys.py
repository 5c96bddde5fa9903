"""The toys: what each noun looks like, put together from solids. Knows no engine and no scene.

A toy stands on z = 0 and is seen best from the front (from -y), within the measures in `scenes.SHAPES`.
To add one: a builder here, a line in `TOYS`, and its measures in `scenes.SHAPES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from workers.toybox.world.solids import (
    Solid,
    ball,
    box,
    cone,
    cylinder,
    join_solids,
    lathe,
    make_loft,
    prism,
    pyramid,
    torus,
)

Rgb = tuple[float, float, float]

DARK: Rgb = (0.16, 0.16, 0.18)
PALE: Rgb = (0.93, 0.92, 0.88)
TIMBER: Rgb = (0.50, 0.34, 0.20)
GLASS: Rgb = (0.62, 0.82, 0.92)
STEEL: Rgb = (0.62, 0.64, 0.68)
ROOF: Rgb = (0.36, 0.30, 0.30)
BEAK: Rgb = (0.98, 0.58, 0.10)
BRASS: Rgb = (0.80, 0.64, 0.26)
COFFEE: Rgb = (0.28, 0.18, 0.12)
WHITE: Rgb = (0.98, 0.98, 0.98)
LAMP: Rgb = (1.0, 0.92, 0.62)


@dataclass(frozen=True)
class Part:
    """A solid and its paint: an RGB of its own, or None for the colour of the thing, times `tone`."""

    solid: Solid
    paint: Rgb | None = None
    tone: float = 1.0


Toy = tuple[Part, ...]


def _toy_star() -> Toy:
    corners = [(0.69 if k % 2 == 0 else 0.30, math.radians(90 + 36 * k)) for k in range(10)]
    outline = [(r * math.cos(a), r * math.sin(a) + 0.56) for r, a in corners]
    return (Part(prism(outline, 0.22, middle=(0.0, 0.56), puff=0.14)),)


def _toy_car() -> Toy:
    body = box(1.45, 0.66, 0.30, bevel=0.09).at(z=0.15)
    roof = box(0.74, 0.56, 0.34, bevel=0.09).at(-0.08, 0, 0.40)
    windows = join_solids(
        box(0.60, 0.585, 0.19, bevel=0.03).at(-0.08, 0, 0.46), box(0.765, 0.46, 0.19, bevel=0.03).at(-0.08, 0, 0.46)
    )
    wheel = cylinder(0.17, 0.12).turned("x", 90)
    hub = cylinder(0.08, 0.14, bevel=0.01).turned("x", 90)
    spots = [(x, y) for x in (-0.44, 0.44) for y in (-0.29, 0.41)]
    lamp = ball(0.065, 8, 12)
    return (
        Part(body),
        Part(roof),
        Part(windows, GLASS),
        Part(join_solids(*(wheel.at(x, y, 0.17) for x, y in spots)), DARK),
        Part(join_solids(*(hub.at(x, y - 0.005, 0.17) for x, y in spots)), STEEL),
        Part(join_solids(*(lamp.at(0.70, y, 0.31) for y in (-0.2, 0.2))), LAMP),
    )


def _toy_house() -> Toy:
    wall = [(-0.48, 0.0), (0.48, 0.0), (0.48, 0.72), (0.0, 1.06), (-0.48, 0.72)]
    gable = prism(wall, 0.92, middle=(0.0, 0.4)).turned("z", 90)
    outline = [(-0.57, 0.65), (0.57, 0.65), (0.57, 0.70), (0.0, 1.13), (-0.57, 0.70)]
    roof = prism(outline, 1.02, middle=(0.0, 0.8)).turned("z", 90)
    pane = box(0.22, 0.02, 0.26, bevel=0.008)
    panes = join_solids(*(pane.at(x, -0.485, 0.28) for x in (-0.25, 0.25)), pane.turned("z", 90).at(0.465, -0.24, 0.28))
    door = box(0.02, 0.24, 0.48, bevel=0.008).at(0.465, 0.12, 0)
    chimney = box(0.15, 0.15, 0.42, bevel=0.02).at(-0.26, 0.16, 0.72)
    return (Part(gable), Part(join_solids(roof, chimney), ROOF), Part(panes, GLASS), Part(door, TIMBER))


def _toy_tree() -> Toy:
    tiers = join_solids(
        cone(0.58, 0.62, segments=24).at(z=0.30),
        cone(0.47, 0.56, segments=24).at(z=0.58),
        cone(0.35, 0.52, segments=24).at(z=0.86),
    )
    return (Part(tiers), Part(cylinder(0.12, 0.36), TIMBER))


def _toy_train() -> Toy:
    boiler = cylinder(0.25, 0.92, bevel=0.05).turned("y", 90).at(-0.28, 0, 0.47)
    cabin = box(0.42, 0.62, 0.68, bevel=0.04).at(-0.44, 0, 0.2)
    deck = box(1.40, 0.56, 0.14, bevel=0.04).at(0, 0, 0.16)
    roof = box(0.54, 0.72, 0.09, bevel=0.04).at(-0.44, 0, 0.87)
    chimney = lathe([(0.08, 0.68), (0.08, 0.84)], [(0.08, 0.84), (0.14, 0.96)], [(0.14, 0.96), (0.0, 0.96)])
    wheel = cylinder(0.16, 0.1).turned("x", 90)
    hub = cylinder(0.07, 0.12, bevel=0.01).turned("x", 90)
    spots = [(x, y) for x in (-0.46, -0.08, 0.30) for y in (-0.25, 0.35)]
    panes = join_solids(*(box(0.22, 0.02, 0.22, bevel=0.008).at(-0.44, y, 0.58) for y in (-0.312, 0.312)))
    return (
        Part(join_solids(boiler, cabin)),
        Part(join_solids(deck, roof, chimney.at(0.40, 0, 0)), DARK),
        Part(join_solids(*(wheel.at(x, y, 0.16) for x, y in spots)), DARK),
        Part(join_solids(*(hub.at(x, y - 0.01, 0.16) for x, y in spots)), BRASS),
        Part(panes, GLASS),
        Part(ball(0.09, 8, 12).at(0.66, 0, 0.58), LAMP),
    )


def _toy_boat() -> Toy:
    deck = [(0.78 * t, 0.30 * math.sqrt(max(0.0, 1 - abs(t) ** 2.6))) for t in [k / 10 for k in range(-10, 11)]]
    rim = [(x, -y) for x, y in deck] + deck[-2:0:-1]
    hull = make_loft([[(0.90 * x, 0.80 * y) for x, y in rim], rim], [0.0, 0.36])
    inside = make_loft([[(0.9 * x, 0.86 * y) for x, y in rim], [(0.91 * x, 0.87 * y) for x, y in rim]], [0.33, 0.365])
    mast = cylinder(0.03, 1.05, bevel=0.01, segments=10).at(0.02, 0, 0.30)
    main = prism([(-0.04, 0.48), (-0.04, 1.28), (-0.58, 0.48)], 0.03, middle=(-0.2, 0.7))
    jib = prism([(0.08, 0.48), (0.56, 0.48), (0.08, 1.12)], 0.03, middle=(0.22, 0.65))
    return (Part(hull), Part(inside, TIMBER), Part(mast, TIMBER), Part(main, PALE), Part(jib))


def _toy_rocket() -> Toy:
    shell = [(0.17, 0.14), (0.25, 0.32), (0.28, 0.55), (0.27, 0.78), (0.22, 0.98)]
    nose = [(0.22, 0.98), (0.16, 1.16), (0.08, 1.31), (0.0, 1.40)]
    fin = prism([(0.20, 0.20), (0.50, 0.0), (0.50, 0.22), (0.24, 0.56)], 0.06, middle=(0.36, 0.24))
    window = cylinder(0.11, 0.03, bevel=0.01).turned("x", 90).at(0, -0.255, 0.74)
    frame = torus(0.115, 0.028, 20, 8).turned("x", 90).at(0, -0.268, 0.74)
    nozzle = cylinder(0.17, 0.14, top=0.13, bevel=0.01).at(z=0.02)
    return (
        Part(lathe([(0, 0.14), shell[0]], shell)),
        Part(join_solids(lathe(nose), frame), STEEL),
        Part(join_solids(*(fin.turned("z", 30 + 120 * k) for k in range(3)))),
        Part(window, GLASS),
        Part(nozzle, DARK),
    )


def _toy_mushroom() -> Toy:
    cap = [(0.60 * math.cos(a), 0.52 + 0.56 * math.sin(a)) for a in [math.pi / 2 * k / 10 for k in range(11)]]
    under = lathe([(0.14, 0.56), (0.50, 0.50), (0.60, 0.52)])
    stem = lathe([(0, 0), (0.24, 0)], [(0.24, 0.0), (0.20, 0.2), (0.17, 0.56)])
    spots = []
    for turn, tilt, size in (
        *((-90, 42, 0.13), (-30, 30, 0.11), (-150, 28, 0.11), (30, 48, 0.12)),
        *((100, 35, 0.13), (170, 52, 0.1), (-60, 72, 0.1)),
    ):
        spot = ball(size, 8, 14).scaled(1, 1, 0.35).at(z=0.57).turned("x", 90 - tilt).scaled(1.04, 1.04, 0.98)
        spots.append(spot.turned("z", turn + 90).at(z=0.52))
    return (Part(lathe(cap)), Part(join_solids(under, stem), PALE), Part(join_solids(*spots), WHITE))


def _toy_snowman() -> Toy:
    body = join_solids(ball(0.42).at(z=0.38), ball(0.31).at(z=0.86), ball(0.21).at(z=1.16))
    hat = join_solids(cylinder(0.24, 0.04, bevel=0.015).at(z=1.27), cylinder(0.155, 0.2, bevel=0.02).at(z=1.28))
    carrot = cone(0.045, 0.22, tip=0.015, segments=12).turned("x", 90).at(0, -0.19, 1.15)
    eye = ball(0.032, 6, 10)
    coals = join_solids(
        eye.at(-0.08, -0.185, 1.22), eye.at(0.08, -0.185, 1.22), eye.at(0, -0.30, 0.96), eye.at(0, -0.315, 0.82)
    )
    arm = cylinder(0.022, 0.34, bevel=0.005, segments=8)
    arms = join_solids(arm.turned("y", 60).at(0.24, 0, 0.92), arm.turned("y", -60).at(-0.24, 0, 0.92))
    return (Part(body), Part(join_solids(hat, coals), DARK), Part(carrot, BEAK), Part(arms, TIMBER))


def _toy_duck() -> Toy:
    body = ball(0.46).scaled(1.28, 0.92, 0.78).at(0.04, 0, 0.36)
    tail = cone(0.22, 0.42, tip=0.04).turned("y", 48).scaled(1, 0.8, 1).at(0.36, 0, 0.36)
    head = ball(0.27).at(-0.30, 0, 0.78)
    wing = ball(0.27, 12, 18).scaled(1.2, 0.32, 0.62)
    wings = join_solids(wing.at(0.12, -0.38, 0.42), wing.at(0.12, 0.38, 0.42))
    beak = ball(0.13, 10, 16).scaled(1.25, 1.0, 0.42).at(-0.58, 0, 0.73)
    eye = ball(0.042, 8, 12)
    eyes = join_solids(eye.at(-0.46, -0.19, 0.87), eye.at(-0.46, 0.19, 0.87))
    return (Part(join_solids(body, tail, head)), Part(wings, tone=0.88), Part(beak, BEAK), Part(eyes, DARK))


def _toy_chair() -> Toy:
    leg = box(0.11, 0.11, 0.54, bevel=0.02)
    legs = join_solids(*(leg.at(x, y, 0) for x in (-0.32, 0.32) for y in (-0.30, 0.30)))
    seat = box(0.80, 0.76, 0.11, bevel=0.035).at(0, 0, 0.51)
    posts = join_solids(*(box(0.11, 0.1, 0.72, bevel=0.03).at(x, 0.32, 0.56) for x in (-0.33, 0.33)))
    rails = join_solids(*(box(0.62, 0.06, 0.16, bevel=0.02).at(0, 0.33, z) for z in (0.80, 1.07)))
    return (Part(join_solids(legs, seat, posts, rails)),)


def _toy_table() -> Toy:
    leg = box(0.12, 0.12, 0.72, bevel=0.02)
    legs = join_solids(*(leg.at(x, y, 0) for x in (-0.52, 0.52) for y in (-0.32, 0.32)))
    top = box(1.34, 0.94, 0.11, bevel=0.035).at(0, 0, 0.69)
    return (Part(join_solids(legs, top)),)


def _toy_cup() -> Toy:
    outer = lathe(
        [(0, 0), (0.36, 0)], [(0.36, 0), (0.40, 0.05), (0.42, 0.3), (0.43, 0.90)], [(0.43, 0.90), (0.36, 0.90)]
    )
    inner = lathe([(0.36, 0.90), (0.34, 0.70)], [(0.34, 0.70), (0.0, 0.70)])
    handle = torus(0.22, 0.065, 24, 10).turned("x", 90).scaled(1, 1, 1.15).at(0.46, 0, 0.47)
    return (Part(join_solids(outer, handle)), Part(inner, COFFEE))


def _toy_robot() -> Toy:
    body = box(0.62, 0.44, 0.52, bevel=0.05).at(0, 0, 0.34)
    head = box(0.48, 0.40, 0.38, bevel=0.05).at(0, 0, 0.90)
    leg = box(0.20, 0.26, 0.36, bevel=0.03)
    arm = box(0.13, 0.18, 0.44, bevel=0.05)
    limbs = join_solids(leg.at(-0.17, -0.02), leg.at(0.17, -0.02), arm.at(-0.41, 0, 0.38), arm.at(0.41, 0, 0.38))
    eye = cylinder(0.085, 0.03, bevel=0.01).turned("x", 90)
    pupil = cylinder(0.04, 0.02, bevel=0.005).turned("x", 90)
    face = join_solids(*(eye.at(x, -0.195, 1.13) for x in (-0.11, 0.11)))
    mouth = box(0.24, 0.02, 0.05, bevel=0.008).at(0, -0.202, 0.95)
    panel = box(0.34, 0.02, 0.22, bevel=0.008).at(0, -0.222, 0.50)
    pole = join_solids(cylinder(0.025, 0.14, bevel=0.005, segments=8).at(z=1.24), cylinder(0.13, 0.1).at(z=0.83))
    return (
        Part(join_solids(body, head)),
        Part(join_solids(limbs, pole), STEEL),
        Part(face, WHITE),
        Part(join_solids(*(pupil.at(x, -0.222, 1.13) for x in (-0.11, 0.11)), mouth), DARK),
        Part(panel, PALE),
        Part(ball(0.06, 8, 12).at(z=1.38), BEAK),
    )


TOYS: Mapping[str, Callable[[], Toy]] = {
    "ball": lambda: (Part(ball(0.58, 24, 36).at(z=0.58)),),
    "cube": lambda: (Part(box(0.96, 0.96, 0.96, bevel=0.05)),),
    "cone": lambda: (Part(cone(0.60, 1.30)),),
    "cylinder": lambda: (Part(cylinder(0.50, 1.15, bevel=0.04)),),
    "ring": lambda: (Part(torus(0.43, 0.19).turned("x", 90).at(z=0.62)),),
    "pyramid": lambda: (Part(pyramid(1.15, 1.10)),),
    "star": _toy_star,
    "car": _toy_car,
    "train": _toy_train,
    "boat": _toy_boat,
    "rocket": _toy_rocket,
    "house": _toy_house,
    "tree": _toy_tree,
    "mushroom": _toy_mushroom,
    "snowman": _toy_snowman,
    "duck": _toy_duck,
    "chair": _toy_chair,
    "table": _toy_table,
    "cup": _toy_cup,
    "robot": _toy_robot,
}

"""The toys' outlines as signed distances, negative inside, in the toy's own plane: radius 1, x right, y down.

Each kind is a silhouette and up to three details: ``shade`` (darker), ``light`` and ``dark``. The details are not
symmetric, so that a turn shows on every kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import cos, pi, sin

import numpy as np
from jaxtyping import Float

Field = Float[np.ndarray, "*grid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Signed distances of one kind's layers."""

    silhouette: Field
    shade: Field | None = None
    light: Field | None = None
    dark: Field | None = None


def circle(x: Field, y: Field, cx: float, cy: float, radius: float) -> Field:
    return np.hypot(x - cx, y - cy) - radius


def ellipse(x: Field, y: Field, cx: float, cy: float, rx: float, ry: float) -> Field:
    """First-order distance, exact enough near the edge."""
    u, v = (x - cx) / rx, (y - cy) / ry
    length = np.hypot(u, v)
    slope = np.hypot(u / rx, v / ry) + 1e-9
    return length * (length - 1.0) / slope


def rectangle(x: Field, y: Field, cx: float, cy: float, half_x: float, half_y: float, corner: float = 0.0) -> Field:
    u, v = np.abs(x - cx) - half_x + corner, np.abs(y - cy) - half_y + corner
    return np.hypot(np.maximum(u, 0.0), np.maximum(v, 0.0)) + np.minimum(np.maximum(u, v), 0.0) - corner


def stroke(x: Field, y: Field, ax: float, ay: float, bx: float, by: float, radius: float) -> Field:
    """A line from a to b with round ends."""
    dx, dy = bx - ax, by - ay
    along = np.clip(((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy), 0.0, 1.0)
    return np.hypot(x - ax - along * dx, y - ay - along * dy) - radius


def polygon(x: Field, y: Field, corners: Sequence[tuple[float, float]]) -> Field:
    distance = np.full(np.broadcast(x, y).shape, np.inf)
    inside = np.zeros(distance.shape, dtype=bool)
    for (ax, ay), (bx, by) in zip(corners, [*corners[1:], corners[0]], strict=True):
        distance = np.minimum(distance, stroke(x, y, ax, ay, bx, by, 0.0))
        if ay != by:
            inside ^= ((ay > y) != (by > y)) & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
    return np.where(inside, -distance, distance)


def union(*fields: Field) -> Field:
    return np.minimum.reduce(fields)


def common(*fields: Field) -> Field:
    return np.maximum.reduce(fields)


def without(field: Field, hole: Field) -> Field:
    return np.maximum(field, -hole)


def _car(x: Field, y: Field) -> Shape:
    body = rectangle(x, y, 0.0, 0.2, 1.0, 0.34, 0.14)
    cabin = polygon(x, y, [(-0.62, -0.1), (-0.42, -0.66), (0.22, -0.66), (0.5, -0.1)])
    wheels = union(circle(x, y, -0.52, 0.52, 0.3), circle(x, y, 0.52, 0.52, 0.3))
    hubs = union(circle(x, y, -0.52, 0.52, 0.11), circle(x, y, 0.52, 0.52, 0.11))
    window = polygon(x, y, [(-0.06, -0.12), (-0.06, -0.5), (0.16, -0.5), (0.36, -0.12)])
    lamp = circle(x, y, 0.84, 0.12, 0.13)
    return Shape(silhouette=union(body, cabin, wheels), light=union(window, lamp, hubs), dark=without(wheels, hubs))


def _ball(x: Field, y: Field) -> Shape:
    half = common(circle(x, y, 0.0, 0.0, 0.92), y - 0.1)
    wedge = polygon(x, y, [(0.0, 0.1), (-1.4, 0.1), (-1.4, -1.4), (0.2, -1.4)])
    spot = circle(x, y, 0.3, 0.45, 0.2)
    return Shape(silhouette=circle(x, y, 0.0, 0.0, 0.92), light=common(half, wedge), dark=spot)


def _star(x: Field, y: Field) -> Shape:
    corners = [
        ((1.04 if i % 2 == 0 else 0.46) * sin(pi * i / 5), (1.04 if i % 2 == 0 else 0.46) * -cos(pi * i / 5) + 0.06)
        for i in range(10)
    ]
    return Shape(
        silhouette=polygon(x, y, corners) - 0.03,
        light=circle(x, y, 0.0, -0.42, 0.2),
        dark=union(circle(x, y, -0.2, 0.12, 0.11), circle(x, y, 0.2, 0.12, 0.11)),
    )


def _fish(x: Field, y: Field) -> Shape:
    body = ellipse(x, y, 0.18, 0.0, 0.82, 0.56)
    tail = polygon(x, y, [(-0.45, 0.0), (-1.02, -0.58), (-0.85, 0.0), (-1.02, 0.58)])
    fin = polygon(x, y, [(0.0, -0.45), (-0.25, -0.85), (0.45, -0.5)])
    belly = common(ellipse(x, y, 0.18, 0.0, 0.7, 0.44), 0.18 - y)
    eye = circle(x, y, 0.58, -0.12, 0.13)
    return Shape(silhouette=union(body, tail, fin), shade=tail, light=belly, dark=eye)


def _kite(x: Field, y: Field) -> Shape:
    sail = polygon(x, y, [(0.0, -1.02), (0.84, -0.22), (0.0, 0.66), (-0.84, -0.22)])
    tail = union(stroke(x, y, 0.0, 0.6, 0.18, 0.82, 0.09), stroke(x, y, 0.18, 0.82, -0.05, 1.0, 0.09))
    top_left = common(sail + 0.1, x, y + 0.25)
    bottom_right = common(sail + 0.1, -x, -y - 0.25)
    bows = union(circle(x, y, 0.18, 0.82, 0.12), tail)
    return Shape(silhouette=union(sail, tail - 0.04), light=top_left, shade=bottom_right, dark=bows)


def _cup(x: Field, y: Field) -> Shape:
    body = polygon(x, y, [(-0.72, -0.72), (0.5, -0.72), (0.36, 0.78), (-0.58, 0.78)]) - 0.06
    handle = without(circle(x, y, 0.52, -0.05, 0.48), circle(x, y, 0.52, -0.05, 0.22))
    inside = ellipse(x, y, -0.11, -0.66, 0.5, 0.12)
    band = common(body + 0.08, np.abs(y - 0.28) - 0.15)
    return Shape(silhouette=union(body, handle), light=band, dark=inside)


def _key(x: Field, y: Field) -> Shape:
    ring = without(circle(x, y, -0.46, -0.08, 0.6), circle(x, y, -0.46, -0.08, 0.19))
    shaft = rectangle(x, y, 0.44, -0.08, 0.6, 0.24, 0.04)
    teeth = union(rectangle(x, y, 0.83, 0.28, 0.21, 0.34, 0.03), rectangle(x, y, 0.3, 0.22, 0.17, 0.26, 0.03))
    return Shape(silhouette=union(ring, shaft, teeth), light=circle(x, y, -0.72, -0.34, 0.14))


def _boat(x: Field, y: Field) -> Shape:
    hull = polygon(x, y, [(-1.0, 0.32), (1.0, 0.32), (0.62, 0.86), (-0.66, 0.86)]) - 0.02
    mast = rectangle(x, y, -0.08, -0.3, 0.08, 0.72)
    sail = polygon(x, y, [(0.02, -1.0), (0.85, 0.16), (0.02, 0.16)])
    jib = polygon(x, y, [(-0.18, -0.7), (-0.75, 0.16), (-0.18, 0.16)])
    stripe = common(hull + 0.1, np.abs(y - 0.5) - 0.08)
    return Shape(silhouette=union(hull, mast, sail, jib), light=union(jib + 0.1, stripe), dark=mast)


def _tree(x: Field, y: Field) -> Shape:
    tiers = union(
        polygon(x, y, [(0.0, -1.02), (0.48, -0.35), (-0.48, -0.35)]),
        polygon(x, y, [(0.0, -0.68), (0.64, 0.15), (-0.64, 0.15)]),
        polygon(x, y, [(0.0, -0.25), (0.8, 0.66), (-0.8, 0.66)]),
    )
    trunk = rectangle(x, y, 0.0, 0.8, 0.17, 0.22)
    baubles = union(circle(x, y, -0.3, 0.42, 0.14), circle(x, y, 0.2, -0.05, 0.13))
    return Shape(silhouette=union(tiers, trunk), shade=common(tiers + 0.1, 0.3 - y), light=baubles, dark=trunk)


def _house(x: Field, y: Field) -> Shape:
    walls = rectangle(x, y, 0.0, 0.42, 0.7, 0.52)
    roof = polygon(x, y, [(0.0, -1.0), (1.0, -0.02), (-1.0, -0.02)])
    chimney = rectangle(x, y, 0.56, -0.62, 0.14, 0.28)
    door = rectangle(x, y, -0.28, 0.6, 0.19, 0.34)
    window = rectangle(x, y, 0.32, 0.4, 0.19, 0.19)
    return Shape(silhouette=union(walls, roof, chimney), shade=roof + 0.1, light=window, dark=door)


def _hat(x: Field, y: Field) -> Shape:
    brim = ellipse(x, y, 0.0, 0.58, 1.04, 0.27)
    crown = polygon(x, y, [(-0.58, -0.78), (0.58, -0.78), (0.48, 0.5), (-0.48, 0.5)]) - 0.04
    band = common(crown + 0.06, np.abs(y - 0.26) - 0.14)
    feather = stroke(x, y, 0.5, 0.3, 0.72, -0.6, 0.13)
    return Shape(silhouette=union(brim, crown, feather), light=feather + 0.08, dark=band)


def _bell(x: Field, y: Field) -> Shape:
    dome = ellipse(x, y, 0.0, -0.2, 0.52, 0.62)
    skirt = polygon(x, y, [(-0.5, -0.2), (0.5, -0.2), (0.86, 0.55), (-0.86, 0.55)]) - 0.05
    knob = circle(x, y, 0.0, -0.86, 0.17)
    clapper = circle(x, y, 0.12, 0.76, 0.23)
    shine = stroke(x, y, -0.3, -0.3, -0.45, 0.2, 0.11)
    rim = common(skirt + 0.08, 0.36 - y)
    return Shape(silhouette=union(dome, skirt, knob, clapper), shade=rim, light=shine, dark=clapper)


def _duck(x: Field, y: Field) -> Shape:
    body = ellipse(x, y, -0.14, 0.4, 0.78, 0.46)
    tail = polygon(x, y, [(-0.5, 0.1), (-1.02, -0.12), (-0.85, 0.5)])
    head = circle(x, y, 0.36, -0.4, 0.42)
    neck = rectangle(x, y, 0.3, 0.0, 0.25, 0.3)
    beak = polygon(x, y, [(0.68, -0.5), (1.06, -0.3), (0.66, -0.14)])
    wing = ellipse(x, y, -0.22, 0.36, 0.4, 0.2)
    eye = circle(x, y, 0.46, -0.48, 0.12)
    return Shape(silhouette=union(body, tail, head, neck, beak), shade=wing, light=beak, dark=eye)


def _mushroom(x: Field, y: Field) -> Shape:
    cap = common(ellipse(x, y, 0.0, 0.05, 1.0, 0.98), y - 0.12)
    stem = rectangle(x, y, 0.0, 0.5, 0.34, 0.46, 0.14)
    dots = union(circle(x, y, -0.42, -0.3, 0.2), circle(x, y, 0.2, -0.55, 0.15))
    return Shape(
        silhouette=union(cap - 0.02, stem), light=union(dots, stem + 0.1), dark=circle(x, y, 0.56, -0.12, 0.13)
    )


def _rocket(x: Field, y: Field) -> Shape:
    body = common(ellipse(x, y, 0.0, 0.12, 0.54, 1.12), y - 0.62)
    fins = union(
        polygon(x, y, [(-0.38, 0.0), (-0.92, 0.82), (-0.38, 0.62)]),
        polygon(x, y, [(0.38, 0.0), (0.92, 0.82), (0.38, 0.62)]),
    )
    flame = polygon(x, y, [(-0.24, 0.6), (0.24, 0.6), (0.08, 1.04)])
    left_fin = polygon(x, y, [(-0.46, 0.28), (-0.78, 0.7), (-0.46, 0.56)])
    return Shape(
        silhouette=union(body, fins, flame),
        shade=common(body + 0.1, y + 0.58),
        light=union(circle(x, y, 0.0, -0.14, 0.2), flame + 0.06),
        dark=left_fin,
    )


def _umbrella(x: Field, y: Field) -> Shape:
    dome = common(ellipse(x, y, 0.0, 0.1, 1.04, 0.98), y - 0.1)
    for centre in (-0.69, 0.0, 0.69):
        dome = without(dome, circle(x, y, centre, 0.29, 0.33))
    pole = rectangle(x, y, 0.0, 0.3, 0.1, 0.5)
    hook = common(without(circle(x, y, 0.2, 0.76, 0.29), circle(x, y, 0.2, 0.76, 0.11)), 0.76 - y)
    tip = rectangle(x, y, 0.0, -0.94, 0.08, 0.12)
    panel = polygon(x, y, [(0.0, -0.9), (0.4, 0.1), (1.2, 0.2), (1.0, -0.6)])
    left = polygon(x, y, [(0.0, -0.9), (-0.62, 0.1), (-1.2, 0.2), (-1.0, -0.6)])
    return Shape(
        silhouette=union(dome, pole, hook, tip),
        shade=common(dome + 0.1, panel),
        light=common(dome + 0.1, left),
        dark=union(pole + 0.03, hook + 0.05),
    )


def _hand(x: Field, y: Field) -> Shape:
    """A glove reaching down from a sleeve; not a toy."""
    sleeve = rectangle(x, y, 0.0, -0.8, 0.36, 0.22, 0.04)
    palm = rectangle(x, y, 0.0, -0.2, 0.5, 0.42, 0.2)
    fingers = union(*(stroke(x, y, fx, 0.1, fx * 1.25, 0.62, 0.15) for fx in (-0.36, 0.0, 0.36)))
    thumb = stroke(x, y, 0.45, -0.1, 0.78, 0.3, 0.15)
    return Shape(silhouette=union(sleeve, palm, fingers, thumb), dark=sleeve + 0.08)


SHAPES: dict[str, Callable[[Field, Field], Shape]] = {
    "car": _car,
    "ball": _ball,
    "star": _star,
    "fish": _fish,
    "kite": _kite,
    "cup": _cup,
    "key": _key,
    "boat": _boat,
    "tree": _tree,
    "house": _house,
    "hat": _hat,
    "bell": _bell,
    "duck": _duck,
    "mushroom": _mushroom,
    "rocket": _rocket,
    "umbrella": _umbrella,
    "hand": _hand,
}

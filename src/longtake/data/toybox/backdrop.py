"""What stands behind the toys: four kinds of scene in muted colours, and the box. Painted once per script and size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Float32

from longtake.data.toybox.dice import Dice
from longtake.data.toybox.draw import INK
from longtake.data.toybox.shapes import circle, ellipse, polygon, rectangle
from longtake.data.toybox.world import BOX_HEIGHT, BOX_TOP, BOX_WIDTH, Box, Look

Grid: TypeAlias = Float[np.ndarray, "height width"]
Picture: TypeAlias = Float[np.ndarray, "height width 3"]
OVERSAMPLING = 2
LOWEST, HIGHEST = 24.0, 226.0
"""Grey levels that leave room for light drift and noise."""


def paint_backdrop(look: Look, box: Box, size: int) -> tuple[Float32[np.ndarray, "height width 3"], "BoxFront"]:
    """The scene with the box on it, and the front of the box, to be laid over a toy that goes in."""
    fine = size * OVERSAMPLING
    line = (np.arange(fine) + 0.5) / fine
    y, x = np.meshgrid(line, line, indexing="ij")
    picture = _SCENES[look.backdrop](x, y, look, Dice("backdrop", look.seed))
    picture = _box_back(picture, x, y, box)
    front = BoxFront(x, y, box, size)
    scene = _shrink(picture).astype(np.float32)
    front.lay_over(scene)
    return np.clip(scene, LOWEST, HIGHEST, out=scene), front


class BoxFront:
    """The front wall of the box as a small picture with its coverage."""

    def __init__(self, x: Grid, y: Grid, box: Box, size: int) -> None:
        colour = np.array(box.colour, dtype=float)
        middle = BOX_TOP + BOX_HEIGHT / 2 + 0.015
        wall = rectangle(x, y, box.x, middle, BOX_WIDTH / 2 - 0.005, BOX_HEIGHT / 2 - 0.015, 0.012)
        picture = (
            np.broadcast_to(colour, (*x.shape, 3)) * (1.0 - 0.25 * np.clip((y - BOX_TOP) / BOX_HEIGHT, 0, 1))[..., None]
        )
        tape = np.abs(x - box.x) - 0.022
        picture = _over(picture, tape, tuple(colour * 1.3))
        picture = _over(picture, -(wall + 0.012), INK)
        covered = _covered(wall)
        top = max(0, int((BOX_TOP - 0.02) * size))
        left = max(0, int((box.x - BOX_WIDTH / 2 - 0.02) * size))
        right = min(size, left + int((BOX_WIDTH + 0.06) * size))
        self._window = slice(top, size), slice(left, right)
        coverage = _shrink(covered[..., None]).astype(np.float32)[self._window]
        self._rest = 1.0 - coverage
        self._paint = np.clip(_shrink(picture), LOWEST, HIGHEST).astype(np.float32)[self._window] * coverage

    def lay_over(self, canvas: Float32[np.ndarray, "height width 3"]) -> None:
        window = canvas[self._window]
        window *= self._rest
        window += self._paint


def _box_back(picture: Picture, x: Grid, y: Grid, box: Box) -> Picture:
    """The dark mouth behind the front wall, a little higher."""
    half = BOX_WIDTH / 2 - 0.005
    mouth = polygon(
        x,
        y,
        [
            (box.x - half, BOX_TOP + 0.05),
            (box.x - half + 0.03, BOX_TOP - 0.025),
            (box.x + half - 0.03, BOX_TOP - 0.025),
            (box.x + half, BOX_TOP + 0.05),
        ],
    )
    picture = _over(picture, mouth, INK)
    return _over(picture, mouth + 0.012, tuple(value * 0.45 for value in box.colour))


def _room(x: Grid, y: Grid, look: Look, dice: Dice) -> Picture:
    wall, floor = _muted(look.hue, 150, 0.20), _muted(look.hue + 0.45, 120, 0.22)
    horizon = dice.uniform(0.58, 0.68)
    stripes = 5.0 * np.sign(np.sin(x * dice.uniform(28, 44)))
    picture = _flat(x, wall) + stripes[..., None]
    window_x = dice.uniform(0.25, 0.75)
    frame = rectangle(x, y, window_x, 0.26, 0.17, 0.16, 0.01)
    picture = _over(picture, frame, _muted(look.hue + 0.1, 176, 0.08))
    glass = np.maximum(frame + 0.018, 0.008 - np.minimum(np.abs(x - window_x), np.abs(y - 0.26)))
    picture = _over(picture, glass, _muted(0.58, 166, 0.15))
    boards = 4.0 * np.sign(np.sin((x - 0.5) / (y + 0.2) * 34.0))
    ground = _flat(x, floor) + boards[..., None]
    return _blend(picture, ground, _covered(horizon - y))


def _meadow(x: Grid, y: Grid, look: Look, dice: Dice) -> Picture:
    sky = _flat(x, _muted(0.56 + 0.06 * look.hue, 160, 0.16)) + (22.0 * (y - 0.3))[..., None]
    hills = _flat(x, _muted(0.30 + 0.1 * look.hue, 132, 0.2))
    grass = _flat(x, _muted(0.24 + 0.1 * look.hue, 116, 0.26)) + (12.0 * (y - 0.7))[..., None]
    ridge = dice.uniform(0.36, 0.44) + 0.05 * np.sin(x * dice.uniform(5, 9) + dice.uniform(0, 6))
    edge = dice.uniform(0.54, 0.6) + 0.03 * np.sin(x * dice.uniform(3, 6) + dice.uniform(0, 6))
    picture = _blend(_blend(sky, hills, _covered(ridge - y)), grass, _covered(edge - y))
    for _ in range(dice.integer(1, 3)):
        cx, cy = dice.uniform(0.1, 0.9), dice.uniform(0.07, 0.26)
        cloud = np.minimum(ellipse(x, y, cx, cy, 0.13, 0.035), ellipse(x, y, cx + 0.04, cy - 0.03, 0.07, 0.035))
        picture = _over(picture, cloud, (186, 190, 192))
    for _ in range(dice.integer(8, 16)):
        flower = circle(x, y, dice.uniform(0.03, 0.97), dice.uniform(0.64, 0.97), dice.uniform(0.006, 0.011))
        picture = _over(picture, flower, _muted(dice.uniform(0, 1), 172, 0.2))
    return picture


def _tiles(x: Grid, y: Grid, look: Look, dice: Dice) -> Picture:
    count, slant = dice.integer(4, 7), dice.pick((0.0, 0.0, 1.0))
    u = (x + slant * y) * count + dice.uniform(0, 1)
    v = (y - slant * x) * count + dice.uniform(0, 1)
    one, two = _muted(look.hue, 140, 0.15), _muted(look.hue + 0.12, 118, 0.18)
    odd = (np.floor(u) + np.floor(v)) % 2
    picture = _blend(_flat(x, one), _flat(x, two), odd)
    joint = np.minimum(np.abs(u - np.round(u)), np.abs(v - np.round(v))) / count - 0.005
    return _over(picture, joint, _muted(look.hue, 98, 0.1))


def _night(x: Grid, y: Grid, look: Look, dice: Dice) -> Picture:
    sky = _flat(x, _muted(0.60 + 0.12 * look.hue, 84, 0.28)) + (26.0 * (y - 0.4))[..., None]
    ground = _flat(x, _muted(0.55 + 0.2 * look.hue, 96, 0.16))
    edge = dice.uniform(0.62, 0.72) + 0.03 * np.sin(x * dice.uniform(4, 8) + dice.uniform(0, 6))
    moon_x, moon_y = dice.uniform(0.15, 0.85), dice.uniform(0.1, 0.2)
    crescent = np.maximum(circle(x, y, moon_x, moon_y, 0.07), -circle(x, y, moon_x + 0.035, moon_y - 0.015, 0.06))
    picture = _over(sky, crescent, (180, 178, 158))
    for _ in range(dice.integer(14, 26)):
        dot = circle(x, y, dice.uniform(0.02, 0.98), dice.uniform(0.03, 0.58), dice.uniform(0.004, 0.008))
        picture = _over(picture, dot, (160, 160, 164))
    return _blend(picture, ground, _covered(edge - y))


_SCENES: dict[str, Callable[[Grid, Grid, Look, Dice], Picture]] = {
    "room": _room,
    "meadow": _meadow,
    "tiles": _tiles,
    "night": _night,
}


def _muted(hue: float, value: float, saturation: float) -> Sequence[float]:
    """A colour of the given mean level; ``hue`` goes round once per 1."""
    red, green, blue = (np.cos(2.0 * np.pi * (hue - third / 3.0)) for third in range(3))
    return tuple(float(value * (1.0 + saturation * part)) for part in (red, green, blue))


def _flat(x: Grid, colour: Sequence[float]) -> Picture:
    return np.broadcast_to(np.array(colour, dtype=float), (*x.shape, 3))


def _covered(distance: Grid) -> Grid:
    return np.clip(0.5 - distance * distance.shape[0], 0.0, 1.0)


def _blend(under: Picture, over: Picture, coverage: Grid) -> Picture:
    return under + (over - under) * coverage[..., None]


def _over(picture: Picture, distance: Grid, colour: Sequence[float]) -> Picture:
    return _blend(picture, _flat(distance, colour), _covered(distance))


def _shrink(picture: Float[np.ndarray, "fine_height fine_width channel"]) -> Float[np.ndarray, "height width channel"]:
    size = picture.shape[0] // OVERSAMPLING
    blocks = picture.reshape(size, OVERSAMPLING, size, OVERSAMPLING, -1)
    return blocks.mean(axis=(1, 3))

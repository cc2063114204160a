"""Painting a shape onto a canvas: anti-aliased, at any place between pixels, any size, any angle.

A shape's signed distances are tabulated once; painting looks them up in the toy's bounding box only. Axis words: layer
(outline, body, shade, light, dark), height, width.
"""

from __future__ import annotations

from functools import lru_cache
from math import cos, sin

import numpy as np
from jaxtyping import Float, Float32

from longtake.data.toybox.shapes import SHAPES

TABLE_SIZE = 256
EXTENT = 1.25
"""The table covers this much of the toy's plane on each side of its middle."""
OUTLINE = 0.1
"""Width of the dark rim, in radii."""

PAINTS: dict[str, tuple[int, int, int]] = {
    "red": (222, 40, 40),
    "orange": (228, 128, 20),
    "yellow": (228, 212, 44),
    "green": (44, 158, 58),
    "cyan": (66, 208, 214),
    "blue": (44, 82, 216),
    "purple": (134, 54, 186),
    "pink": (228, 122, 184),
    "glove": (226, 206, 188),
}
INK = (30, 27, 34)
LIGHT = (228, 226, 220)

Canvas = Float32[np.ndarray, "height width 3"]


@lru_cache(maxsize=len(SHAPES))
def table_of(kind: str) -> Float32[np.ndarray, "layer entry"]:
    """Signed distances of the five layers on a square grid, row by row."""
    line = (np.arange(TABLE_SIZE) + 0.5) * (2.0 * EXTENT / TABLE_SIZE) - EXTENT
    y, x = np.meshgrid(line, line, indexing="ij")
    shape = SHAPES[kind](x, y)
    outline = shape.silhouette
    body = outline + OUTLINE
    details = [np.full_like(outline, 9.0) if d is None else np.maximum(d, body) for d in (shape.shade, shape.light)]
    dark = np.full_like(outline, 9.0) if shape.dark is None else np.maximum(shape.dark, outline)
    layers = np.stack([outline, body, *details, dark])
    layers[:, [0, -1], :] = 9.0
    layers[:, :, [0, -1]] = 9.0
    return np.ascontiguousarray(layers.reshape(5, -1), dtype=np.float32)


@lru_cache(maxsize=64)
def palette_of(colour: str) -> Float32[np.ndarray, "layer 3"]:
    body = np.array(PAINTS[colour], dtype=np.float32)
    return np.stack([np.array(INK), body, body * 0.66, np.array(LIGHT), np.array(INK)]).astype(np.float32)


def paint(
    canvas: Canvas,
    kind: str,
    colour: str,
    *,
    x: float,
    y: float,
    radius: float,
    angle: float = 0.0,
    alpha: float = 1.0,
) -> None:
    """Paint one toy in place; ``x``, ``y`` and ``radius`` in pixels, the middle of the first pixel at 0.5."""
    height, width = canvas.shape[:2]
    reach = radius * (EXTENT if angle % (2 * np.pi) == 0.0 else 1.2)
    left, right = max(0, int(x - reach)), min(width, int(x + reach) + 1)
    top, bottom = max(0, int(y - reach)), min(height, int(y + reach) + 1)
    if left >= right or top >= bottom:
        return
    weights = coverage(kind, np.arange(left, right) + 0.5 - x, np.arange(top, bottom) + 0.5 - y, radius, angle)
    weights, rest = _composed(weights, alpha)
    window = canvas[top:bottom, left:right]
    window *= rest.reshape(bottom - top, right - left, 1)
    window += (weights.T @ palette_of(colour)).reshape(window.shape)


def coverage(
    kind: str, dx: Float[np.ndarray, " width"], dy: Float[np.ndarray, " height"], radius: float, angle: float
) -> Float32[np.ndarray, "layer pixel"]:
    """How much of each pixel each layer covers, at offsets ``dx`` and ``dy`` (pixels) from the toy's middle."""
    per_pixel = TABLE_SIZE / (2.0 * EXTENT * radius)
    cosine, sine = cos(angle) * per_pixel, sin(angle) * per_pixel
    middle = np.float32(TABLE_SIZE / 2)
    dx, dy = dx.astype(np.float32), dy.astype(np.float32)
    column = (cosine * dx)[None, :] + (sine * dy + middle)[:, None]
    row = (-sine * dx)[None, :] + (cosine * dy + middle)[:, None]
    limit = TABLE_SIZE - 1
    index = np.clip(row, 0, limit).astype(np.int32) * TABLE_SIZE + np.clip(column, 0, limit).astype(np.int32)
    distance = table_of(kind).take(index.ravel(), axis=1)
    distance *= np.float32(-radius)
    distance += np.float32(0.5)
    return np.clip(distance, 0.0, 1.0, out=distance)


def _composed(
    layers: Float32[np.ndarray, "layer pixel"], alpha: float
) -> tuple[Float32[np.ndarray, "layer pixel"], Float32[np.ndarray, " pixel"]]:
    """Weight of each layer's paint once the layers above cover it, and what is left of the ground."""
    seen = np.ones_like(layers[0])
    for layer in layers[::-1]:
        layer *= seen
        seen -= layer
    if alpha != 1.0:
        layers *= np.float32(alpha)
        seen = 1.0 - (1.0 - seen) * np.float32(alpha)
    return layers, seen

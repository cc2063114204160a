"""From a decoded picture to upright 8-bit RGB of the size asked for.

Rotation comes from the display matrix and is applied once, here; sizes elsewhere are sizes after rotation. Pixels count
as they are stored: a sample aspect ratio other than 1:1 is kept, not corrected. swscale brings 10-bit, grey, palette
and alpha formats to 8-bit RGB (alpha is dropped, HDR is not tone-mapped, fields are not deinterlaced).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation, VideoReformatter
from jaxtyping import UInt8

QUARTER_TURNS_OF_TIE = 0.25
"""A matrix this far (in quarter turns) from a right angle is not applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orientation:
    """How stored pixels become upright: mirrored left to right first, then turned clockwise."""

    degrees: int = 0
    """Clockwise, one of 0, 90, 180, 270."""
    mirrored: bool = False
    is_exact: bool = True
    """False where the file asks for an angle that is no multiple of 90; the nearest is then used."""

    def turned(self, width: int, height: int) -> tuple[int, int]:
        """Width and height after the turn."""
        return (height, width) if self.degrees in (90, 270) else (width, height)


UPRIGHT = Orientation()


def orientation_of(frame: VideoFrame) -> Orientation:
    """Read the display matrix of a frame."""
    side_data = frame.side_data.get("DISPLAYMATRIX")
    if side_data is None:
        return UPRIGHT
    return orientation_of_matrix(struct.unpack("=9i", bytes(side_data)[:36]))


def orientation_of_matrix(matrix: tuple[int, ...]) -> Orientation:
    """Split a 3x3 display matrix (row vectors: x' = a x + c y, y' = b x + d y) into a mirror and a clockwise turn."""
    a, b, _, c, d = matrix[:5]
    mirrored = a * d - b * c < 0
    if mirrored:
        a, b = -a, -b
    if a == b == 0:
        return UPRIGHT
    angle = float(np.degrees(np.arctan2(b, a))) % 360
    quarter_turns = round(angle / 90)
    is_exact = abs(angle / 90 - quarter_turns) < 0.01
    return Orientation(degrees=quarter_turns % 4 * 90, mirrored=mirrored, is_exact=is_exact)


class PictureConverter:
    """Converts pictures of one stream; holds swscale's tables between calls, so one instance per thread."""

    def __init__(self, *, height: int | None = None, width: int | None = None) -> None:
        """Convert to this size, or keep the size of the first picture where none is given."""
        self._height = height
        self._width = width
        self._reformatter = VideoReformatter()

    def convert(self, frame: VideoFrame, orientation: Orientation) -> UInt8[np.ndarray, "height width 3"]:
        """Upright RGB, fitted into the size with its proportions kept and black bars in equal parts on both sides."""
        upright_width, upright_height = orientation.turned(frame.width, frame.height)
        if self._height is None or self._width is None:
            self._height, self._width = upright_height, upright_width
        inner_width, inner_height = fit(upright_width, upright_height, self._width, self._height)
        stored_width, stored_height = orientation.turned(inner_width, inner_height)
        rgb = upright(self._to_rgb(frame, stored_width, stored_height), orientation)
        if (inner_height, inner_width) == (self._height, self._width):
            return np.ascontiguousarray(rgb)
        canvas = np.zeros((self._height, self._width, 3), np.uint8)
        top, left = (self._height - inner_height) // 2, (self._width - inner_width) // 2
        canvas[top : top + inner_height, left : left + inner_width] = rgb
        return canvas

    def _to_rgb(self, frame: VideoFrame, width: int, height: int) -> UInt8[np.ndarray, "height width 3"]:
        shrinks = width < frame.width or height < frame.height
        rgb = self._reformatter.reformat(
            frame,
            width=width,
            height=height,
            format="rgb24",
            interpolation=Interpolation.AREA if shrinks else Interpolation.BICUBIC,
            threads=1,
        )
        plane = rgb.planes[0]
        rows = np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size)
        return rows[:, : width * 3].reshape(height, width, 3)


def upright(rgb: UInt8[np.ndarray, "h w 3"], orientation: Orientation) -> UInt8[np.ndarray, "h2 w2 3"]:
    """Mirror, then turn."""
    if orientation.mirrored:
        rgb = rgb[:, ::-1]
    return np.rot90(rgb, k=-orientation.degrees // 90) if orientation.degrees else rgb


def fit(width: int, height: int, box_width: int, box_height: int) -> tuple[int, int]:
    """Largest width and height of the same proportions inside a box; at least one pixel each."""
    scale = min(box_width / width, box_height / height)
    return max(1, min(box_width, round(width * scale))), max(1, min(box_height, round(height * scale)))

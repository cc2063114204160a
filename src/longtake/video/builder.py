"""Collects sampled pictures into segments."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import UInt8

from longtake.types import Segment, SegmentSpec
from longtake.video.picture import PictureConverter
from longtake.video.reader import TimedPicture


class SegmentBuilder:
    """One segment in the making. Its number is set by whoever hands it out."""

    def __init__(self, spec: SegmentSpec) -> None:
        """Nothing collected yet."""
        self._spec = spec
        self._converter = PictureConverter(height=spec.height, width=spec.width)
        self._held: TimedPicture | None = None
        self._held_rgb: UInt8[np.ndarray, "height width 3"] | None = None
        self._pixels = self._empty()
        self._pts: list[float] = []
        self._first_tick = self._next_tick = 0
        self._stride = 1

    def _empty(self) -> UInt8[np.ndarray, "time 3 height width"]:
        spec = self._spec
        return np.empty((spec.num_frames, 3, spec.height, spec.width), np.uint8)

    @property
    def is_empty(self) -> bool:
        """The next picture begins a segment."""
        return not self._pts

    def wants(self, tick: int) -> bool:
        """This grid point is not passed over by the stride."""
        return tick >= self._next_tick

    def add(self, tick: int, picture: TimedPicture, stride: int = 1) -> Iterator[Segment]:
        """Take the picture of a grid point; yields the segment if that completes it.

        ``stride`` counts from the first picture of a segment on: grid points from one taken to the next.
        """
        if self.is_empty:
            self._first_tick, self._stride = tick, stride
        if picture is not self._held or self._held_rgb is None:
            self._held, self._held_rgb = picture, self._converter.convert(picture.frame, picture.orientation)
        self._append(self._held_rgb, picture.pts_seconds)
        self._next_tick = tick + self._stride
        if len(self._pts) == self._spec.num_frames:
            yield self._take()

    def _append(self, rgb: UInt8[np.ndarray, "height width 3"], pts_seconds: float) -> None:
        self._pixels[len(self._pts)] = rgb.transpose(2, 0, 1)
        self._pts.append(pts_seconds)

    def fill(self) -> Iterator[Segment]:
        """Complete the segment with its last picture, before an outage that is longer than a segment."""
        if self.is_empty or self._held_rgb is None:
            return
        while len(self._pts) < self._spec.num_frames:
            self._append(self._held_rgb, self._pts[-1])
            self._next_tick += self._stride
        yield self._take()

    def flush(self) -> Iterator[Segment]:
        """What is left at the end, shorter than a whole segment."""
        if not self.is_empty:
            yield self._take()

    def _take(self) -> Segment:
        whole = len(self._pts) == self._spec.num_frames
        segment = Segment(
            pixels=torch.from_numpy(self._pixels if whole else self._pixels[: len(self._pts)].copy()),
            pts_seconds=tuple(self._pts),
            index=0,
            start_seconds=self._first_tick / self._spec.fps,
            end_seconds=self._next_tick / self._spec.fps,
        )
        self._pixels, self._pts = self._empty(), []
        return segment

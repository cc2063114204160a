"""Any source cut into segments: the frames a model takes in at once, on a time grid, at the model's size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Literal, TypeAlias

from longtake.errors import ConfigError
from longtake.types import Segment, SegmentSpec, SourceReport
from longtake.video.address import Address, parse_address
from longtake.video.background import Background
from longtake.video.builder import SegmentBuilder
from longtake.video.lag import LagClock, StrideControl
from longtake.video.options import OnDamage, ReadOptions
from longtake.video.reader import TimedPicture
from longtake.video.sampling import first_tick, sample_ticks
from longtake.video.source import AnyReader, grace_of, new_reader

OnLag: TypeAlias = Literal["wait", "drop", "stride"]

SEGMENTS_AHEAD = 2
"""Segments that wait for the consumer."""


class SegmentStream:
    """An opened source as segments. Iterate it once; close it, or use it as a context manager.

    Pictures are fitted into the model's size with their proportions kept and black bars in equal parts (see
    ``picture``); only those on the grid are converted, while decoding goes on in a thread.
    """

    def __init__(
        self,
        address: Address,
        spec: SegmentSpec,
        options: ReadOptions,
        *,
        start_seconds: float = 0.0,
        on_lag: OnLag = "wait",
        first_index: int = 0,
    ) -> None:
        """Open; see ``segments``."""
        if on_lag not in ("wait", "drop", "stride"):
            raise ConfigError(f"on_lag is {on_lag!r}, expected wait, drop or stride")
        if not start_seconds >= 0:
            raise ConfigError(f"start_seconds is {start_seconds}, expected 0 or more")
        self._address = address
        self._spec = spec
        self._options = options
        self._start_seconds = start_seconds
        self._on_lag: OnLag = on_lag if address.is_live else "wait"
        self._next_index = first_index
        self._reader: AnyReader | None = None
        self._clock = LagClock()
        self._num_dropped = 0
        self._line = Background[Segment](
            self._read,
            name=address.text,
            depth=SEGMENTS_AHEAD,
            timeout_seconds=options.timeout_seconds,
            grace_seconds=grace_of(address, options),
            on_drop=self._count_dropped if self._on_lag == "drop" else None,
        )
        try:
            self._line.wait_ready()
        except BaseException:
            self.close()
            raise

    def _read(self, worker: Background[Segment]) -> Iterator[Segment]:
        reader = self._reader = new_reader(self._address, self._options, sleep=worker.sleep)
        try:
            worker.ready()
            builder = SegmentBuilder(self._spec)
            control = StrideControl(self._spec.seconds)
            for tick, picture in self._ticks(reader, worker):
                if picture is None:
                    yield from builder.fill()
                    continue
                if not builder.wants(tick):
                    self._num_dropped += 1
                    continue
                if builder.is_empty and self._on_lag == "stride":
                    control.adapt(self._clock.lag_seconds)
                yield from builder.add(tick, picture, control.stride)
            yield from builder.flush()
        finally:
            reader.close()

    def _ticks(self, reader: AnyReader, worker: Background[Segment]) -> Iterator[tuple[int, TimedPicture | None]]:
        """Grid points with their picture; a point without one marks a long outage, over which nothing is held."""
        fps, outage = self._spec.fps, Outage(self._watched(reader, worker), self._spec.seconds)
        tick = first_tick(self._start_seconds, fps)
        while not outage.is_end:
            for tick, picture in sample_ticks(outage.until_next(), fps, tick):  # noqa: B020
                yield tick, picture
            if outage.resumes_seconds is not None:
                tick = first_tick(outage.resumes_seconds, fps)
                yield tick, None

    def _watched(self, reader: AnyReader, worker: Background[Segment]) -> Iterator[TimedPicture]:
        for picture in reader.pictures(self._start_seconds):
            worker.beat()
            if worker.is_stopped:
                return
            if self._address.is_live:
                self._clock.arrived(picture.pts_seconds)
            yield picture

    def _count_dropped(self, segment: Segment) -> None:
        self._num_dropped += len(segment.pts_seconds)

    @property
    def is_live(self) -> bool:
        """Time goes on by itself: a camera or a stream."""
        return self._address.is_live

    @property
    def total_seconds(self) -> float | None:
        """Declared length, advice only."""
        return self._reader.total_seconds if self._reader is not None else None

    @property
    def lag_seconds(self) -> float:
        """How far the consumer is behind a live source; 0 for others."""
        return self._clock.lag_seconds if self.is_live else 0.0

    @property
    def dropped_frames(self) -> int:
        """Grid points left out because of lag."""
        return self._num_dropped

    @property
    def report(self) -> SourceReport:
        """What the reader has seen so far; final once iteration has ended."""
        assert self._reader is not None
        return self._reader.report()

    def __iter__(self) -> Iterator[Segment]:
        return self

    def __next__(self) -> Segment:
        segment = replace(next(self._line), index=self._next_index, total_seconds=self.total_seconds)
        self._next_index += 1
        self._clock.taken(segment.end_seconds)
        return segment

    def close(self) -> None:
        """Stop reading and free the decoder."""
        self._line.close()

    def __enter__(self) -> SegmentStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Outage:
    """Splits pictures where a live source was away for long."""

    def __init__(self, pictures: Iterator[TimedPicture], min_seconds: float) -> None:
        """Outages of at least ``min_seconds`` split; over shorter ones the last picture is held as over any gap."""
        self._pictures = pictures
        self._min_seconds = min_seconds
        self._head: TimedPicture | None = None
        self.is_end = False

    @property
    def resumes_seconds(self) -> float | None:
        """Time of the picture after the outage just met; None at the end."""
        return None if self._head is None else self._head.pts_seconds

    def until_next(self) -> Iterator[TimedPicture]:
        """Pictures up to the next long outage."""
        if self._head is not None:
            yield self._head
            self._head = None
        for picture in self._pictures:
            if picture.outage_seconds >= self._min_seconds:
                self._head = picture
                return
            yield picture
        self.is_end = True


def segments(
    source: str | os.PathLike[str],
    spec: SegmentSpec,
    *,
    start_seconds: float = 0.0,
    on_lag: OnLag = "wait",
    first_index: int = 0,
    on_damage: OnDamage = "skip",
    timeout_seconds: float = 10.0,
    image_fps: float = 25.0,
    live: bool | None = None,
    max_outage_seconds: float = 60.0,
) -> SegmentStream:
    """Open a source and cut it into the segments that a model wants.

    Frame k of the stream is the picture at k / ``spec.fps`` seconds from the first frame; see ``sampling.sample``.
    Every segment has ``spec.num_frames`` frames but the last, which may be shorter.

    Args:
        source: As for ``open_source``.
        spec: The model's ``segment_spec``.
        start_seconds: Resume at this grid time; the frames are those of an unbroken run.
        on_lag: What to do where the consumer is slower than a live source: "wait" lets it fall behind, "drop" leaves
            out whole segments (the oldest that wait), "stride" takes every second, fourth or eighth grid point.
        first_index: Number of the first segment.
        on_damage: See ``ReadOptions``, as for the rest.
        timeout_seconds: Longest wait without a sign of life from the source.
        image_fps: Rate of a folder of images.
        live: Treat as live; by default cameras and streams are, files and HTTP are not.
        max_outage_seconds: How long a live source may be away.

    Raises:
        SourceError: It cannot be opened, or not in time. Iteration raises it too.
    """
    options = ReadOptions(
        on_damage=on_damage,
        timeout_seconds=timeout_seconds,
        image_fps=image_fps,
        live=live,
        max_outage_seconds=max_outage_seconds,
    )
    return SegmentStream(
        parse_address(source, live=live),
        spec,
        options,
        start_seconds=start_seconds,
        on_lag=on_lag,
        first_index=first_index,
    )

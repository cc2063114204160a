"""Any source as an iterator of full-size frames with their time."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TypeAlias

from longtake.types import Frame, SourceReport
from longtake.video.address import Address, parse_address
from longtake.video.background import Background
from longtake.video.live import LiveReader
from longtake.video.options import OnDamage, ReadOptions
from longtake.video.picture import PictureConverter
from longtake.video.reader import Reader

FRAMES_AHEAD = 2
"""Frames that wait for the consumer; one of 4K takes 25 MB."""

NETWORK_GRACE_SECONDS = 2.0

AnyReader: TypeAlias = Reader | LiveReader


def new_reader(address: Address, options: ReadOptions, *, sleep: Callable[[float], bool]) -> AnyReader:
    """The reader for this kind of source, opened."""
    return LiveReader(address, options, sleep=sleep) if address.is_live else Reader(address, options)


def grace_of(address: Address, options: ReadOptions) -> float:
    """Seconds by which network reads, which end by themselves at the timeout, come before the consumer's deadline.

    Connecting again takes two waits: for the connection, and for what is in it.
    """
    if address.text == "-":
        return math.inf  # whoever writes to standard input may pause; it ends when it is closed
    if not address.is_network:
        return 0.0
    return NETWORK_GRACE_SECONDS + (options.timeout_seconds if address.is_live else 0.0)


class Source:
    """An opened source. Iterate it once; close it, or use it as a context manager.

    A thread decodes ahead by ``FRAMES_AHEAD`` frames. Later frames of another size are fitted into the first one's.
    """

    def __init__(self, address: Address, options: ReadOptions, *, start_seconds: float = 0.0) -> None:
        """Open; see ``open_source``."""
        self._start_seconds = start_seconds
        self._address = address
        self._options = options
        self._reader: AnyReader | None = None
        self._frames = Background[Frame](
            self._read,
            name=address.text,
            depth=FRAMES_AHEAD,
            timeout_seconds=options.timeout_seconds,
            grace_seconds=grace_of(address, options),
        )
        try:
            self._frames.wait_ready()
        except BaseException:
            self.close()
            raise

    def _read(self, worker: Background[Frame]) -> Iterator[Frame]:
        reader = self._reader = new_reader(self._address, self._options, sleep=worker.sleep)
        try:
            worker.ready()
            converter = PictureConverter()
            for picture in reader.pictures(self._start_seconds):
                worker.beat()
                if worker.is_stopped:
                    return
                rgb = converter.convert(picture.frame, picture.orientation)
                yield Frame(rgb=rgb, pts_seconds=picture.pts_seconds)
        finally:
            reader.close()

    @property
    def is_live(self) -> bool:
        """Time goes on by itself: a camera or a stream."""
        return self._address.is_live

    @property
    def total_seconds(self) -> float | None:
        """Declared length, advice only."""
        return self._reader.total_seconds if self._reader is not None else None

    @property
    def report(self) -> SourceReport:
        """What the reader has seen so far; final once iteration has ended."""
        assert self._reader is not None
        return self._reader.report()

    def __iter__(self) -> Iterator[Frame]:
        return self._frames

    def close(self) -> None:
        """Stop reading and free the decoder."""
        self._frames.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_source(
    source: str | os.PathLike[str],
    *,
    on_damage: OnDamage = "skip",
    timeout_seconds: float = 10.0,
    image_fps: float = 25.0,
    live: bool | None = None,
    max_outage_seconds: float = 60.0,
    start_seconds: float = 0.0,
) -> Source:
    """Open a file, URL, device, folder of images or ``-`` (standard input) for reading frames.

    Args:
        source: A path, ``http(s)://``, ``rtsp://`` (or udp, tcp, rtmp, srt), ``webcam:N``, a folder, or ``-``.
        on_damage: See ``ReadOptions``, as for the next four.
        timeout_seconds: Longest wait without a sign of life from the source.
        image_fps: Rate of a folder of images.
        live: Treat as live; by default cameras and streams are, files and HTTP are not.
        max_outage_seconds: How long a live source may be away.
        start_seconds: Leave out what comes before the frame shown at this time.

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
    return Source(parse_address(source, live=live), options, start_seconds=start_seconds)

"""Read a source to its end and say what is there."""

from __future__ import annotations

import os
from collections.abc import Iterator

from longtake.types import SourceReport
from longtake.video.address import parse_address
from longtake.video.background import Background
from longtake.video.options import ReadOptions
from longtake.video.source import grace_of, new_reader

LIVE_SECONDS = 10.0
"""How much of a live source is looked at."""


def probe(
    source: str | os.PathLike[str],
    *,
    timeout_seconds: float = 10.0,
    image_fps: float = 25.0,
    max_seconds: float | None = None,
) -> SourceReport:
    """Decode everything, convert nothing, and report.

    Args:
        source: As for ``open_source``.
        timeout_seconds: Longest wait without a sign of life from the source.
        image_fps: Rate of a folder of images.
        max_seconds: Stop after so much; by default only live sources are cut, at ``LIVE_SECONDS``.

    Raises:
        SourceError: It cannot be opened, holds no frame that decodes, or stops answering.
    """
    address = parse_address(source)
    options = ReadOptions(timeout_seconds=timeout_seconds, image_fps=image_fps, max_outage_seconds=0.0)
    limit = max_seconds if max_seconds is not None else LIVE_SECONDS if address.is_live else float("inf")

    def read(worker: Background[SourceReport]) -> Iterator[SourceReport]:
        reader = new_reader(address, options, sleep=worker.sleep)
        try:
            worker.ready()
            for picture in reader.pictures():
                worker.beat()
                if worker.is_stopped or picture.pts_seconds >= limit:
                    break
            yield reader.report()
        finally:
            reader.close()

    with Background(
        read, name=address.text, depth=1, timeout_seconds=timeout_seconds, grace_seconds=grace_of(address, options)
    ) as line:
        return next(line)

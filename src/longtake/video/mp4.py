"""The few facts that FFmpeg does not tell about an MP4 file, read from its boxes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

FIRST_BOXES = frozenset(
    {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"styp", b"moof", b"pnot", b"sidx", b"uuid"}
)
MAX_INDEX_BYTES = 64 << 20
MAX_BOXES = 10_000
"""Enough to meet a second movie; a long fragmented recording has many more."""
DURATION_BOXES = re.compile(rb"(mvhd|mdhd|mehd)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mp4Facts:
    """Facts from the top-level boxes and the index."""

    has_index: bool
    is_encrypted: bool
    num_movies: int
    """Movies one after another in the file; players read only the first."""
    fragment_seconds: float | None
    """Longest duration declared by the index of a fragmented file, None for other files.

    An ordinary index lists all samples, and FFmpeg rightly believes those; a fragmented one has only this number.
    """


def read_mp4_facts(path: Path) -> Mp4Facts | None:
    """Look at the boxes of a file; None where it is no MP4."""
    with path.open("rb") as file:
        boxes = list(islice(top_boxes(file), MAX_BOXES))
        if not boxes:
            return None
        index = b""
        for kind, start, size in boxes:
            if kind == b"moov":
                file.seek(start + 8)
                index = file.read(min(size, MAX_INDEX_BYTES))
                break
    kinds = [kind for kind, _, _ in boxes]
    return Mp4Facts(
        has_index=b"moov" in kinds,
        is_encrypted=b"encv" in index or b"pssh" in index or (b"sinf" in index and b"tenc" in index),
        num_movies=kinds.count(b"moov"),
        fragment_seconds=_longest_duration(index) if b"mvex" in index else None,
    )


def top_boxes(file: BinaryIO) -> Iterator[tuple[bytes, int, int]]:
    """Top-level boxes as (kind, start, size); nothing where the file does not begin with one."""
    end = file.seek(0, os.SEEK_END)
    start = 0
    while start + 8 <= end:
        file.seek(start)
        header = file.read(16)
        size, kind = int.from_bytes(header[:4], "big"), header[4:8]
        if start == 0 and kind not in FIRST_BOXES:
            return
        if size == 1:
            size = int.from_bytes(header[8:16], "big")
        elif size == 0:
            size = end - start
        if size < 8:
            return
        yield kind, start, size
        start += size


def _longest_duration(index: bytes) -> float | None:
    movie_scale, longest = 0, 0.0
    for match in DURATION_BOXES.finditer(index):
        body = index[match.end() : match.end() + 32]
        if len(body) < 32:
            continue
        is_wide = body[0] == 1
        if match[1] == b"mehd":
            scale, duration = movie_scale, int.from_bytes(body[4 : 12 if is_wide else 8], "big")
        else:
            at = 20 if is_wide else 12
            scale = int.from_bytes(body[at : at + 4], "big")
            duration = int.from_bytes(body[at + 4 : at + (12 if is_wide else 8)], "big")
        if match[1] == b"mvhd":
            movie_scale = scale
        if scale:
            longest = max(longest, duration / scale)
    return longest or None

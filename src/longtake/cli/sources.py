"""What a person typed as sources, and the name each has in the output."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

_SUFFIXES = ".3gp .asf .avi .flv .m2ts .m4v .mkv .mov .mp4 .mpeg .mpg .mts .mxf .ogv .ts .vob .webm .wmv .y4m"
JOURNAL_SUFFIX = ".events.jsonl"
"""Of the file beside a saved state that holds the events said so far."""
VIDEO_SUFFIXES = frozenset(_SUFFIXES.split(" "))
"""Files that make a folder a folder of videos; without one it is a folder of images, which is one video."""


def expand(sources: Iterable[str]) -> dict[str, str]:
    """Name in the output -> source, in the order given; a folder of videos stands for its videos."""
    from longtake.position import without_credentials  # here, since it loads torch

    flat = [one for source in sources for one in _videos_in(source)]
    short = [short_name(source) for source in flat]
    named: dict[str, str] = {}
    for source, name in zip(flat, short, strict=True):
        name = name if short.count(name) == 1 else without_credentials(source)
        number = 2
        while name in named:
            name, number = f"{without_credentials(source)}-{number}", number + 1
        named[name] = source
    return named


def short_name(source: str) -> str:
    """The last part of a path or an address, without suffix; other sources as they are, but for a password."""
    from longtake.position import without_credentials

    if source == "-":
        return "stdin"
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", source):
        address = urlsplit(source)
        stem = Path(unquote(address.path)).stem
        return stem if stem and address.scheme in ("http", "https", "file") else without_credentials(source)
    path = Path(source)
    if path.suffix.lower() in VIDEO_SUFFIXES or path.is_file():
        return path.stem
    return path.resolve().name if path.is_dir() else source


def _videos_in(source: str) -> list[str]:
    folder = Path(source)
    if source == "-" or not folder.is_dir():
        return [source]
    videos = sorted(path for path in folder.iterdir() if path.suffix.lower() in VIDEO_SUFFIXES and path.is_file())
    return [str(path) for path in videos if not path.name.startswith(".")] or [source]

"""The files of a data set's videos, wherever below a folder they lie and whatever their ending."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from longtake.data.datasets.samples import Video
from longtake.errors import ConfigError

ENDINGS = frozenset({".mp4", ".mkv", ".webm", ".avi", ".mov", ".m4v", ".mpg", ".mpeg", ".flv", ".ts", ".3gp", ".wmv"})
"""In any case."""
NAMED = 3
"""So many missing videos are named, the rest is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """The part of a file that is a data set's video."""

    path: Path
    start_seconds: float = 0.0
    end_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Which videos are there and which are not, in the order of the annotations."""

    clips: dict[str, Clip]
    missing: tuple[str, ...]
    wanted: int
    """How many were looked for."""
    unreadable: tuple[str, ...] = ()
    """Why those that are there but cannot be opened are left out; filled in by whoever opens them."""

    def said(self) -> str:
        """The missing ones counted and some of them named; empty if there are none."""
        if not self.missing:
            return ""
        some = ", ".join(self.missing[:NAMED]) + (", ..." if len(self.missing) > NAMED else "")
        return f"{len(self.missing)} of {self.wanted} videos are missing: {some}"

    @property
    def notes(self) -> tuple[str, ...]:
        """A line for what is missing and one for what cannot be read, as far as there is anything."""
        broken = (
            f"{len(self.unreadable)} videos cannot be read and are left out; the first: {self.unreadable[0]}"
            if self.unreadable
            else ""
        )
        return tuple(line for line in (self.said(), broken) if line)


def find_videos(videos: Iterable[Video], folder: str | Path) -> Found:
    """Look below a folder for the file of each video. Raises ConfigError if it is no folder."""
    top = Path(folder).expanduser()
    if not top.is_dir():
        raise ConfigError(f"{folder} is no folder; expected one with videos somewhere in it")
    files = _files(top)
    clips: dict[str, Clip] = {}
    missing: list[str] = []
    for video in videos:
        for place in video.places:
            if path := _at(place.path, files):
                clips[video.name] = Clip(path=path, start_seconds=place.start_seconds, end_seconds=place.end_seconds)
                break
        else:
            missing.append(video.name)
    return Found(clips=clips, missing=tuple(missing), wanted=len(clips) + len(missing))


def _files(top: Path) -> dict[str, list[Path]]:
    """Video files by their name without its ending; the least deep first. Links are followed, each folder once."""
    found: dict[str, list[Path]] = defaultdict(list)
    seen: set[str] = set()
    for place, folders, names in os.walk(os.path.abspath(top), followlinks=True):  # noqa: PTH100 '-' and '..' as they are
        real = os.path.realpath(place)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if real not in seen else []
        if real in seen:
            continue
        seen.add(real)
        for name in sorted(names):
            path = Path(place) / name
            if path.suffix.lower() in ENDINGS and path.is_file() and path.stat().st_size:
                found[path.stem].append(path)
    for paths in found.values():
        paths.sort(key=lambda path: len(path.parts))
    return found


def _at(wanted: str, files: dict[str, list[Path]]) -> Path | None:
    parts = list(PurePosixPath(wanted).parts)
    if not parts:
        return None
    ending = PurePosixPath(parts[-1]).suffix
    if ending.lower() in ENDINGS:
        parts[-1] = parts[-1].removesuffix(ending)
    fitting = (path for path in files.get(parts[-1], ()) if [*path.parts[:-1], path.stem][-len(parts) :] == parts)
    return next(fitting, None)

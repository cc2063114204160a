"""A folder of numbered pictures as a video: one frame per file, in order of number.

Files that are no pictures (``Thumbs.db``, ``.DS_Store``, notes) are passed over. Missing numbers and damaged files
leave a gap in time, so that the rest keeps its place, and are named in the report.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
from av.error import FFmpegError
from av.video.frame import VideoFrame

from longtake.errors import ConfigError, SourceError
from longtake.video.address import Address
from longtake.video.container import Picture
from longtake.video.tally import Declared, Tally
from longtake.video.verdict import name_some

PICTURE_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".jp2", ".tga"})
MAX_HOLE_RATE = 0.5
"""With a larger share of the numbers missing they are names, not times."""
TAIL_BYTES = 4096


class FolderContainer:
    """The pictures of a folder, behind the same face as an opened container."""

    format_name = "folder"

    def __init__(self, address: Address, *, fps: float) -> None:
        """List the folder.

        Args:
            address: The folder.
            fps: Pictures per second, since files carry no time.

        Raises:
            SourceError: It holds no picture.
        """
        if not fps > 0:
            raise ConfigError(f"frame rate for a folder of images is {fps}, expected a number above 0")
        self._paths = list_pictures(Path(address.target), address.text)
        self._slots, missing = place(self._paths)
        tick = 1 / Fraction(fps).limit_denominator(1_000_000)
        self.declared = Declared(fps=fps, tick=tick, frames=len(self._paths))
        self.tally = Tally()
        if missing:
            self.tally.notes.append(f"pictures missing: {name_some([str(number) for number in missing])}")

    def pictures(self) -> Iterator[Picture]:
        """All pictures that decode, in order of number."""
        for path, slot in zip(self._paths, self._slots, strict=True):
            self.tally.packets += 1
            frame = read_picture(path)
            if frame is None:
                self.tally.bad_packets += 1
                self.tally.lost_pts.append(slot)
                self.tally.damaged_names.append(path.name)
                continue
            self.tally.pictures += 1
            yield Picture(frame=frame, pts=slot)

    def close(self) -> None:
        """Nothing is held open."""


def list_pictures(folder: Path, name: str) -> list[Path]:
    """Picture files in order of the numbers in their names."""
    try:
        paths = [path for path in folder.iterdir() if path.suffix.lower() in PICTURE_ENDINGS and path.is_file()]
    except PermissionError as error:
        raise SourceError(f"{name}: no permission to read this folder; change its mode or owner") from error
    paths = [path for path in paths if not path.name.startswith(".")]
    if not paths:
        raise SourceError(f"{name}: is a directory without pictures; give a video file or a folder of jpg or png files")
    return sorted(paths, key=natural_key)


def natural_key(path: Path) -> list[tuple[int, int, str]]:
    """Sort key under which frame_2 comes before frame_10."""
    parts = re.split(r"(\d+)", path.name)
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]


def place(paths: list[Path]) -> tuple[list[int], list[int]]:
    """Slot on the time grid for each picture, and the numbers missing between them."""
    numbers = [int(found[-1]) for path in paths if (found := re.findall(r"\d+", path.stem))]
    steps = [after - before for before, after in pairwise(numbers)]
    in_order = list(range(len(paths)))
    if len(numbers) < len(paths) or not steps or min(steps) < 1:
        return in_order, []
    step = Counter(steps).most_common(1)[0][0]
    if any(gap % step for gap in steps):
        return in_order, []
    slots = [(number - numbers[0]) // step for number in numbers]
    num_missing = slots[-1] + 1 - len(slots)
    if num_missing > MAX_HOLE_RATE * len(slots):
        return in_order, []
    present = set(numbers)
    return slots, [number for number in range(numbers[0], numbers[-1], step) if number not in present]


def read_picture(path: Path) -> VideoFrame | None:
    """Decode one picture; None where it is damaged, cut off included."""
    try:
        if not is_whole(path):
            return None
        # Without pattern_type a "%" in the name would be taken for a counter.
        with av.open(f"file:{path}", "r", options={"pattern_type": "none"}, metadata_errors="replace") as container:
            return next((frame for frame in container.decode(video=0) if not frame.is_corrupt), None)
    except (FFmpegError, OSError, IndexError):
        return None


def is_whole(path: Path) -> bool:
    """The end mark is there, for kinds whose decoder fills a missing part with grey and says nothing."""
    end_mark = {".jpg": b"\xff\xd9", ".jpeg": b"\xff\xd9", ".png": b"IEND"}.get(path.suffix.lower())
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL_BYTES))
        tail = file.read()
    return size > 0 and (end_mark is None or end_mark in tail)

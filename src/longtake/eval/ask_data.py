"""Data sets of questions: videos beside what is asked when they have ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtake.config import from_dict
from longtake.errors import ConfigError, SourceError
from longtake.eval.annotations import read_json
from longtake.eval.caption_data import RECALL_FILE, VIDEOS_FOLDER, WORLD_FILE, seed_of_world

ASK_DATASETS = ("toybox",)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """One question as the data set has it."""

    type: str
    """``relational``, ``diffuse`` or ``local`` in Toybox."""
    question: str
    answer: str
    options: tuple[str, ...] = ()
    form: str = ""
    asked_seconds: float = 0.0
    ends: tuple[float, float] = (0.0, 0.0)
    """What the answer rests on lies between these seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskData:
    """Videos and their questions, in the order of the annotations."""

    name: str
    videos: Mapping[str, Path]
    questions: Mapping[str, tuple[AskedQuestion, ...]]
    seed: int | None


def open_recall(folder: str | Path, *, limit: int | None = None) -> AskData:
    """Open the questions of a folder as ``longtake toybox make`` writes it.

    Raises:
        ConfigError: It is no such folder, or a video is missing.
        SourceError: Its questions cannot be read.
    """
    folder = Path(folder)
    path = folder / RECALL_FILE
    if not path.is_file():
        raise ConfigError(
            f"{folder} has no {RECALL_FILE}; expected a folder made by 'longtake toybox make' of this version, "
            "or leave --data out and give --seed to render videos"
        )
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit}, expected at least 1 video")
    raw: Any = read_json(path)
    try:
        found = {
            str(video): tuple(from_dict(AskedQuestion, entry, where=f"{path}, {video}") for entry in entries)
            for video, entries in list(raw.items())[:limit]
        }
    except (AttributeError, TypeError, ConfigError) as error:
        raise SourceError(f"{path} holds no questions by video ({error}); make the data anew") from error
    videos = {video: folder / VIDEOS_FOLDER / f"{video}.mp4" for video in found}
    if missing := [place for place in videos.values() if not place.is_file()]:
        raise ConfigError(f"{missing[0]} is missing, but {path} names it; make the data anew")
    return AskData(name="toybox", videos=videos, questions=found, seed=seed_of_world(folder / WORLD_FILE))

"""Data sets of labelled videos: Toybox's routines, or any folder with a folder of videos for each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtake.data.datasets import DataSet
from longtake.data.datasets.samples import Labels
from longtake.errors import ConfigError, SourceError
from longtake.eval.annotations import read_json
from longtake.eval.caption_data import LABELS_FILE, VIDEOS_FOLDER, WORLD_FILE, seed_of_world
from longtake.eval.public_videos import videos_of

CLASSIFY_DATASETS = ("toybox", "folders")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledData:
    """Videos, each with its class, in the order of the annotations."""

    name: str
    classes: tuple[str, ...]
    videos: Mapping[str, Path]
    labels: Mapping[str, str]
    """By video."""
    seed: int | None
    notes: tuple[str, ...] = ()
    """What is not run, and why."""


def open_labelled(dataset: str, folder: str | Path, *, limit: int | None = None) -> LabelledData:
    """Open a folder of one of ``CLASSIFY_DATASETS``; ``limit`` takes the first so many videos.

    Raises:
        ConfigError: It is no such folder, or a video is missing.
        SourceError: Its annotations cannot be read.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit}, expected at least 1 video")
    folder = Path(folder)
    return _open_folders(folder, limit) if dataset == "folders" else _open_routines(folder, limit)


def open_public_labels(
    dataset: DataSet,
    folder: str | Path,
    *,
    split: str | None = None,
    videos: str | Path | None = None,
    limit: int | None = None,
) -> LabelledData:
    """Open a public data set; arguments and errors as ``open_questions`` has them."""
    samples = dataset.open(folder, split)
    assert isinstance(samples, Labels)
    found = videos_of(dataset, samples.videos, videos or folder, limit=limit)
    return LabelledData(
        name=dataset.name,
        classes=samples.classes,
        videos={video: clip.path for video, clip in found.clips.items()},
        labels={video: samples.labels[video] for video in found.clips},
        seed=None,
        notes=(*samples.notes, *found.notes),
    )


def _open_routines(folder: Path, limit: int | None) -> LabelledData:
    """As ``longtake toybox make --split routines`` writes it."""
    path = folder / LABELS_FILE
    if not path.is_file():
        raise ConfigError(
            f"{folder} has no {LABELS_FILE}; expected a folder made by 'longtake toybox make --split routines', "
            "or leave --data out and give --seed to render videos"
        )
    raw: Any = read_json(path)
    try:
        classes = tuple(str(name) for name in raw["classes"])
        labels = {str(video): str(label) for video, label in list(raw["videos"].items())[:limit]}
    except (KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"{path} holds no classes and labels by video ({error!r}); make the data anew") from error
    if odd := [label for label in labels.values() if label not in classes]:
        raise SourceError(f"{path}: label {odd[0]!r} is none of its classes; make the data anew")
    videos = {video: folder / VIDEOS_FOLDER / f"{video}.mp4" for video in labels}
    if missing := [place for place in videos.values() if not place.is_file()]:
        raise ConfigError(f"{missing[0]} is missing, but {path} names it; make the data anew")
    seed = seed_of_world(folder / WORLD_FILE)
    return LabelledData(name="toybox", classes=classes, videos=videos, labels=labels, seed=seed)


def _open_folders(folder: Path, limit: int | None) -> LabelledData:
    """A folder for each class, as Kinetics and many others are kept; its name is the label."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; expected one with a folder of videos for each class")
    inner = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    found = [
        (f"{place.name}/{path.stem}", path, place.name)
        for place in inner
        for path in sorted(place.iterdir())
        if path.is_file() and not path.name.startswith(".")
    ]
    if len(inner) < 2 or not found:
        raise ConfigError(f"{folder} holds {len(inner)} folders with {len(found)} files; expected one for each class")
    chosen = found[:limit]
    return LabelledData(
        name="folders",
        classes=tuple(place.name for place in inner),
        videos={video: path for video, path, _ in chosen},
        labels={video: label for video, _, label in chosen},
        seed=None,
    )

"""Data sets to caption: videos beside the annotations that say what happens in them."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from longtake.data.datasets import DataSet
from longtake.data.datasets.samples import Captions, TimedText
from longtake.errors import ConfigError
from longtake.eval.annotations import Stories, Story, TimedSentence, read_json, references_from
from longtake.eval.public_videos import videos_of

CAPTION_DATASETS = ("toybox",)
CAPTIONS_FILE, RECALL_FILE, WORLD_FILE, VIDEOS_FOLDER = "captions.json", "recall.json", "world.json", "videos"
LABELS_FILE = "labels.json"
FRESH_SPLIT = "test"
MAX_PROCESSES = 2
"""For rendering: more would only get in each other's way on the machines that evaluate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionData:
    """The videos of a data set and their references, in the order of the annotations."""

    name: str
    videos: Mapping[str, Path]
    references: Stories
    digests: Mapping[str, str]
    """By video, a digest of its annotations: predictions are gone on with only for the same video."""
    seed: int | None
    """What the data was made from, where that is written down."""
    more_references: tuple[Stories, ...] = ()
    """Of further annotators, who have not all told of every video."""
    notes: tuple[str, ...] = ()
    """What is not run, and why."""


def open_toybox(folder: str | Path, *, limit: int | None = None) -> CaptionData:
    """Open a folder as ``longtake toybox make`` writes it.

    Args:
        folder: Holds ``captions.json`` and ``videos/<video>.mp4``.
        limit: Take the first so many videos.

    Raises:
        ConfigError: It is no such folder, or a video is missing.
        SourceError: Its annotations cannot be read.
    """
    folder = Path(folder)
    captions = folder / CAPTIONS_FILE
    if not captions.is_file():
        raise ConfigError(
            f"{folder} has no {CAPTIONS_FILE}; expected a folder made by 'longtake toybox make', "
            "or leave --data out and give --seed to render videos"
        )
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit}, expected at least 1 video")
    raw = read_json(captions)
    references = references_from(raw, origin=str(captions))
    chosen = list(references)[:limit]
    videos = {video: folder / VIDEOS_FOLDER / f"{video}.mp4" for video in chosen}
    if missing := [path for path in videos.values() if not path.is_file()]:
        raise ConfigError(f"{missing[0]} is missing, but {captions} names it; make the data anew")
    entries = raw if isinstance(raw, dict) else {}
    return CaptionData(
        name="toybox",
        videos=videos,
        references={video: references[video] for video in chosen},
        digests={video: _digest(entries[video]) for video in chosen},
        seed=seed_of_world(folder / WORLD_FILE),
    )


def open_public(
    dataset: DataSet,
    folder: str | Path,
    *,
    split: str | None = None,
    videos: str | Path | None = None,
    limit: int | None = None,
) -> CaptionData:
    """Open a public data set; arguments as ``open_questions`` has them.

    Raises:
        ConfigError: Annotations or all videos are missing, or the captions are withheld.
        SourceError: A file cannot be read.
    """
    split = split or dataset.splits[0]
    samples = dataset.open(folder, split)
    assert isinstance(samples, Captions)
    told = [{video: events for video, events in one.items() if _has_words(events)} for one in samples.references]
    known = {video for one in told for video in one}
    if not known:
        raise ConfigError(
            f"the captions of {dataset.title}'s split {split!r} are not public, so nothing can be scored; choose "
            f"--split {dataset.splits[0]}"
        )
    found = videos_of(dataset, samples.videos, videos or folder, limit=limit, among=known)
    stories = [
        {video: story for video, clip in found.clips.items() if (story := _story(one.get(video, ()), clip.path))}
        for one in told
    ]
    clips = {video: clip.path for video, clip in found.clips.items() if any(video in one for one in stories)}
    silent = [video for video in found.clips if video not in clips]
    if not clips:
        raise ConfigError(f"{folder}: {silent[0]} ends before its first event, as do all videos here; get them whole")
    notes = [*samples.notes, *found.notes]
    notes += [f"{len(silent)} videos end before their first event and are left out: {silent[0]}"] if silent else []
    first, *others = [one for one in stories if one]
    return CaptionData(
        name=dataset.name,
        videos=clips,
        references=first,
        digests={video: _digest([repr(one.get(video)) for one in stories]) for video in clips},
        seed=None,
        more_references=tuple(others),
        notes=tuple(notes),
    )


def _story(events: Iterable[TimedText], path: Path) -> Story:
    """Events whose last ends with the file, if the annotations do not say when; those that it does not reach go."""
    events = tuple(events)
    length = math.inf if all(event.end_seconds is not None for event in events) else _length(path)
    bounds = [(event.start_seconds, length if event.end_seconds is None else event.end_seconds) for event in events]
    return tuple(
        TimedSentence(start_seconds=start, end_seconds=end, text=event.text)
        for (start, end), event in zip(bounds, events, strict=True)
        if length == math.inf or start < end <= length
    )


@functools.cache
def _length(path: Path) -> float:
    """Seconds of a file: as it declares, or if it declares nothing to its last frame."""
    from longtake.video import open_source, probe

    with open_source(path) as source:
        declared = source.total_seconds
    return probe(path).last_pts if declared is None else declared


def _has_words(events: Iterable[TimedText]) -> bool:
    return any(event.text for event in events)


def render_toybox(
    folder: str | Path,
    *,
    videos: int,
    seed: int,
    seconds: tuple[int, int] | None = None,
    split: str = FRESH_SPLIT,
    on_progress: Callable[[int], None] | None = None,
) -> None:
    """Render unseen videos with their captions, questions and labels into an empty folder, in at most two processes.

    Without ``seconds`` the same videos as ``longtake toybox make --split test`` with that seed; with it, each video is
    from ``seconds[0]`` to ``seconds[1]`` long.
    """
    from longtake.data.toybox.annotate import captions_of, recall_entry
    from longtake.data.toybox.dataset import script_of
    from longtake.data.toybox.recall import recall_questions
    from longtake.data.toybox.routines import ROUTINES

    if videos < 1:
        raise ConfigError(f"limit is {videos}, expected at least 1 video")
    folder = Path(folder)
    (folder / VIDEOS_FOLDER).mkdir(parents=True)
    names = [f"{split}_{index:05d}" for index in range(videos)]
    lengths = [length_of(seed, index, seconds) for index in range(videos)]
    processes = min(MAX_PROCESSES, os.cpu_count() or 1, videos)
    # spawned, not forked: the caller may hold threads of torch
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        paths = (folder / VIDEOS_FOLDER / f"{name}.mp4" for name in names)
        jobs = [pool.submit(_render, split, seed, index, lengths[index], path) for index, path in enumerate(paths)]
        try:
            for done, job in enumerate(as_completed(jobs), start=1):
                job.result()
                if on_progress is not None:
                    on_progress(done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    scripts = {name: script_of(split, seed, index, lengths[index]) for index, name in enumerate(names)}
    found = {
        CAPTIONS_FILE: {name: captions_of(script) for name, script in scripts.items()},
        RECALL_FILE: {name: [recall_entry(one) for one in recall_questions(s)] for name, s in scripts.items()},
        WORLD_FILE: {"seed": seed, "split": split},
    }
    if labels := {name: script.label for name, script in scripts.items() if script.label is not None}:
        found[LABELS_FILE] = {"classes": list(ROUTINES), "videos": labels}
    for name, content in found.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def length_of(seed: int, index: int, seconds: tuple[int, int] | None) -> float | None:
    """Seconds of video number ``index``, drawn between the two; None: as the script wants."""
    from longtake.data.toybox.dice import Dice

    return None if seconds is None else float(Dice("length", seed, index).integer(*seconds))


def _render(split: str, seed: int, index: int, seconds: float | None, path: Path) -> None:
    from longtake.data.toybox.dataset import script_of
    from longtake.data.toybox.write import write_video

    write_video(script_of(split, seed, index, seconds), path)


def _digest(entry: object) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()[:16]


def seed_of_world(world: Path) -> int | None:
    facts = read_json(world) if world.is_file() else {}
    seed = facts.get("seed") if isinstance(facts, dict) else None
    return seed if isinstance(seed, int) else None

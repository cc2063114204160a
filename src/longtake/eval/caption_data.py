"""Data sets to caption: videos beside the annotations that say what happens in them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from longtake.errors import ConfigError
from longtake.eval.annotations import Stories, read_json, references_from

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

"""A folder of videos with all annotations: complete or not there at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from longtake.data.toybox.annotate import captions_of, memory_of, question_entry, recall_entry, world_facts
from longtake.data.toybox.dice import Dice, seed_of
from longtake.data.toybox.questions import questions_of
from longtake.data.toybox.recall import recall_questions
from longtake.data.toybox.routines import ROUTINES, ROUTINES_SPLIT
from longtake.data.toybox.script import make_script
from longtake.data.toybox.world import TOYBOX_VERSION, Script
from longtake.data.toybox.write import VIDEO_SIZE, write_video
from longtake.errors import ConfigError


def make_dataset(
    directory: str | os.PathLike[str],
    videos: int,
    seed: int,
    seconds: float | None = None,
    split: str = "test",
    *,
    on_progress: Callable[[float], None] | None = None,
) -> None:
    """Make ``videos`` videos with captions, memory words, questions and, for the split ``routines``, labels.

    The folder is built under a temporary name beside its place and takes its name when everything is in it.

    Args:
        directory: Must not exist yet, or be empty.
        videos: How many, at least 1.
        seed: Together with ``split`` it decides everything.
        seconds: Length of each video; drawn from 40 to 120 s if None.
        split: Letters, digits, ``-`` and ``_``; different splits share no script.
        on_progress: Called often with the number of videos done, fractions included.

    Raises:
        ConfigError: The folder is not empty, or a value cannot work.
    """
    target = Path(directory).absolute()
    _check(target, videos, seconds, split)
    scripts = (script_of(split, seed, index, seconds) for index in range(videos))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    except OSError as error:
        raise ConfigError(f"cannot make {target}: {error.strerror}; give a folder you may write to") from error
    try:
        annotations = _write_videos(unfinished, scripts, split, on_progress)
        facts = world_facts(split=split, seed=seed, videos=videos, seconds=seconds, size=VIDEO_SIZE)
        for name, content in {**annotations, "world": facts}.items():
            (unfinished / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
        unfinished.chmod(0o755)
        _move_into_place(unfinished, target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def script_of(split: str, seed: int, index: int, seconds: float | None = None) -> Script:
    """Script number ``index`` of a data set; in routines every block of 24 videos has each class once."""
    label = None
    if split == ROUTINES_SPLIT:
        block, place = divmod(index, len(ROUTINES))
        label = Dice(TOYBOX_VERSION, "labels", seed, block).shuffled(ROUTINES)[place]
    return make_script(seed_of("video", split, seed, index) >> 16, seconds=seconds, split=split, label=label)


def _check(target: Path, videos: int, seconds: float | None, split: str) -> None:
    if videos < 1:
        raise ConfigError(f"{videos} videos were asked for; expected at least 1")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", split):
        raise ConfigError(f"split {split!r}: expected a name of letters, digits, '-' and '_'")
    if target.exists() and not target.is_dir():
        raise ConfigError(f"{target} is a file; give a folder that is new or empty")
    if target.is_dir() and any(target.iterdir()):
        raise ConfigError(f"{target} is not empty; give a folder that is new or empty, or remove it first")
    if seconds is not None:
        make_script(0, seconds=seconds, split=split)


def _write_videos(
    folder: Path, scripts: Iterable[Script], split: str, on_progress: Callable[[float], None] | None
) -> dict[str, dict[str, object]]:
    """Write the videos; the annotations of all of them, by the name of their file."""
    annotations: dict[str, dict[str, object]] = {"captions": {}, "memory": {}, "questions": {}, "recall": {}}
    labels: dict[str, str] = {}
    (folder / "videos").mkdir()
    for index, script in enumerate(scripts):
        name = f"{split}_{index:05d}"

        def on_frame(done: int, total: int, index: int = index) -> None:
            if on_progress is not None:
                on_progress(index + done / total)

        write_video(script, folder / "videos" / f"{name}.mp4", on_frame=on_frame)
        annotations["captions"][name] = captions_of(script)
        annotations["memory"][name] = memory_of(script)
        annotations["questions"][name] = [question_entry(question) for question in questions_of(script)]
        annotations["recall"][name] = [recall_entry(question) for question in recall_questions(script)]
        if script.label is not None:
            labels[name] = script.label
    if labels:
        annotations["labels"] = {"classes": list(ROUTINES), "videos": labels}
    return annotations


def _move_into_place(unfinished: Path, target: Path) -> None:
    """One rename where the folder is new; into an empty one that is there, the annotations last."""
    if not target.exists():
        unfinished.rename(target)
        return
    for part in sorted(unfinished.iterdir(), key=lambda part: part.suffix == ".json"):
        part.rename(target / part.name)

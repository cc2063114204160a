"""Public data sets made ready to run: those of their videos that are here, with what is asked or told of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from longtake.data.datasets import DataSet
from longtake.data.datasets.samples import Question, Questions
from longtake.data.datasets.videos import Clip
from longtake.errors import ConfigError
from longtake.eval.public_videos import videos_of


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionData:
    """Questions whose answers are known, about videos that can be run."""

    dataset: DataSet
    split: str
    clips: Mapping[str, Clip]
    questions: Mapping[str, tuple[Question, ...]]
    """By video."""
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    """What is not run, and why."""


def open_questions(
    dataset: DataSet,
    folder: str | Path,
    *,
    split: str | None = None,
    videos: str | Path | None = None,
    limit: int | None = None,
) -> QuestionData:
    """Read a data set and look for its videos.

    Args:
        dataset: One that is for ``ask``.
        folder: Holds the annotations.
        split: By default the one that papers report.
        videos: Where the videos lie; by default anywhere in ``folder``.
        limit: The first so many of the videos that are here.

    Raises:
        ConfigError: Annotations or all videos are missing, or no answer is public.
        SourceError: A file cannot be read.
    """
    split = split or dataset.splits[0]
    samples = dataset.open(folder, split)
    assert isinstance(samples, Questions)
    marked = [question for question in samples.questions if question.kind != "open" and question.answer]
    if not marked:
        raise ConfigError(
            f"the answers of {dataset.title}'s split {split!r} are not public, so nothing can be marked; choose "
            f"--split {dataset.splits[0]}"
        )
    asked: dict[str, list[Question]] = {}
    for question in marked:
        asked.setdefault(question.video, []).append(question)
    found = videos_of(dataset, samples.videos, videos or folder, limit=limit, among=asked)
    notes = [*samples.notes, *found.notes]
    if left := len(samples.questions) - len(marked):
        notes.append(f"{left} questions are not run: their answers are not public, or are words that need a judge")
    return QuestionData(
        dataset=dataset,
        split=split,
        clips=found.clips,
        questions={video: tuple(asked[video]) for video in found.clips},
        missing=found.missing,
        notes=tuple(notes),
    )

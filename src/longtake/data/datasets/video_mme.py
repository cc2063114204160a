"""Video-MME: three questions with four options about each of 900 videos of three lengths."""

from __future__ import annotations

import re
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from longtake.data.datasets.annotations import Annotations
from longtake.data.datasets.records import Record, records_of, unique
from longtake.data.datasets.samples import Question, Questions, Video, video_at
from longtake.errors import ConfigError, SourceError

PARQUET_FILE = "videomme/test-00000-of-00001.parquet"
LINES_FILE = "videomme/test.jsonl"
"""The same rows, for those who have no pyarrow."""
TEMPLATE_FILE = "evaluation/output_test_template.json"
"""The same questions as the official script takes them: without YouTube's ids, and with commas that JSON forbids."""
LENGTHS = ("short", "medium", "long")


def read(files: Annotations, split: str) -> Questions:
    """Questions without the letters before their options."""
    del split  # there is one
    path, rows = _rows(files)
    questions: list[Question] = []
    videos: dict[str, Video] = {}
    for row in rows:
        question = _question(row)
        questions.append(question)
        names = [row.name("videoID")] if row.has("videoID") else []
        videos.setdefault(question.video, video_at(question.video, *names, question.video))
    unique([question.key for question in questions], str(path), "question_id")
    return Questions(videos=tuple(videos.values()), questions=tuple(questions))


def _rows(files: Annotations) -> tuple[Path, list[Record]]:
    if path := files.find(LINES_FILE):
        return path, files.lines(path)
    if (path := files.find(TEMPLATE_FILE)) and not files.find(PARQUET_FILE):
        return path, _of_template(records_of(files.json(path, loose=True), str(path), "videos with questions"))
    path = files.need(PARQUET_FILE, LINES_FILE)
    return path, records_of(_of_parquet(path, files.home), str(path), "questions")


def _of_parquet(path: Path, home: str) -> list[dict[str, Any]]:
    try:
        from pyarrow import ArrowException  # pyright: ignore[reportMissingImports] an extra
        from pyarrow.parquet import read_table  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ConfigError(
            f"{path} needs pyarrow, which is not installed; pip install 'longtake[datasets]', or put its rows as JSON "
            f"lines into {LINES_FILE}"
        ) from error
    try:
        return read_table(path).to_pylist()
    except (ArrowException, OSError) as error:
        detail = " ".join(str(error).split())[:200]
        raise SourceError(f"{path} is no parquet file ({detail}); download it anew from {home}") from error


def _of_template(found: list[Record]) -> list[Record]:
    """Each question with the fields of its video."""
    return [
        Record({**video.fields, **asked.fields}, asked.where)
        for video in found
        for asked in video.records("questions", "a list of questions")
    ]


def _question(row: Record) -> Question:
    options = row.texts("options")
    letters = ascii_uppercase[: len(options)]
    letter = row.one_of("answer", letters)
    options = without_letters(options)
    gold = letters.index(letter)
    return Question(
        key=row.name("question_id"),
        video=row.name("video_id"),
        question=row.text("question"),
        options=options,
        gold=gold,
        answer=options[gold],
        tags={
            "type": row.text("task_type"),
            "duration": row.one_of("duration", LENGTHS),
            "domain": row.text("domain"),
            "sub_category": row.text("sub_category"),
        },
    )


def without_letters(options: tuple[str, ...]) -> tuple[str, ...]:
    """Options without the ``A. ``, ``B. `` before them, if each has its own."""
    bare = [re.match(rf"\(?{letter}[.):]\s*(\S.*)", one, re.DOTALL) for letter, one in zip(ascii_uppercase, options)]  # noqa: B905
    return tuple(found[1] for found in bare if found) if all(bare) else options

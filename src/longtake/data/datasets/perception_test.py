"""Perception Test, multiple-choice video QA: three options; some videos end before the answer is shown."""

from __future__ import annotations

from longtake.data.datasets.annotations import Annotations
from longtake.data.datasets.records import Record, named_records
from longtake.data.datasets.samples import Place, Question, Questions, Video
from longtake.errors import ConfigError

NUM_OPTIONS = 3
FILES_FILE = "video_files.json"
"""Ours, optional: ``{video: file name}``."""


def read(files: Annotations, split: str) -> Questions:
    """Questions of the file for this task, or of the one for all tasks; ``test`` has no answers."""
    path = files.need(f"mc_question_{split}.json", f"all_{split}.json")
    found = named_records(files.json(path), str(path), "metadata and mc_question")
    cuts_path = files.find(f"cut_frame_mapping_{split}.json", f"misc/cut_frame_mapping_{split}.json")
    cuts = Record(files.json(cuts_path) if cuts_path else {}, str(cuts_path), "an object of frame numbers by video")
    names_path = files.find(FILES_FILE)
    names = Record(files.json(names_path) if names_path else {}, str(names_path), "an object of file names by video")
    questions = tuple(
        _question(video, asked, hidden=split == "test")
        for video, record in found.items()
        for asked in record.records("mc_question", "a list of questions", empty=True)
    )
    if not questions:
        raise ConfigError(f"{path}: holds no mc_question; get mc_question_{split}_annotations.zip from {files.home}")
    asked_of = {question.video for question in questions}
    notes = () if cuts_path or split == "test" else (_whole(split, files.home),)
    return Questions(
        videos=tuple(_video(name, record, cuts, names) for name, record in found.items() if name in asked_of),
        questions=questions,
        notes=notes,
    )


def _whole(split: str, home: str) -> str:
    return (
        f"there is no cut_frame_mapping_{split}.json: videos are seen whole, though the ends of some give the answer "
        f"away; had at {home}"
    )


def _question(video: str, record: Record, *, hidden: bool) -> Question:
    options = record.texts("options", least=NUM_OPTIONS, most=NUM_OPTIONS)
    gold = None if hidden and not record.has("answer_id") else record.integer("answer_id", 0, NUM_OPTIONS - 1)
    return Question(
        key=f"{video}_{record.integer('id', 0)}",
        video=video,
        question=record.text("question"),
        options=options,
        gold=gold,
        answer="" if gold is None else options[gold],
        tags={"type": record.text("area"), "reasoning": record.text("reasoning")},
    )


def _video(name: str, record: Record, cuts: Record, names: Record) -> Video:
    end_seconds = None
    if cuts.has(name):
        metadata = Record(record.value("metadata", "an object"), f"{record.where}, metadata")
        # up to the frame before: half a frame leaves room for the rounding of stored times
        end_seconds = (cuts.integer(name, 1) - 0.5) / metadata.number("frame_rate", above=0)
    paths = [*([names.text(name, "a file's name")] if names.has(name) else []), name]
    return Video(name=name, places=tuple(Place(path=path, end_seconds=end_seconds) for path in paths))

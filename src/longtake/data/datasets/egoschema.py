"""EgoSchema: one question with five options about each of 5,031 clips of three minutes; 500 answers are public."""

from __future__ import annotations

from longtake.data.datasets.annotations import Annotations
from longtake.data.datasets.records import Record, records_of, unique
from longtake.data.datasets.samples import Place, Question, Questions, Video
from longtake.errors import ConfigError

FILE, ANSWERS_FILE, SOURCES_FILE = "questions.json", "subset_answers.json", "uid_to_ego4d.json"
NUM_OPTIONS = 5


def read(files: Annotations, split: str) -> Questions:
    """All questions of ``full``, or those of ``subset``, whose answers are public."""
    path, answers_path = files.need(FILE), files.need(ANSWERS_FILE)
    found = records_of(files.json(path), str(path), "questions with q_uid")
    answers = Record(files.json(answers_path), str(answers_path), "an object of option numbers by q_uid")
    sources_path = files.find(SOURCES_FILE)
    sources = Record(files.json(sources_path) if sources_path else {}, str(sources_path), "an object by q_uid")
    questions = [_question(record, answers) for record in found]
    unique([question.key for question in questions], str(path), "q_uid")
    if split == "subset":
        questions = [question for question in questions if question.gold is not None]
        if not questions:
            raise ConfigError(f"{answers_path}: answers none of the questions of {path}; get both from {files.home}")
    return Questions(
        videos=tuple(_video(question.video, sources) for question in questions), questions=tuple(questions)
    )


def _question(record: Record, answers: Record) -> Question:
    uid = record.text("q_uid", "the clip's id")
    text = record.text("question", "text (an older questions.json has none: get the newest)")
    options = tuple(record.text(f"option {number}", "the text of an option") for number in range(NUM_OPTIONS))
    gold = answers.integer(uid, 0, NUM_OPTIONS - 1) if answers.has(uid) else None
    return Question(
        key=uid,
        video=uid,
        question=text,
        options=options,
        gold=gold,
        answer="" if gold is None else options[gold],
    )


def _video(uid: str, sources: Record) -> Video:
    """The clip itself, or its part of the video of Ego4D that it was cut from."""
    places = [Place(path=uid)]
    if sources.has(uid):
        source = Record(sources.fields[uid], f"{sources.where}, {uid!r}", "video_uid, starting_sec and ending_sec")
        start, end = source.number("starting_sec"), source.number("ending_sec")
        if end <= start:
            raise source.wrong("ending_sec", f"a time after starting_sec, {start:g}")
        places.append(Place(path=source.text("video_uid"), start_seconds=start, end_seconds=end))
    return Video(name=uid, places=tuple(places))

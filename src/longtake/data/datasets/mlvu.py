"""MLVU: seven tasks with options, answered by the text of one, and two to be answered in words; a file for each."""

from __future__ import annotations

from pathlib import Path

from longtake.data.datasets.annotations import Annotations
from longtake.data.datasets.records import Record, records_of, unique
from longtake.data.datasets.samples import Question, Questions, Video, video_at
from longtake.errors import ConfigError

CHOICE_FILES = (
    "1_plotQA.json",
    "2_needle.json",
    "3_ego.json",
    "4_count.json",
    "5_order.json",
    "6_anomaly_reco.json",
    "7_topic_reasoning.json",
)
OPEN_FILES = ("8_sub_scene.json", "9_summary.json")
TEST_FILE = "test_question.json"


def read(files: Annotations, split: str) -> Questions:
    """``dev`` with answers, ``test`` without."""
    if split == "test":
        path = files.need(f"test/{TEST_FILE}")
        found = [_hidden(record) for record in records_of(files.json(path), str(path), "questions")]
        unique([question.key for question in found], str(path), "question_id")
        return Questions(videos=_videos(found, {}), questions=tuple(found))
    questions: list[Question] = []
    folders: dict[str, str] = {}
    spoiled: list[str] = []
    for name in (*CHOICE_FILES, *OPEN_FILES):
        path = _file(files, name)
        if path is None:
            continue
        for number, record in enumerate(records_of(files.json(path), str(path), "questions")):
            fault = _fault(record) if name in CHOICE_FILES else ""
            if fault:
                spoiled.append(f"{record.where}: {fault}")
                continue
            question = _question(record, f"{path.stem}_{number}", is_choice=name in CHOICE_FILES)
            questions.append(question)
            folders.setdefault(question.video, path.stem)
    if not questions:
        raise ConfigError(f"{spoiled[0]}; no question is left, download the files anew from {files.home}")
    notes = [f"{len(spoiled)} questions have no right option and are left out: {spoiled[0]}"] if spoiled else []
    return Questions(videos=_videos(questions, folders), questions=tuple(questions), notes=tuple(notes))


def _file(files: Annotations, name: str) -> Path | None:
    """Files with options must all be there, since the score is a mean over their tasks."""
    paths = (f"json/{name}", f"data/{name}", f"MLVU/json/{name}")
    return files.need(*paths) if name in CHOICE_FILES else files.find(*paths)


def _videos(questions: list[Question], folders: dict[str, str]) -> tuple[Video, ...]:
    names = dict.fromkeys(question.video for question in questions)
    return tuple(video_at(name, *([f"{folders[name]}/{name}"] if name in folders else []), name) for name in names)


def _fault(record: Record) -> str:
    """Why a question of the published files cannot be answered rightly; empty if it can."""
    candidates = record.items("candidates", "a list of options")
    answer = record.text("answer", empty=True)
    if not record.text("question", empty=True) or not any(isinstance(one, str) and one.strip() for one in candidates):
        return "question or candidates are empty"
    if answer not in [str(one).strip() for one in candidates]:
        return f"answer {answer!r} is none of its candidates"
    return ""


def _question(record: Record, key: str, *, is_choice: bool) -> Question:
    options = record.texts("candidates") if is_choice else ()
    answer = record.text("answer")
    return Question(
        key=key,
        video=record.text("video", "a file's name"),
        question=record.text("question"),
        kind="choice" if is_choice else "open",
        options=options,
        gold=options.index(answer) if is_choice else None,
        answer=answer,
        tags={"type": record.text("question_type")},
    )


def _hidden(record: Record) -> Question:
    return Question(
        key=record.name("question_id"),
        video=record.text("video", "a file's name"),
        question=record.text("question"),
        options=record.texts("candidates"),
        tags={"type": record.text("question_type")},
    )

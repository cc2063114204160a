"""OVO-Bench: questions at moments of a video, about what was, what is, and whether enough has been seen yet."""

from __future__ import annotations

from longtake.data.datasets.annotations import Annotations
from longtake.data.datasets.records import Record, records_of, unique
from longtake.data.datasets.samples import Question, Questions, video_at

FILE = "data/ovo_bench_new.json"
GROUPS = {
    "backward": ("EPM", "ASI", "HLD"),
    "real-time": ("OCR", "ACR", "ATR", "STU", "FPD", "OJR"),
    "forward": ("REC", "SSR", "CRR"),
}
GROUP_OF = {task: group for group, tasks in GROUPS.items() for task in tasks}
YES, NO = "Yes", "No"


def read(files: Annotations, split: str) -> Questions:
    """Every entry of ``test_info`` is a question of its own."""
    del split  # there is one
    path = files.need(FILE)
    found = records_of(files.json(path), str(path), "questions with id and task")
    questions = [question for record in found for question in _questions(record)]
    unique([question.key for question in questions], str(path), "id")
    videos = dict.fromkeys(question.video for question in questions)
    return Questions(videos=tuple(video_at(name) for name in videos), questions=tuple(questions))


def _questions(record: Record) -> list[Question]:
    task = record.one_of("task", tuple(GROUP_OF))
    if GROUP_OF[task] != "forward":
        return [_choice(record, task)]
    moments = record.records("test_info", "a list of moments with realtime")
    return [_moment(record, task, number, moment) for number, moment in enumerate(moments)]


def _choice(record: Record, task: str) -> Question:
    """``gt`` is the right one; ``answer`` may be worded otherwise."""
    options = record.texts("options")
    gold = record.integer("gt", 0, len(options) - 1)
    return Question(
        key=record.name("id"),
        video=record.text("video", "a file's path"),
        question=record.text("question"),
        options=options,
        gold=gold,
        answer=options[gold],
        tags=_tags(task),
        at_seconds=record.number("realtime"),
    )


def _moment(record: Record, task: str, number: int, moment: Record) -> Question:
    if task == "REC":
        kind, answer = "count", str(moment.integer("count", 0))
        text = f"How often has this been done in the video so far: {record.text('activity')}? Answer with a number."
    elif task == "SSR":
        kind, answer = "yes-no", _yes(moment)
        text = f"Is this step of the work being done right now: {moment.text('step')}? Answer Yes or No."
    else:
        kind, answer = "yes-no", _yes(moment)
        text = f"Has the video shown enough by now to answer this: {record.text('question')} Answer Yes or No."
    return Question(
        key=f"{record.name('id')}_{number}",
        video=record.text("video", "a file's path"),
        question=text,
        kind=kind,
        answer=answer,
        tags=_tags(task),
        at_seconds=moment.number("realtime"),
    )


def _yes(moment: Record) -> str:
    return YES if moment.integer("type", 0, 1) else NO


def _tags(task: str) -> dict[str, str]:
    return {"type": task, "group": GROUP_OF[task]}

"""NExT-QA, multiple choice: five options, questions of eight types in three groups."""

from __future__ import annotations

from longtake.data.datasets.annotations import Annotations
from longtake.data.datasets.records import Record, unique
from longtake.data.datasets.samples import Question, Questions, Video, video_at

COLUMNS = ("video", "question", "answer", "qid", "type", "a0", "a1", "a2", "a3", "a4")
MAPPING_FILE = "map_vid_vidorID.json"
TYPES = ("CW", "CH", "TN", "TP", "TC", "DC", "DL", "DO")
GROUPS = {"C": "causal", "T": "temporal", "D": "descriptive"}
COUNTED_AS = {"TP": "TN"}
"""As the official score counts."""


def read(files: Annotations, split: str) -> Questions:
    """Videos by their own id, or in VidOR's folders as the mapping has them."""
    path = files.need(f"dataset/nextqa/{split}.csv", f"nextqa/{split}.csv")
    mapping_path = files.need(f"dataset/nextqa/{MAPPING_FILE}", f"nextqa/{MAPPING_FILE}")
    mapping = Record(files.json(mapping_path), str(mapping_path), "an object of VidOR's paths by video")
    questions = tuple(_question(row) for row in files.rows(path, COLUMNS))
    unique([question.key for question in questions], str(path), "video_qid")
    videos = dict.fromkeys(question.video for question in questions)
    return Questions(videos=tuple(_video(name, mapping) for name in videos), questions=questions)


def _video(name: str, mapping: Record) -> Video:
    return video_at(name, *([mapping.text(name, "a path")] if mapping.has(name) else []), name)


def _question(row: Record) -> Question:
    video, kind = row.text("video"), row.one_of("type", TYPES)
    options = tuple(row.text(f"a{number}") for number in range(5))
    gold = row.integer("answer", 0, 4, digits=True)
    return Question(
        key=f"{video}_{row.text('qid')}",
        video=video,
        question=row.text("question"),
        options=options,
        gold=gold,
        answer=options[gold],
        tags={"type": COUNTED_AS.get(kind, kind), "group": GROUPS[kind[0]]},
    )

"""YouCook2: steps of recipes, in whole seconds, in order, with gaps between them."""

from __future__ import annotations

from longtake.data.datasets.annotations import Annotations
from longtake.data.datasets.records import Record, named_records, short, span
from longtake.data.datasets.samples import Captions, TimedText, video_at
from longtake.errors import ConfigError

SUBSETS = {"train": "training", "val": "validation", "test": "testing"}
FILES = {
    "train": "annotations/youcookii_annotations_trainval.json",
    "val": "annotations/youcookii_annotations_trainval.json",
    "test": "annotations/youcookii_annotations_test_segments_only.json",
}


def read(files: Annotations, split: str) -> Captions:
    """One annotator; the segments of ``test`` have no text."""
    path = files.need(FILES[split])
    where = str(path)
    database = Record(files.json(path), where).value("database", "an object with an entry for each video")
    found = {
        name: record
        for name, record in named_records(database, f"{where}, database", "subset, duration and annotations").items()
        if record.one_of("subset", tuple(SUBSETS.values())) == SUBSETS[split]
    }
    if not found:
        raise ConfigError(f"{where}: has no video of subset {SUBSETS[split]!r}; download it anew from {files.home}")
    return Captions(
        videos=tuple(video_at(name, name, f"v_{name}") for name in found),
        references=({name: _events(record, withheld=split == "test") for name, record in found.items()},),
        durations={name: record.number("duration", above=0) for name, record in found.items()},
    )


def _events(record: Record, *, withheld: bool) -> tuple[TimedText, ...]:
    events: list[TimedText] = []
    for step in record.records("annotations", "a list of steps with segment and sentence"):
        segment = step.value("segment", "[start, end] in seconds")
        if (bounds := span(segment)) is None:
            raise ConfigError(f"{step.where}: segment is {short(segment)}, expected [start, end] in seconds, in order")
        text = "" if withheld else step.text("sentence")
        events.append(TimedText(start_seconds=bounds[0], end_seconds=bounds[1], text=text))
    return tuple(events)

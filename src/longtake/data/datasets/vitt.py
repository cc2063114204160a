"""ViTT: tags at moments in milliseconds, one JSON object a line, several lines for a video that several people tagged.

A tag lasts until the next one; how long the last one lasts only the video's file says.
"""

from __future__ import annotations

from collections import defaultdict

from longtake.data.datasets.annotations import Annotations
from longtake.data.datasets.records import Record
from longtake.data.datasets.samples import Captions, TimedText, Video, video_at
from longtake.errors import ConfigError

FILE = "ViTT-annotations.json"
SPLIT_FILES = {"train": "train_id.txt", "dev": "dev_id.txt", "test": "test_id.txt"}
MAPPING_FILE = "id_mapping.json"
"""Ours, optional: ``{id: file name}``. The ids are YouTube-8M's, under which hardly anybody keeps videos."""


def read(files: Annotations, split: str) -> Captions:
    """As many references as people have tagged a video; ``all`` has those too that are in no split."""
    path = files.need(FILE)
    ids_path = path if split == "all" else files.need(SPLIT_FILES[split])
    told: dict[str, list[tuple[TimedText, ...]]] = defaultdict(list)
    dropped = 0
    for record in files.lines(path):
        events, lost = _events(record)
        dropped += lost
        if events:
            told[record.text("id")].append(events)
    ids = list(dict.fromkeys(told if split == "all" else files.names(ids_path)))
    known = [name for name in ids if name in told]
    if not known:
        some = f", such as {ids[0]!r}" if ids else ""
        raise ConfigError(f"{path}: has tags for none of the {len(ids)} ids of {ids_path.name}{some}")
    most = max(len(told[name]) for name in known)
    places = _places(files)
    notes = [f"{len(ids) - len(known)} ids of {ids_path.name} have no tags"] if len(known) < len(ids) else []
    notes += [f"{dropped} tags without words or length are left out"] if dropped else []
    return Captions(
        videos=tuple(_video(name, places) for name in known),
        references=tuple(
            {name: told[name][number] for name in known if number < len(told[name])} for number in range(most)
        ),
        durations={},
        notes=tuple(notes),
    )


def _places(files: Annotations) -> Record:
    path = files.find(MAPPING_FILE)
    return Record(files.json(path) if path else {}, str(path), "an object of file names by id")


def _video(name: str, places: Record) -> Video:
    return video_at(name, *([places.text(name, "a file's name")] if places.has(name) else []), name)


def _events(record: Record) -> tuple[tuple[TimedText, ...], int]:
    """Tags in order of time, and how many have no words or no length."""
    found = record.records("annotations", "a list of tags with timestamp in milliseconds", empty=True)
    tags = sorted(((tag.number("timestamp"), tag.text("tag", empty=True)) for tag in found), key=lambda one: one[0])
    ends = [start / 1000 for start, _ in tags[1:]]
    events = [
        TimedText(start_seconds=start / 1000, end_seconds=end, text=text)
        for (start, text), end in zip(tags, [*ends, None], strict=False)
        if text and (end is None or end > start / 1000)
    ]
    return tuple(events), len(tags) - len(events)

"""ActivityNet Captions: overlapping events in seconds; its validation videos were told of by two annotators."""

from __future__ import annotations

from longtake.data.datasets.annotations import Annotations
from longtake.data.datasets.records import Record, named_records, short, span
from longtake.data.datasets.samples import Captions, TimedText, Video, video_at
from longtake.errors import ConfigError

FILES = {"train": ("train.json",), "val": ("val_1.json", "val_2.json")}
IDS_FILE = "test_ids.json"


def read(files: Annotations, split: str) -> Captions:
    """Both annotators of ``val``; ``test`` has ids only."""
    if split == "test":
        return _without_captions(files)
    paths = [files.need(name, f"captions/{name}") for name in FILES[split]]
    told = [named_records(files.json(path), str(path), "duration, timestamps and sentences") for path in paths]
    references = tuple({name: _events(record) for name, record in one.items()} for one in told)
    durations = {name: record.number("duration", above=0) for one in told for name, record in one.items()}
    return Captions(videos=tuple(map(_video, durations)), references=references, durations=durations)


def _without_captions(files: Annotations) -> Captions:
    path = files.need(IDS_FILE, f"captions/{IDS_FILE}")
    found = files.json(path)
    if not isinstance(found, list) or not found or not all(isinstance(name, str) for name in found):
        raise ConfigError(f"{path}: got {short(found)}, expected a list of ids; download it anew from {files.home}")
    return Captions(videos=tuple(map(_video, found)), references=(), durations={})


def _video(name: str) -> Video:
    return video_at(name, name, name.removeprefix("v_"))


def _events(record: Record) -> tuple[TimedText, ...]:
    """In the file's order, which is not always that of time. Events of no length are left as they are."""
    times = record.items("timestamps", "a list of [start, end] in seconds")
    texts = record.items("sentences", "a list of sentences")
    if len(times) != len(texts):
        raise ConfigError(
            f"{record.where}: {len(times)} timestamps and {len(texts)} sentences, expected as many of each"
        )
    return tuple(_event(record, number, *pair) for number, pair in enumerate(zip(times, texts, strict=True)))


def _event(record: Record, number: int, time: object, text: object) -> TimedText:
    bounds = span(time)
    if bounds is None:
        raise ConfigError(
            f"{record.where}, event {number}: its time is {short(time)}, expected [start, end] in seconds, in order"
        )
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(f"{record.where}, event {number}: its sentence is {short(text)}, expected text")
    return TimedText(start_seconds=bounds[0], end_seconds=bounds[1], text=text.strip())

"""Diving48 (V2): clips of dives, each one of 48 sequences of take-off, somersaults, twists and position."""

from __future__ import annotations

from longtake.data.datasets.annotations import Annotations
from longtake.data.datasets.records import records_of, short, unique
from longtake.data.datasets.samples import Labels, video_at
from longtake.errors import ConfigError

FILES = {"train": "Diving48_V2_train.json", "test": "Diving48_V2_test.json"}
VOCABULARY_FILE = "Diving48_vocab.json"
NUM_CLASSES = 48


def read(files: Annotations, split: str) -> Labels:
    """Clips are whole files: ``start_frame`` and ``end_frame`` only count their frames."""
    classes = _classes(files)
    path = files.need(FILES[split])
    found = records_of(files.json(path), str(path), "clips with vid_name and label")
    labels = [(record.name("vid_name"), classes[record.integer("label", 0, len(classes) - 1)]) for record in found]
    unique([name for name, _ in labels], str(path), "vid_name")
    return Labels(videos=tuple(video_at(name) for name, _ in labels), classes=classes, labels=dict(labels))


def _classes(files: Annotations) -> tuple[str, ...]:
    path = files.need(VOCABULARY_FILE)
    found = files.json(path)
    if not isinstance(found, list) or len(found) != NUM_CLASSES:
        got = f"{len(found)} entries" if isinstance(found, list) else short(found)
        raise ConfigError(f"{path}: got {got}, expected a list of {NUM_CLASSES}; download it anew from {files.home}")
    for number, dive in enumerate(found):
        if not isinstance(dive, list) or len(dive) != 4 or not all(isinstance(part, str) and part for part in dive):
            raise ConfigError(
                f"{path}, entry {number}: got {short(dive)}, expected [take-off, somersaults, twists, position]"
            )
    classes = tuple(" ".join(dive) for dive in found)
    unique(classes, str(path), "dive")
    return classes

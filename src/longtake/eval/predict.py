"""Captions of a whole data set by a model, kept video by video so that a killed run can be gone on with."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from longtake.errors import ConfigError, SourceError
from longtake.eval.annotations import Stories, TimedSentence, predictions_from
from longtake.eval.caption_data import CaptionData

if TYPE_CHECKING:
    from longtake.types import Event

CaptionVideo = Callable[[Path], Iterable["Event"]]


def predict(
    data: CaptionData,
    caption: CaptionVideo,
    *,
    kept: PredictionFile | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Stories:
    """Caption every video of ``data`` that ``kept`` does not hold yet.

    Args:
        data: What to caption.
        caption: Gives the events of a video file.
        kept: Where predictions are written as they come, and found again.
        on_progress: Called with the number of videos done.
    """
    stories: dict[str, tuple[TimedSentence, ...]] = dict(kept.read(data)) if kept else {}
    for done, (video, path) in enumerate(data.videos.items()):
        if on_progress is not None:
            on_progress(done)
        if video not in stories:
            events = predictions_from({video: list(caption(path))}, origin="model")[video]
            if kept is not None:
                kept.add(video, data.digests[video], events)
            stories[video] = events
    if on_progress is not None:
        on_progress(len(data.videos))
    return {video: stories[video] for video in data.videos}


class PredictionFile:
    """JSON lines: a head that says which model, then one line per video. ``longtake score`` reads it as well."""

    def __init__(self, path: Path, *, model: str, fingerprint: str) -> None:
        """Nothing is read or written yet.

        Args:
            path: Need not exist.
            model: Name, for people.
            fingerprint: Of the model with its settings; predictions of another one are not gone on with.
        """
        self.path = path
        self._head = {"model": model, "fingerprint": fingerprint}

    def check(self) -> list[dict[str, object]]:
        """The lines that are there, the head first; nothing where there is no file. Raises as ``read``."""
        lines = self._lines()
        if lines and lines[0].get("fingerprint") != self._head["fingerprint"]:
            raise ConfigError(
                f"{self.path} holds predictions of {lines[0].get('model')!r}, not of this model; "
                "remove it or choose another -o"
            )
        return lines

    def read(self, data: CaptionData) -> dict[str, tuple[TimedSentence, ...]]:
        """Predictions kept by an earlier run; a last line that was cut off is dropped.

        Raises:
            ConfigError: They are of another model, or of other videos of the same name.
            SourceError: The file is damaged elsewhere.
        """
        stories: dict[str, tuple[TimedSentence, ...]] = {}
        for entry in self.check()[1:]:
            video = str(entry.get("video"))
            if video not in data.digests:
                continue
            if entry.get("reference") != data.digests[video]:
                raise ConfigError(
                    f"{self.path} holds predictions of another video called {video!r}; remove it or choose another -o"
                )
            stories |= predictions_from({video: entry.get("events")}, origin=str(self.path))
        return stories

    def add(self, video: str, reference: str, events: Iterable[TimedSentence]) -> None:
        """Keep one video's predictions; they are on disk when this returns."""
        said = [{"sentence": event.text, "timestamp": [event.start_seconds, event.end_seconds]} for event in events]
        try:
            if not self.path.exists():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._append(self._head)
            self._append({"video": video, "reference": reference, "events": said})
        except OSError as error:
            raise ConfigError(f"cannot write {self.path}: {error.strerror or error}; choose another -o") from error

    def _append(self, entry: Mapping[str, object]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _lines(self) -> list[dict[str, object]]:
        if not self.path.exists():
            return []
        try:
            whole, _, cut_off = self.path.read_bytes().rpartition(b"\n")
            if cut_off:  # killed while writing: the line must go, or the next one would be glued to it
                self.path.write_bytes(whole + b"\n" if whole else b"")
            entries = [json.loads(line) for line in whole.splitlines()]
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.path} is damaged ({error}); remove it or choose another -o") from error
        if not all(isinstance(entry, dict) for entry in entries):
            raise SourceError(f"{self.path} is damaged; remove it or choose another -o")
        if not entries:
            self.path.unlink()
        return entries

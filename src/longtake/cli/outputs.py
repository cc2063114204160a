"""Where events go: a line each to stdout while the video plays, and whole files at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from longtake.cli.terminal import StatusLine
from longtake.files import check_writable, write_whole
from longtake.language.formats import (
    LINE_FORMATS,
    Format,
    format_of,
    json_line,
    one_line,
    render,
    text_line,
)
from longtake.types import Event


class Outputs:
    """All outputs of one run; knows what has been said of each video."""

    def __init__(
        self,
        files: Iterable[Path],
        *,
        to: Format | None,
        several: bool,
        keep: bool,
        quiet: bool,
        status: StatusLine,
    ) -> None:
        """Check every file before anything is done.

        Args:
            to: Format that was asked for; None: by each file's suffix, and text on stdout.
            several: Whether there is more than one video.
            keep: Whether events are wanted afterwards even if no output needs them.
            quiet: With files, nothing on stdout.
        """
        self.files: Mapping[Path, Format] = {path: to or format_of(path) for path in files}
        for path in self.files:
            check_writable(path)
        self.results: dict[str, list[Event]] = {}
        self._status = status
        self._stdout: Format | None = (None if quiet else "text") if self.files else to or "text"
        self._several = several
        self._keep = keep or self.wants_whole  # else a camera's events would fill the memory over the months

    @property
    def formats(self) -> set[Format]:
        """All formats that will be written."""
        return {*self.files.values(), *([self._stdout] if self._stdout else [])}

    @property
    def wants_whole(self) -> bool:
        """Whether something needs all events of a video, those from before a pause included."""
        return bool(self.files) or self._stdout not in LINE_FORMATS

    def begin(self, video: str, events: Iterable[Event] = ()) -> None:
        """A video was opened; ``events`` were said before a pause, and shown then."""
        self.results[video] = list(events)
        if self._several and self._stdout == "text":
            self._print(f"# {one_line(video)}")

    def add(self, video: str, events: Iterable[Event]) -> None:
        """Events that just ended."""
        for event in events:
            if self._keep:
                self.results[video].append(event)
            if self._stdout in LINE_FORMATS:
                self._print(text_line(event) if self._stdout == "text" else json_line(event, video))

    def drop(self, video: str) -> None:
        """A video failed: files tell nothing of it rather than half."""
        self.results.pop(video, None)

    def finish(self) -> None:
        """Write what could not be written event by event; nothing if no video came through."""
        if not self.results:
            return
        for path, to in self.files.items():
            write_whole(path, render(self.results, to))
        if self._stdout is not None and self._stdout not in LINE_FORMATS:
            self._status.clear()
            sys.stdout.write(render(self.results, self._stdout))
            sys.stdout.flush()

    def _print(self, line: str) -> None:
        self._status.clear()
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

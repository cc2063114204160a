"""The work behind ``longtake embed``."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longtake.cli.seeing import Seen, Watch, load_model, run_each
from longtake.cli.terminal import StatusLine
from longtake.errors import UnsupportedRequest
from longtake.files import check_writable, write_whole
from longtake.session import Session, Step
from longtake.types import Embed, Embedding


def run(watch: Watch, output: Path | None, *, every_seconds: float | None) -> int:
    """Embed every source, and write what came of them whole or not at all; the exit status."""
    status = StatusLine(shown=not watch.quiet)
    if output is not None:
        check_writable(output)
    model: Any = load_model(watch, Embed)
    if every_seconds is not None:
        _check_stretches(model)
    rows = Rows(every_seconds)

    def write() -> None:
        if rows.done:
            _write(rows.done, output, status, quiet=watch.quiet)

    failed = run_each(watch, model, status, rows.end, on_step=rows.step, interrupted=write)
    write()
    return failed


class Rows:
    """The vectors of each video; those of a video that fails before its end are not kept."""

    def __init__(self, every_seconds: float | None) -> None:
        self.done: dict[str, list[Embedding]] = {}
        self._every_seconds = every_seconds
        self._video, self._since_seconds, self._found = "", 0.0, list[Embedding]()

    def step(self, video: str, session: Session[Any], step: Step) -> None:
        """A segment was taken in: a stretch may be full."""
        if video != self._video:
            self._video, self._since_seconds, self._found = video, 0.0, []
        full = self._every_seconds and step.progress.seen_seconds - self._since_seconds >= self._every_seconds - 1e-6
        if full and step.segment is not None:
            self._found.append(session.embed())
            self._since_seconds = step.progress.seen_seconds
            session.begin_stretch()

    def end(self, video: str, seen: Seen) -> None:
        """The video has ended: what is left is a stretch too."""
        if seen.session.clock.seen_seconds > self._since_seconds:
            self._found.append(seen.session.embed())
        self.done[video] = self._found


def npz_of(videos: Mapping[str, Sequence[Embedding]]) -> bytes:
    """``video``, ``start``, ``end`` and ``embedding``, a row for each vector."""
    import numpy as np

    rows = [(video, one) for video, found in videos.items() for one in found]
    content = io.BytesIO()
    np.savez(
        content,
        video=np.array([video for video, _ in rows]),
        start=np.array([one.start_seconds for _, one in rows], dtype=np.float64),
        end=np.array([one.end_seconds for _, one in rows], dtype=np.float64),
        embedding=np.stack([one.vector.float().cpu().numpy() for _, one in rows]),
    )
    return content.getvalue()


def _check_stretches(model: Any) -> None:
    """Raise UnsupportedRequest, before anything is read, if the model has no vectors for stretches."""
    if not hasattr(model, "begin_stretch"):
        raise UnsupportedRequest(f"{type(model).__name__} has no vectors for stretches; leave --every out")
    model.begin_stretch(model.init_state())


def _write(videos: Mapping[str, Sequence[Embedding]], output: Path | None, status: StatusLine, *, quiet: bool) -> None:
    content = npz_of(videos)
    status.clear()
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    write_whole(output, content)
    if not quiet:
        status.say(f"{output}: {sum(map(len, videos.values()))} vectors of {len(videos)} videos")

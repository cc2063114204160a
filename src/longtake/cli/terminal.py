"""The line at the bottom of the terminal, on stderr: shows ``Progress`` and gives way to whatever is printed."""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.filesize import decimal
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from longtake.cli.plain import on_one_line

if TYPE_CHECKING:
    from longtake.types import Progress

REDRAW_SECONDS = 0.1
_CLEAR = "\r\x1b[2K"


class StatusLine:
    """Shown only where stderr is a terminal; messages go to stderr in any case."""

    def __init__(self, *, shown: bool = True) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._shown = shown and self._console.is_terminal and not self._console.is_dumb_terminal
        self._drawn = False
        self._drawn_at = -REDRAW_SECONDS
        for handler in logging.getLogger().handlers if self._shown else ():
            handler.addFilter(self._make_room)

    def show(self, name: str, progress: Progress) -> None:
        """Draw anew, at most ten times a second; without ``name`` if there is but one source."""
        now = time.monotonic()
        if not self._shown or now - self._drawn_at < REDRAW_SECONDS:
            return
        with self._console.capture() as drawing:
            self._console.print(_row(name, progress), end="")
        sys.stderr.write(_CLEAR + drawing.get().partition("\n")[0])
        sys.stderr.flush()
        self._drawn, self._drawn_at = True, now

    def clear(self) -> None:
        """Make room for something else; the next ``show`` draws at once."""
        if self._drawn:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._drawn, self._drawn_at = False, -REDRAW_SECONDS

    def say(self, message: str) -> None:
        """A line on stderr."""
        self.clear()
        print(f"longtake: {on_one_line(message)}", file=sys.stderr, flush=True)

    def _make_room(self, record: logging.LogRecord) -> bool:
        self.clear()
        return True


def clock(seconds: float) -> str:
    """``1:02:03``, without hours below one."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def summary(progress: Progress, num_events: int | None = None) -> str:
    """How it went, in one line; without ``num_events`` where nobody asked for events."""
    parts = [f"{progress.seen_seconds:.1f} s seen"]
    if num_events is not None:
        parts.append(f"{num_events} event{'' if num_events == 1 else 's'}")
    parts += [f"{progress.realtime_factor:.1f}x real time", f"state {decimal(progress.state_bytes)}"]
    if progress.dropped_frames:
        parts.append(f"{progress.dropped_frames} frames dropped")
    return ", ".join(parts)


def _row(name: str, progress: Progress) -> Table:
    total = progress.total_seconds
    seen = clock(progress.seen_seconds) + (f" / {clock(total)}" if total else "")
    cells: list[Text | ProgressBar] = [Text(on_one_line(name)[:24], style="bold")] if name else []
    cells.append(Text(seen))
    if total:
        cells.append(ProgressBar(total=total, completed=min(progress.seen_seconds, total), width=12))
    cells += [
        Text(f"{progress.realtime_factor:.1f}x", style="green"),
        Text(f"lag {progress.lag_seconds:.1f} s", style="yellow" if progress.lag_seconds > 1 else "dim"),
        Text(f"dropped {progress.dropped_frames}", style="yellow" if progress.dropped_frames else "dim"),
        Text(f"state {decimal(progress.state_bytes)}", style="dim"),
    ]
    row = Table.grid(*("" for _ in cells), padding=(0, 2))
    row.add_row(*cells)
    return row

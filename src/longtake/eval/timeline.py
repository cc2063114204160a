"""A picture of what was said of a video: its events as bars along time, with a strip of its frames above.

With up to ``MAX_ROWS`` events each has a row of its own and its words beside the bar; with more, bars are packed and the
words that fit are written into them. Bars of one subject (the first words of the sentence) have one colour.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from longtake.errors import ConfigError
from longtake.types import Event, Segment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_ROWS = 40
SUBJECT_WORDS = 3
MAX_WORDS_SHOWN = 60
"""Characters of a sentence; the rest becomes an ellipsis."""
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2", "#6cc5b0", "#ff8ab7", "#9c6b4e", "#97bbf5", "#9498a0")
INK, FAINT, PAPER = "#22272e", "#d7dce2", "#ffffff"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """One frame for the strip."""

    rgb: UInt8[np.ndarray, "height width 3"]
    pts_seconds: float


class Filmstrip:
    """Keeps a few frames of a stream of any length, evenly spread: when full, every other one goes."""

    def __init__(self, most: int = 24) -> None:
        self.pictures: tuple[Picture, ...] = ()
        self._most = most
        self._stride = 1
        self._seen = 0

    def add(self, segment: Segment) -> None:
        """Offer the first frame of a segment."""
        if self._seen % self._stride == 0:
            rgb = segment.pixels[0].permute(1, 2, 0).cpu().numpy().copy()
            self.pictures += (Picture(rgb=rgb, pts_seconds=segment.pts_seconds[0]),)
        self._seen += 1
        if len(self.pictures) > self._most:
            self.pictures = self.pictures[::2]
            self._stride *= 2


def draw_timeline(
    events: Sequence[Event],
    path: str | Path,
    *,
    title: str = "",
    seen_seconds: float | None = None,
    pictures: Sequence[Picture] = (),
) -> None:
    """Draw the events into an image file (PNG, PDF or SVG by its suffix), which appears whole or not at all.

    Args:
        seen_seconds: Length of the time axis; None: up to the last event's end.

    Raises:
        ConfigError: The file cannot be written, or its suffix names no picture.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = Path(path)
    events = sorted(events, key=lambda event: (event.start_seconds, event.end_seconds))
    end = max([seen_seconds or 0.0, *(event.end_seconds for event in events)]) or 1.0
    rows = _rows(events)
    num_rows = max(rows, default=0) + 1
    strip_inches = 0.9 if pictures else 0.0
    figure = Figure(figsize=(12, 1.3 + strip_inches + 0.27 * num_rows), facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(figure)
    axes = _axes(figure, strip_inches, 0.27 * num_rows + 0.3, end, pictures)
    _style(axes, end, num_rows)
    if title:
        figure.suptitle(_short(title), x=0.01, ha="left", color=INK, fontsize=12, fontweight="bold")
    _bars(axes, events, rows, end)
    _write(figure, path)

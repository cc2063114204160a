"""A picture of what was said of a video: its events as bars along time, with a strip of its frames above.

With up to ``MAX_ROWS`` events each has a row of its own and its words beside the bar; with more, bars are packed and
only words that fit into them are written. A bar has the colour that its sentence names; otherwise sentences with equal
first words share one.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from longtake.errors import ConfigError
from longtake.files import check_writable, write_whole
from longtake.language.formats import one_line
from longtake.types import Event, Segment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS = 60
SUBJECT_WORDS = 3
MAX_CHARACTERS = 70
"""Of a sentence; the rest becomes an ellipsis."""
WIDTH_INCHES, ROW_INCHES, STRIP_INCHES = 12.0, 0.27, 0.85
TICK_SECONDS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400)
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2", "#6cc5b0", "#ff8ab7", "#9c6b4e", "#97bbf5", "#9498a0")
NAMED_COLOURS = {
    "red": "#e5484d",
    "orange": "#f5892b",
    "yellow": "#f0c419",
    "green": "#3ca951",
    "cyan": "#35b8c4",
    "blue": "#4269d0",
    "purple": "#8e5bd8",
    "violet": "#8e5bd8",
    "pink": "#ff8ab7",
    "magenta": "#d94fb2",
    "brown": "#9c6b4e",
    "white": "#dfe3e8",
    "grey": "#9498a0",
    "gray": "#9498a0",
    "black": "#3b4048",
}
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
        self.seen_seconds = 0.0
        self._most = most
        self._stride = 1
        self._seen = 0

    def add(self, segment: Segment) -> None:
        """Offer the first frame of a segment."""
        self.seen_seconds = segment.end_seconds
        if self._seen % self._stride == 0:
            rgb = segment.pixels[0].permute(1, 2, 0).cpu().numpy().copy()
            self.pictures += (Picture(rgb=rgb, pts_seconds=segment.pts_seconds[0]),)
        self._seen += 1
        if len(self.pictures) > self._most:
            self.pictures = self.pictures[::2]
            self._stride *= 2


def check_picture(path: str | Path) -> None:
    """Find out before the work whether ``draw_timeline`` will be able to write ``path``.

    Raises:
        ConfigError: It cannot be written, or its suffix names no picture.
        ModuleNotFoundError: matplotlib is not installed (``longtake[eval]``).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    known = FigureCanvasAgg.get_supported_filetypes()
    if Path(path).suffix.lower().removeprefix(".") not in known:
        raise ConfigError(f"{path} is no name for a picture; expected a suffix such as .png, .svg or .pdf")
    check_writable(path)


def draw_timeline(
    events: Sequence[Event],
    path: str | Path,
    *,
    title: str = "",
    seen_seconds: float | None = None,
    pictures: Sequence[Picture] = (),
) -> None:
    """Draw the events into a picture file, which appears whole or not at all.

    Args:
        seen_seconds: Length of the time axis; None: up to the last event's end.

    Raises:
        ConfigError: As for ``check_picture``.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_picture(path)
    events = sorted(events, key=lambda event: (event.start_seconds, event.end_seconds))
    end = max([seen_seconds or 0.0, *(event.end_seconds for event in events)]) or 1.0
    rows = _rows(events)
    rows_inches = ROW_INCHES * (max(rows, default=0) + 1)
    strip_inches = STRIP_INCHES if pictures else 0.0
    figure = Figure(figsize=(WIDTH_INCHES, 1.0 + strip_inches + rows_inches), facecolor=PAPER, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    ratios = [strip_inches, rows_inches] if pictures else [rows_inches]
    axes = figure.subplots(len(ratios), 1, squeeze=False, height_ratios=ratios)[:, 0]
    heading = f"{_short(title)}  {len(events)} event{'' if len(events) == 1 else 's'}".strip()
    figure.suptitle(heading, x=0.012, ha="left", color=INK, fontsize=12, fontweight="bold")
    if pictures:
        _draw_strip(axes[0], pictures, end)
    _draw_axis(axes[-1], end, max(rows, default=0) + 1)
    _draw_bars(axes[-1], events, rows, end)
    drawing = io.BytesIO()
    canvas.print_figure(drawing, format=Path(path).suffix.lower().removeprefix("."), dpi=110)
    write_whole(path, drawing.getvalue())


def _rows(events: Sequence[Event]) -> list[int]:
    """The row of each event: its own, or the first that is free where there are too many."""
    if len(events) <= MAX_ROWS:
        return list(range(len(events)))
    ends: list[float] = []
    rows: list[int] = []
    for event in events:
        row = next((index for index, end in enumerate(ends) if end <= event.start_seconds), len(ends))
        ends[row:] = [event.end_seconds, *ends[row + 1 :]]
        rows.append(row)
    return rows


def _draw_strip(axes: Axes, pictures: Sequence[Picture], end: float) -> None:
    """As many frames side by side as fit, each the nearest to the middle of its stretch of time."""
    height, width = pictures[0].rgb.shape[:2]
    most = max(1, round((WIDTH_INCHES - 0.4) / (STRIP_INCHES * width / height)))
    count = min(most, len(pictures))
    for index in range(count):
        left, right = end * index / count, end * (index + 1) / count
        middle = (left + right) / 2
        nearest = min(pictures, key=lambda picture: abs(picture.pts_seconds - middle))
        axes.imshow(nearest.rgb, extent=(left, right, 0, 1), aspect="auto", interpolation="antialiased")
        axes.axvline(left, color=PAPER, linewidth=2)
    axes.set(xlim=(0, end), ylim=(0, 1))
    axes.axis("off")


def _draw_axis(axes: Axes, end: float, num_rows: int) -> None:
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    step = next((step for step in TICK_SECONDS if end / step <= 12), end / 10)
    axes.xaxis.set_major_locator(MultipleLocator(step))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: _clock(seconds, step)))
    axes.set(xlim=(0, end), ylim=(num_rows - 0.4, -0.6), yticks=[])
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", colors=INK, length=0, labelsize=9)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(FAINT)


def _draw_bars(axes: Axes, events: Sequence[Event], rows: Sequence[int], end: float) -> None:
    colours = _colours(events)
    seconds_per_character = end / (WIDTH_INCHES - 0.4) * 0.078
    plain = {"va": "center", "color": INK, "fontsize": 9, "bbox": {"facecolor": PAPER, "linewidth": 0, "pad": 1}}
    packed = len(events) > MAX_ROWS
    for event, row, colour in zip(events, rows, colours, strict=True):
        length = max(event.end_seconds - event.start_seconds, end / 1000)
        axes.barh(row, length, left=event.start_seconds, height=0.72, color=colour, linewidth=0)
        words = _short(event.text)
        needed = len(words) * seconds_per_character
        if packed:
            if needed <= length:
                axes.text(event.start_seconds + length / 2, row, words, ha="center", va="center", fontsize=8, color=INK)
            continue
        gap = seconds_per_character
        if event.start_seconds + length + gap + needed <= end:
            axes.text(event.start_seconds + length + gap, row, words, **plain)
        elif needed + gap <= event.start_seconds:
            axes.text(event.start_seconds - gap, row, words, ha="right", **plain)
        else:
            axes.text(end / 2, row, words, ha="center", **plain)
    if not events:
        axes.text(end / 2, 0, "no events", ha="center", **plain)


def _colours(events: Sequence[Event]) -> list[str]:
    by_subject: dict[str, str] = {}
    colours: list[str] = []
    for event in events:
        words = event.text.casefold().split()
        named = next((NAMED_COLOURS[word] for word in words if word in NAMED_COLOURS), None)
        other = COLOURS[len(by_subject) % len(COLOURS)]
        colours.append(named or by_subject.setdefault(" ".join(words[:SUBJECT_WORDS]), other))
    return colours


def _short(text: str) -> str:
    # a dollar sign would start a formula
    return textwrap.shorten(one_line(text), MAX_CHARACTERS, placeholder=" \N{HORIZONTAL ELLIPSIS}").replace("$", r"\$")


def _clock(seconds: float, step: float) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    shown = f"{rest:04.1f}" if step < 1 else f"{round(rest):02}"
    return f"{hours}:{minutes:02}:{shown}" if hours else f"{minutes}:{shown}"

"""Films whose events are known: stretches of plain colours, as ``tests.contract.colours.Colours`` tells them apart."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import av
import numpy as np

FPS = 8
PAINT = {"r": (200, 20, 20), "g": (20, 200, 20), "b": (20, 20, 200), "x": (90, 90, 90)}
NAMES = {"r": "red", "g": "green", "b": "blue", "x": "grey"}


def write_film(path: Path, shown: str, *, codec: str = "libx264") -> Path:
    """A film with one letter of ``shown`` for each quarter of a second."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=FPS)
        stream.width = stream.height = 48
        stream.pix_fmt = "yuv420p"
        stream.gop_size = 8
        for letter in shown:
            picture = np.broadcast_to(np.array(PAINT[letter], dtype=np.uint8), (48, 48, 3))
            for _ in range(FPS // 4):
                frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
                container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def expected_events(shown: str) -> list[tuple[float, float, str]]:
    """Start, end and sentence of every stretch that ends in the film."""
    events, counts, start = [], dict.fromkeys(NAMES, 0), 0
    for letter, run in groupby(shown):
        end = start + len(list(run))
        counts[letter] += 1
        text = NAMES[letter] if counts[letter] == 1 else f"{NAMES[letter]} for time {counts[letter]}"
        if end < len(shown):
            events.append((start / 4, end / 4, text))
        start = end
    return events

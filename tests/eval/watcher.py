"""A model that remembers when each of its frames was, and says what it is told to say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from longtake.types import Answer, Ask, Choose, Request, Response, Segment, SegmentSpec

Speak = Callable[[str, tuple[float, ...]], str]
"""From a question and the times of the frames seen, the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    times: tuple[float, ...] = ()
    shades: tuple[int, ...] = ()
    """Brightness of the first pixel of each frame."""
    total_seconds: float | None = None


class Watcher:
    """Four frames a second in segments of one second."""

    segment_spec = SegmentSpec(num_frames=4, fps=4.0, height=16, width=16)
    fingerprint = "watcher"

    def __init__(self, speak: Speak, *, supports: frozenset[type[Request]] = frozenset({Ask, Choose})) -> None:
        self.speak, self.supports = speak, supports
        self.asked: list[tuple[str, Seen]] = []
        """Every question, and the state in which it was asked."""

    def init_state(self) -> Seen:
        return Seen()

    def max_state_bytes(self) -> int:
        return 10**9

    def advance(self, state: Seen, segment: Segment) -> Seen:
        shades = tuple(int(frame[0, 0, 0]) for frame in segment.pixels)
        return Seen(
            times=(*state.times, *segment.pts_seconds),
            shades=(*state.shades, *shades),
            total_seconds=segment.total_seconds,
        )

    def respond(self, state: Seen, request: Request) -> Iterator[Response]:
        assert isinstance(request, Ask | Choose)
        self.asked.append((request.question, state))
        if isinstance(request, Choose):
            yield Answer(text=request.options[0], choice=0)
            return
        yield Answer(text=self.speak(request.question, state.times))

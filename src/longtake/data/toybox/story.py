"""Reading a script back: who was where when, which sentences are said once. The questions are asked on top of this."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from longtake.data.toybox.motion import Stretch, Track, tracks
from longtake.data.toybox.world import Point, Script, Span, ToyEvent

ROW_NAMES = ("top", "middle", "bottom")
ROW_BORDERS = (0.36, 0.665)
REGIONS = tuple(f"{row} {side}" for row in ROW_NAMES for side in ("left", "right"))
_JUST = 0.01


def region_of(point: Point) -> str:
    """One of ``REGIONS``; the seats of the stage lie clear of the borders."""
    x, y = point
    row = ROW_NAMES[sum(y > border for border in ROW_BORDERS)]
    return f"{row} {'left' if x < 0.5 else 'right'}"


class Story:
    """One script, ready to be asked about."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.events = script.events
        self.names = tuple(toy.name for toy in script.cast)

    @cached_property
    def tracks(self) -> tuple[Track, ...]:
        return tracks(self.script)

    @cached_property
    def told_once(self) -> list[ToyEvent]:
        """Events that their sentence names without doubt and that overlap no other."""
        said = Counter(event.sentence for event in self.events)
        alone = set(self._alone())
        return [event for i, event in enumerate(self.events) if said[event.sentence] == 1 and i in alone]

    def _alone(self) -> Iterator[int]:
        ended = -1.0
        for i, event in enumerate(self.events):
            next_start = self.events[i + 1].start_seconds if i + 1 < len(self.events) else self.script.seconds
            if ended <= event.start_seconds and event.end_seconds <= next_start:
                yield i
            ended = max(ended, event.end_seconds)

    def follower(self, event: ToyEvent, step: int) -> ToyEvent | None:
        """The event right after (``step`` 1) or before (-1), if that is a matter of no doubt."""
        index = self.events.index(event) + step
        other = self.events[index] if 0 <= index < len(self.events) else None
        return other if other in self.told_once else None

    def rest(self, toy: int, seconds: float) -> Stretch | None:
        """The toy at rest on stage at that time, or None."""
        stretch = self.tracks[toy].at(seconds)
        return stretch if stretch.event is None and stretch.where == "stage" else None

    def region(self, toy: int, seconds: float) -> str | None:
        """Where the toy rests; None if it does not."""
        stretch = self.rest(toy, seconds)
        return None if stretch is None else region_of((float(stretch.rest.x), float(stretch.rest.y)))

    def rest_span(self, toy: int, seconds: float) -> Span:
        """The rest that the time lies in."""
        track = self.tracks[toy]
        index = track.stretches.index(track.at(seconds))
        last = index + 1 == len(track.starts)
        return track.starts[index], self.script.seconds if last else track.starts[index + 1]

    def in_box(self, seconds: float) -> list[int]:
        return [toy for toy, track in enumerate(self.tracks) if track.at(seconds).where == "box"]

    def box_changes(self, until: float) -> list[ToyEvent]:
        """Hidings and comings out that have ended by then."""
        return [e for e in self.events if e.action in ("hides", "comes out") and e.end_seconds <= until]

    def just_before(self, event: ToyEvent) -> float:
        return event.start_seconds - _JUST

    @property
    def end(self) -> float:
        return self.script.seconds - _JUST


def hull(*spans: Span) -> Span:
    """The shortest span that holds all of them."""
    return min(span[0] for span in spans), max(span[1] for span in spans)


def span_of(event: ToyEvent) -> Span:
    return event.start_seconds, event.end_seconds

"""What was wrong with a source: from counts to lost frames and to lines a person can use.

Headers are advice. What a header says is compared with what came out, and a difference is said aloud; healthy oddities
(variable frame rate, hidden pre-roll, sound longer than the picture, field pairs, hidden reference frames) are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from longtake.video.picture import UPRIGHT, Orientation
from longtake.video.tally import Declared, Tally
from longtake.video.timeline import Timeline

DURATION_TOLERANCE = 0.05
"""Share by which a declared duration may differ from the span of the pictures."""
DURATION_SLACK_SECONDS = 0.2
"""A smaller difference is never mentioned: the last frame's own duration is often unknown."""
MAX_NAMED = 5
"""So many places are named, the rest is counted."""


@runtime_checkable
class Facts(Protocol):
    """The two sides of a container: what it declares, and what a run over it counted."""

    tally: Tally

    @property
    def declared(self) -> Declared: ...


@dataclass(slots=True, kw_only=True)
class Findings:
    """What one run over the pictures has seen."""

    size: tuple[int, int] = (0, 0)
    """Of the first picture: width and height after rotation."""
    orientation: Orientation = UPRIGHT
    frames: int = 0
    held: int = 0
    """Stand-ins for lost frames, counted in neither frames nor lost ones."""
    is_partial: bool = False
    """The run did not start at the beginning or has not reached the end."""
    resizes: list[tuple[tuple[int, int], float]] = field(default_factory=list)
    last_size: tuple[int, int] = (0, 0)

    def see(self, size: tuple[int, int], seconds: float) -> None:
        """Count a picture."""
        if self.frames == 0:
            self.size = self.last_size = size
        elif size != self.last_size:
            self.resizes.append((size, seconds))
            self.last_size = size
        self.frames += 1


def lost_frames(facts: Facts, timeline: Timeline, findings: Findings) -> int:
    """Frames that the source had but that could not be shown."""
    tally = facts.tally
    silent = num_silent(facts)
    if findings.is_partial:
        return tally.bad_packets
    is_damaged = bool(
        tally.bad_packets or silent or tally.damaged_packets or tally.damaged_pictures or tally.read_error
    )
    declared = facts.declared.frames
    missing_end = missing_seconds(facts, timeline)
    if declared and (is_damaged or missing_end):
        return max(0, declared - tally.hidden_packets - findings.frames)
    return max(tally.bad_packets + silent, num_missing(facts, timeline) + round(missing_end * facts.declared.fps))


def num_missing(facts: Facts, timeline: Timeline) -> int:
    """Frames missing inside a stream that promises a constant rate."""
    return timeline.regularity.num_missing if facts.declared.keeps_rate else 0


def missing_seconds(facts: Facts, timeline: Timeline) -> float:
    """By how much the pictures fall short of the duration declared for them."""
    declared, span = facts.declared.pictures_seconds, span_seconds(facts, timeline)
    if not declared or timeline.jumps or declared < span or not is_off(declared, timeline.last_seconds, span):
        return 0.0
    return declared - span


def num_silent(facts: Facts) -> int:
    """Packets that gave neither a picture nor an error, where each should give one."""
    tally = facts.tally
    silent = max(0, tally.packets - tally.hidden_packets - tally.bad_packets - tally.pictures)
    is_damaged = tally.bad_packets or tally.damaged_packets or tally.damaged_pictures
    may_hide = facts.declared.hides_pictures or tally.has_fields
    return 0 if may_hide and not is_damaged else silent


def broken_promise(facts: Facts, timeline: Timeline) -> float | None:
    """A declared duration that the pictures do not keep."""
    declared = facts.declared
    if timeline.jumps:
        return None
    # How long the last frame stays is often unknown: anything from its own time to one step later is kept.
    low, high = timeline.last_seconds, span_seconds(facts, timeline)
    for promise in (declared.pictures_seconds, declared.fragment_seconds):
        if promise and is_off(promise, low, high):
            return promise
    whole, start, others = declared.whole_seconds, timeline.start_seconds, facts.tally.others_end_seconds
    if not whole or not declared.promises_whole:
        return None
    # Some containers count from their own zero, some to the end of the sound.
    ends = ((low, high), (low + start, high + start), (others, others), (others - start, others - start))
    return whole if all(is_off(whole, *end) for end in ends) else None


def span_seconds(facts: Facts, timeline: Timeline) -> float:
    """Length of what was read, with the last packet's own duration."""
    latest = facts.tally.latest
    return timeline.span_to(sum(latest) if latest else None)


def is_off(declared: float, low: float, high: float) -> bool:
    """A declared duration is outside the real one's bounds by more than rounding and habit explain."""
    difference = max(low - declared, declared - high)
    return difference > DURATION_TOLERANCE * min(declared, high) and difference > min(DURATION_SLACK_SECONDS, high / 2)


def warnings_about(facts: Facts, timeline: Timeline, findings: Findings) -> tuple[str, ...]:
    """One line for each thing that was wrong."""
    lines = [*facts.tally.notes, *_damage(facts, timeline, findings), *_times(timeline)]
    if findings.resizes:
        lines.append(_resizes(findings))
    if not findings.orientation.is_exact:
        lines.append(f"the asked rotation is no multiple of 90; turned by {findings.orientation.degrees} degrees")
    return tuple(lines)


def _damage(facts: Facts, timeline: Timeline, findings: Findings) -> list[str]:
    tally, lines = facts.tally, list[str]()
    lost, missing = lost_frames(facts, timeline, findings), num_missing(facts, timeline)
    silent = 0 if findings.is_partial else num_silent(facts)
    if tally.damaged_names:
        lines.append(f"damaged pictures left out: {name_some(tally.damaged_names)}")
    elif tally.bad_packets:
        lines.append(f"{count(tally.bad_packets, 'damaged packet')} skipped, {count(lost, 'frame')} lost")
    elif silent:
        lines.append(f"{count(silent, 'packet')} gave no picture: data they build on is missing")
    elif missing:
        lines.append(f"{count(missing, 'frame')} missing {_places(timeline.regularity.holes)}")
    doubtful = max(tally.damaged_pictures, tally.damaged_packets)
    if doubtful:
        lines.append(f"{count(doubtful, 'picture')} may look wrong: data is missing or damaged")
    if tally.read_error:
        lines.append(f"reading failed on the way ({tally.read_error}); what came through was used")
    broken = None if findings.is_partial else broken_promise(facts, timeline)
    if broken is not None:
        span = span_seconds(facts, timeline)
        if missing_seconds(facts, timeline):
            lines.append(f"the pictures end at {span:.1f} s of {broken:.1f} s: the source is cut off or damaged")
        else:
            lines.append(f"declared duration {broken:.1f} s, but the pictures span {span:.1f} s and are believed")
    return lines


def _times(timeline: Timeline) -> list[str]:
    lines = [
        f"time stamps jump by {skipped:+.1f} s at {at:.2f} s; the gap was closed"
        for at, skipped in timeline.jumps[:MAX_NAMED]
    ]
    if len(timeline.jumps) > MAX_NAMED:
        lines.append(f"{len(timeline.jumps) - MAX_NAMED} more jumps of the time stamps")
    if timeline.num_stuck:
        lines.append(f"{count(timeline.num_stuck, 'frame')} repeated a time stamp and were spaced at the frame rate")
    return lines


def _resizes(findings: Findings) -> str:
    width, height = findings.size
    (new_width, new_height), at = findings.resizes[0]
    more = f", {len(findings.resizes)} changes in all" if len(findings.resizes) > 1 else ""
    return (
        f"picture size changes from {width}x{height} to {new_width}x{new_height} at {at:.2f} s{more}; "
        "later frames are fitted into the first size"
    )


def _places(holes: Sequence[tuple[float, float]]) -> str:
    return name_some([f"between {start:.2f} and {end:.2f} s" for start, end in holes])


def name_some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def count(number: int, noun: str) -> str:
    """``1 frame``, ``2 frames``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

"""What a container declares about itself, and what one run over it counted: the report compares the two."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Facts from headers, as they stood when the source was opened. All of it is advice."""

    fps: float
    """Declared or guessed rate."""
    tick: Fraction = Fraction(0)
    """Seconds per timestamp unit; 0 where there is no time base."""
    size: tuple[int, int] = (0, 0)
    """Width and height before rotation."""
    jump_seconds: float = float("inf")
    """A larger gap between two pictures is a break in the recording."""
    frames: int | None = None
    """Number of pictures in the index."""
    pictures_seconds: float | None = None
    """Duration of the video stream itself."""
    whole_seconds: float | None = None
    """Duration of the container, sound included."""
    promises_whole: bool = False
    """The end of every stream is known, so that ``whole_seconds`` can be checked."""
    fragment_seconds: float | None = None
    """Duration in the index of a fragmented MP4."""
    hides_pictures: bool = False
    """The codec has packets that rightly give no picture."""
    keeps_rate: bool = False
    """Declares one rate for the stream and no time for each picture, so that a gap means lost pictures."""
    can_seek: bool = False
    """A jump to a keyframe gives the same frames as reading up to it."""

    @property
    def seconds(self) -> float | None:
        """Best guess at the length."""
        return self.pictures_seconds or self.whole_seconds


@dataclass(slots=True, kw_only=True)
class Tally:
    """What the demuxer and the decoder did, in numbers."""

    packets: int = 0
    """With data, hidden ones included."""
    hidden_packets: int = 0
    """Decoded but not shown (before an edit list's start)."""
    bad_packets: int = 0
    """Refused by the decoder."""
    damaged_packets: int = 0
    """Marked as damaged by the demuxer."""
    damaged_pictures: int = 0
    """Marked as damaged by the decoder."""
    damaged_names: list[str] = field(default_factory=list)
    """Files of a folder that did not decode."""
    pictures: int = 0
    has_fields: bool = False
    """Interlaced: two packets may make one picture."""
    latest: tuple[int, int] | None = None
    """Highest timestamp of a packet, and its declared duration, in timestamp units."""
    end_byte: int = 0
    """Where the last packet ends in the file, roughly."""
    others_end_seconds: float = 0.0
    """Media time at which sound and the like ended."""
    read_error: str | None = None
    """The demuxer's error that ended or interrupted reading."""
    notes: list[str] = field(default_factory=list)
    """Oddities of the source as a whole, for the report."""
    lost_pts: list[int] = field(default_factory=list)
    """Timestamps of refused packets for which nothing was shown yet."""

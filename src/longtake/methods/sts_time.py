"""The two time encodings of STS: seconds to buckets and back.

``stream``: buckets count grid steps back from the segment's end, the last bucket being that end; an event that began
before the window begins in bucket 0. Going back to seconds takes the frames' own timestamps. ``video``: buckets
divide the length of the video, which must be known (the paper's encoding).
"""

from __future__ import annotations

from longtake.language.tokenizer import TimedText
from longtake.methods.sts_config import TimeConfig
from longtake.types import Event


def stream_bucket(frame: int, border: int, num_buckets: int) -> int:
    """Bucket of the time of ``frame`` in a segment that ends at frame number ``border``."""
    return max(num_buckets - 1 - (border - frame), 0)


def video_bucket(seconds: float, total_seconds: float, num_buckets: int) -> int:
    """Bucket of a time in a video of ``total_seconds``."""
    return min(max(round(seconds / total_seconds * (num_buckets - 1)), 0), num_buckets - 1)


def event_of(
    said: TimedText, time: TimeConfig, clock: tuple[float, ...], fresh_frames: int, total_seconds: float
) -> Event | None:
    """What was said, in seconds; None for an event that did not end in this segment or has no length."""
    if time.encoding == "video":
        return video_event(said, total_seconds, time.num_buckets)
    return stream_event(said, clock, fresh_frames, time.num_buckets)


def stream_event(said: TimedText, clock: tuple[float, ...], fresh_frames: int, num_buckets: int) -> Event | None:
    """The event in seconds; None if it did not end in the segment or has no length.

    Args:
        clock: times of the latest frames, oldest first, then the segment's end.
        fresh_frames: frames in the segment.
    """
    last = num_buckets - 1
    start_back, end_back = last - said.start_bucket, last - said.end_bucket
    if end_back > fresh_frames:
        return None
    start, end = (clock[max(len(clock) - 1 - back, 0)] for back in (start_back, end_back))
    clamped = said.start_bucket == 0 and len(clock) > last
    return _event(said, start, end, clamped=clamped)


def video_event(said: TimedText, total_seconds: float, num_buckets: int) -> Event | None:
    """The event in seconds; None if it has no length."""
    start, end = (bucket / (num_buckets - 1) * total_seconds for bucket in (said.start_bucket, said.end_bucket))
    return _event(said, start, end, clamped=False)


def _event(said: TimedText, start: float, end: float, *, clamped: bool) -> Event | None:
    if start >= end:
        return None
    return Event(start_seconds=start, end_seconds=end, text=said.text, score=said.score, start_clamped=clamped)

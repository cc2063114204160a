"""Buckets and seconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.language.tokenizer import TimedText
from longtake.methods.sts_time import stream_bucket, stream_event, video_bucket, video_event

BUCKETS = 17


@given(
    border=st.integers(1, 60),
    fresh=st.integers(1, 4),
    end_back=st.integers(0, 4),
    length=st.integers(1, 12),
    step=st.floats(0.05, 3.0),
)
def test_stream_times_come_back_from_the_clock(
    border: int, fresh: int, end_back: int, length: int, step: float
) -> None:
    end = border - min(end_back, fresh)
    start = end - length
    if start < 0 or end < 1:
        return
    clock = tuple(frame * step for frame in range(max(border - BUCKETS + 1, 0), border + 1))
    said = TimedText(
        start_bucket=stream_bucket(start, border, BUCKETS), end_bucket=stream_bucket(end, border, BUCKETS), text="a"
    )
    event = stream_event(said, clock, fresh, BUCKETS)
    assert event is not None
    assert event.start_seconds == start * step
    assert event.end_seconds == end * step
    assert event.start_clamped == (border - start >= BUCKETS - 1 and border >= BUCKETS)


def test_stream_event_that_ended_before_the_segment_is_left_out() -> None:
    clock = tuple(float(frame) for frame in range(11))
    said = TimedText(start_bucket=BUCKETS - 8, end_bucket=BUCKETS - 6, text="a")
    assert stream_event(said, clock, 4, BUCKETS) is None
    assert stream_event(said, clock, 5, BUCKETS) is not None


def test_stream_event_that_began_before_the_window_is_marked() -> None:
    clock = tuple(float(frame) for frame in range(20, 20 + BUCKETS))
    event = stream_event(TimedText(start_bucket=0, end_bucket=BUCKETS - 2, text="a"), clock, 4, BUCKETS)
    assert event is not None
    assert event.start_clamped
    assert event.start_seconds == 20.0


@pytest.mark.parametrize("bucket", [3, 5])
def test_event_without_length_is_left_out(bucket: int) -> None:
    said = TimedText(start_bucket=bucket, end_bucket=3, text="a")
    assert video_event(said, 30.0, 32) is None


@given(st.floats(0, 1), st.floats(1.0, 1e4))
def test_video_bucket_is_the_nearest(part: float, total: float) -> None:
    bucket = video_bucket(part * total, total, 32)
    assert abs(bucket / 31 * total - part * total) <= total / 62 * 1.000001

"""Timestamps become seconds that never go back; only promised frames are missed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.video.timeline import Timeline, TimestampChooser, fill_missing_pts

TICK = Fraction(1, 90_000)
STEP = 3600


def timeline(*, jump_seconds: float = 10.0) -> Timeline:
    return Timeline(tick=TICK, step_seconds=0.04, jump_seconds=jump_seconds)


def seconds_of(stamps: list[int | None], line: Timeline) -> list[float]:
    return [line.place(stamp, STEP) for stamp in stamps]


@dataclass
class Stamped:
    """A picture that has only a timestamp."""

    pts: int | None


@pytest.mark.parametrize("start", [0, 133_200, -7200, 2**33])
def test_timeline_counts_from_the_first_frame(start: int) -> None:
    line = timeline()
    assert seconds_of([start, start + STEP, start + 3 * STEP], line) == [0.0, 0.04, 0.12]
    assert line.start_seconds == start / 90_000


def test_timeline_takes_times_from_stamps_and_not_from_counting() -> None:
    assert seconds_of([0, 90, 450_000], timeline()) == [0.0, 0.001, 5.0]


@pytest.mark.parametrize("jump", [90_000 * 5000, -90_000 * 5000, 2**33, -90_001])
def test_timeline_closes_a_jump_to_one_step_and_notes_it(jump: int) -> None:
    line = timeline()
    stamps = [0, STEP, 2 * STEP, 2 * STEP + jump, 3 * STEP + jump, 4 * STEP + jump]
    assert seconds_of(stamps, line) == pytest.approx([0, 0.04, 0.08, 0.12, 0.16, 0.20])
    assert line.jumps == [(pytest.approx(0.12), pytest.approx(jump / 90_000))]


def test_timeline_keeps_a_long_gap_where_the_container_may_have_one() -> None:
    line = timeline(jump_seconds=3600)
    assert seconds_of([0, STEP, STEP + 40 * 90_000], line) == [0.0, 0.04, 40.04]
    assert line.jumps == []


def test_timeline_spaces_frames_without_stamps_at_the_latest_step() -> None:
    assert seconds_of([None, None, None], timeline()) == pytest.approx([0.0, 0.04, 0.08])
    assert seconds_of([0, 2 * STEP, None, None], timeline()) == pytest.approx([0.0, 0.08, 0.16, 0.24])
    assert seconds_of([None, None, 900_000, 900_000 + STEP], timeline()) == pytest.approx([0.0, 0.04, 0.08, 0.12])


def test_timeline_spaces_frames_whose_stamps_stand_still() -> None:
    line = timeline()
    assert seconds_of([500] * 5, line) == pytest.approx([0.0, 0.0, 0.04, 0.08, 0.12])
    assert line.num_stuck == 3


def test_timeline_lets_a_small_slip_back_stand_still() -> None:
    assert seconds_of([0, 2 * STEP, STEP, 3 * STEP], timeline()) == pytest.approx([0.0, 0.08, 0.08, 0.12])


def test_timeline_goes_on_at_the_time_it_is_told_after_an_outage() -> None:
    line = timeline()
    seconds_of([0, STEP], line)
    line.resume_at(30.0)
    assert seconds_of([77, 77 + STEP], line) == pytest.approx([30.0, 30.04])
    line.resume_at(1.0)
    assert line.place(5) == pytest.approx(30.04), "never back"


@given(st.lists(st.one_of(st.none(), st.integers(-(2**40), 2**40)), max_size=60))
def test_timeline_never_goes_back_whatever_the_stamps(stamps: list[int | None]) -> None:
    seconds = seconds_of(stamps, timeline())
    assert seconds == sorted(seconds)
    assert not seconds or seconds[0] == 0.0
    assert all(after - before <= 10.0 for before, after in itertools.pairwise(seconds))


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=60), st.integers(-(2**33), 2**33))
def test_timeline_is_exact_for_rising_stamps(steps: list[int], start: int) -> None:
    stamps = [start]
    for step in steps:
        stamps.append(stamps[-1] + step)
    assert seconds_of(list(stamps), timeline()) == [(stamp - start) / 90_000 for stamp in stamps]


def test_missing_frames_are_counted_where_a_constant_rate_is_promised() -> None:
    line = timeline()
    seconds_of([number * STEP for number in range(60) if number not in (20, 41, 42)], line)
    assert line.regularity.num_missing == 3
    assert [start for start, _ in line.regularity.holes] == pytest.approx([19 * 0.04, 40 * 0.04])


@pytest.mark.parametrize(
    "stamps",
    [
        pytest.param([number * STEP + (number % 3) * 900 for number in range(60)], id="uneven"),
        pytest.param([number * STEP * 3 for number in range(60)], id="declared step is not kept"),
        pytest.param([0, STEP, 2 * STEP, 10 * STEP, 11 * STEP], id="too short to tell"),
        pytest.param([number * STEP // 2 for number in range(60)], id="denser than declared"),
    ],
)
def test_no_frames_are_missed_in_a_stream_of_variable_rate(stamps: list[int]) -> None:
    line = timeline()
    seconds_of(list(stamps), line)
    assert line.regularity.num_missing == 0


def test_no_frames_are_missed_where_each_packet_declares_its_own_duration() -> None:
    line, stamp = timeline(), 0
    for number in range(60):
        duration = STEP * (20 if number == 30 else 1)
        line.place(stamp, duration)
        stamp += duration
    assert line.regularity.num_missing == 0


def test_chooser_turns_to_decoding_times_where_presentation_times_go_to_and_fro() -> None:
    chooser = TimestampChooser()
    presentation = [1, 3, 4, 2, 6, 7, 5, 9, 10, 8, 12, 13]
    decoding = [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    chosen = [chooser.choose(pts, dts) for pts, dts in zip(presentation, decoding, strict=True)]
    assert chosen[-4:] == [10, 11, 12, 13]


def test_chooser_forgives_one_slip_in_a_long_stream() -> None:
    chooser = TimestampChooser()
    presentation = [*range(100), 98, *range(101, 200)]
    chosen = [chooser.choose(pts, pts + 2) for pts in presentation]
    assert chosen == presentation


def test_chooser_has_nothing_where_there_is_nothing() -> None:
    chooser = TimestampChooser()
    assert chooser.choose(None, None) is None
    assert chooser.choose(None, 7) == 7


def test_missing_stamps_are_spread_between_their_neighbours() -> None:
    pictures = [Stamped(stamp) for stamp in (0, None, None, 90, None, 110)]
    assert [picture.pts for picture in fill_missing_pts(pictures)] == [0, 30, 60, 90, 100, 110]


def test_leading_and_trailing_missing_stamps_stay_missing() -> None:
    pictures = [Stamped(stamp) for stamp in (None, None, 10, None)]
    assert [picture.pts for picture in fill_missing_pts(pictures)] == [None, None, 10, None]


@given(st.lists(st.one_of(st.none(), st.integers(0, 1000)), max_size=40))
def test_filling_keeps_every_picture_in_order_and_every_known_stamp(stamps: list[int | None]) -> None:
    pictures = [Stamped(stamp) for stamp in stamps]
    filled = list(fill_missing_pts(pictures))
    assert [id(picture) for picture in filled] == [id(picture) for picture in pictures]
    assert all(after.pts == stamp for after, stamp in zip(filled, stamps, strict=True) if stamp is not None)


def test_filling_holds_back_only_a_few_pictures() -> None:
    waiting = 0
    taken = 0

    def source() -> object:
        nonlocal waiting, taken
        for number in range(50):
            taken += 1
            yield Stamped(0 if number == 0 else None)

    for given_out, _ in enumerate(fill_missing_pts(source()), start=1):  # type: ignore[arg-type]
        waiting = max(waiting, taken - given_out)
    assert waiting <= 5

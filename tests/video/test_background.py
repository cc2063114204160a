"""The thread behind a source: order, bounds, deadlines, errors, and a clean end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtake.errors import SourceError
from longtake.video.background import Background


def counting(count: int) -> Iterator[int]:
    yield from range(count)


def started(*, depth: int = 2, timeout_seconds: float = 20.0, count: int = 10) -> Background[int]:
    return Background(lambda _: counting(count), name="x.mp4", depth=depth, timeout_seconds=timeout_seconds)


@given(count=st.integers(0, 30), depth=st.integers(1, 5))
@settings(max_examples=20)
def test_items_come_once_and_in_order(count: int, depth: int) -> None:
    with started(depth=depth, count=count) as line:
        assert list(line) == list(range(count))


def test_the_worker_waits_for_room() -> None:
    made: list[int] = []

    def work(_: Background[int]) -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number

    with Background(work, name="x.mp4", depth=3, timeout_seconds=20.0) as line:
        for taken in range(1, 51):
            next(line)
            assert len(made) <= taken + 4
    assert len(made) < 60


def test_the_oldest_makes_room_where_items_may_be_dropped() -> None:
    dropped: list[int] = []
    all_made = threading.Event()

    def work(_: Background[int]) -> Iterator[int]:
        yield from range(10)
        all_made.set()

    with Background(work, name="x.mp4", depth=3, timeout_seconds=20.0, on_drop=dropped.append) as line:
        assert all_made.wait(20)
        assert list(line) == [7, 8, 9]
    assert dropped == [0, 1, 2, 3, 4, 5, 6]


def test_an_error_comes_after_the_items_before_it() -> None:
    def work(_: Background[int]) -> Iterator[int]:
        yield 1
        raise SourceError("x.mp4: broken")

    line = Background(work, name="x.mp4", depth=2, timeout_seconds=20.0)
    assert next(line) == 1
    for _ in range(2):
        with pytest.raises(SourceError, match="broken"):
            next(line)


def test_an_error_before_anything_is_told_at_once() -> None:
    def work(_: Background[int]) -> Iterator[int]:
        raise SourceError("x.mp4: no such file")
        yield 0

    line = Background(work, name="x.mp4", depth=2, timeout_seconds=20.0)
    with pytest.raises(SourceError, match="no such file"):
        line.wait_ready()


def test_a_worker_that_hangs_is_an_error_that_names_the_deadline() -> None:
    released = threading.Event()

    def work(line: Background[int]) -> Iterator[int]:
        line.ready()
        yield 1
        released.wait(60)

    line = Background(work, name="x.mp4", depth=2, timeout_seconds=0.2)
    line.wait_ready()
    assert next(line) == 1
    with pytest.raises(SourceError, match=r"x\.mp4: no frame within 0\.2 s"):
        next(line)
    released.set()


def test_a_worker_that_computes_is_waited_for() -> None:
    def work(_: Background[int]) -> Iterator[int]:
        began = time.thread_time()
        while time.thread_time() < began + 1.2:
            pass
        yield 1

    with Background(work, name="x.mp4", depth=2, timeout_seconds=0.5) as line:
        assert next(line) == 1


def test_signs_of_life_put_the_deadline_off() -> None:
    def work(line: Background[int]) -> Iterator[int]:
        for _ in range(10):
            assert line.sleep(0.1)
        yield 1

    with Background(work, name="x.mp4", depth=2, timeout_seconds=0.6) as line:
        assert next(line) == 1


def test_closing_wakes_a_worker_that_sleeps() -> None:
    began, ended = threading.Event(), threading.Event()

    def work(line: Background[int]) -> Iterator[int]:
        began.set()
        if not line.sleep(600):
            ended.set()
        yield 0

    line = Background(work, name="x.mp4", depth=1, timeout_seconds=20.0)
    assert began.wait(20)
    line.close()
    assert ended.wait(20)
    with pytest.raises(StopIteration):
        next(line)


def test_closing_wakes_a_worker_that_waits_for_room_and_lets_it_clean_up() -> None:
    full, cleaned = threading.Event(), threading.Event()

    def work(_: Background[int]) -> Iterator[int]:
        try:
            yield 0
            full.set()
            yield 1
        finally:
            cleaned.set()

    line = Background(work, name="x.mp4", depth=1, timeout_seconds=20.0)
    assert full.wait(20)
    line.close()
    assert cleaned.wait(20)
    with pytest.raises(StopIteration):
        next(line)

"""An iterator run by a thread of its own, with a bounded line between the two sides and a deadline on waiting."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

from longtake.errors import SourceError

ItemT = TypeVar("ItemT")

CLOSE_SECONDS = 2.0
"""A worker that does not stop within this time hangs in a read; it is left behind (it is a daemon)."""


WORKING_SHARE = 0.01
"""Of the deadline, spent computing: less is the waking up of a read that waits."""
MAX_EXTENSIONS = 20
"""Deadlines granted in a row to a worker that computes and gives nothing."""


class Background(Generic[ItemT]):
    """Items of ``work``, made ahead of the consumer.

    ``work`` runs wholly in the thread: it opens, reads and closes what it needs, and calls ``beat`` whenever the source
    has given something, even where no item comes of it. At most ``depth`` items wait; then the worker waits too, or
    with ``on_drop`` the oldest item makes room.
    """

    def __init__(
        self,
        work: Callable[[Background[ItemT]], Iterator[ItemT]],
        *,
        name: str,
        depth: int,
        timeout_seconds: float,
        grace_seconds: float = 0.0,
        on_drop: Callable[[ItemT], None] | None = None,
    ) -> None:
        """Start the thread.

        Args:
            work: Called with this object in the thread.
            name: The source, for messages.
            depth: Items that may wait.
            timeout_seconds: Longest the consumer waits without a sign of life from the source.
            grace_seconds: Added to that where reads have a timeout of their own, which comes first and says more.
            on_drop: Never hold up the source; told of each dropped item.
        """
        self._work = work
        self._name = name
        self._depth = depth
        self._timeout_seconds = timeout_seconds
        self._patience_seconds = timeout_seconds + grace_seconds
        self._on_drop = on_drop
        self._items: deque[ItemT] = deque()
        self._changed = threading.Condition()
        self._is_ready = self._is_done = False
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._beat_at = time.monotonic()
        self._work_clock: int | None = None
        self._worked_seconds = 0.0
        self._extensions = 0
        self._thread = threading.Thread(target=self._run, name=f"longtake {name}", daemon=True)
        self._thread.start()

    # the worker's side

    def beat(self) -> None:
        """The source is alive."""
        self._beat_at = time.monotonic()
        self._extensions = 0

    def ready(self) -> None:
        """The source is open; items will follow."""
        self.beat()
        with self._changed:
            self._is_ready = True
            self._changed.notify_all()

    @property
    def is_stopped(self) -> bool:
        """The consumer is gone."""
        return self._stop.is_set()

    def sleep(self, seconds: float) -> bool:
        """Wait, or less where the consumer goes; True if it is still there. Counts as life, since it is meant."""
        self.beat()
        is_stopped = self._stop.wait(seconds)
        self.beat()
        return not is_stopped

    def _run(self) -> None:
        if hasattr(time, "pthread_getcpuclockid"):
            self._work_clock = time.pthread_getcpuclockid(threading.get_ident())
        try:
            for item in self._work(self):
                if not self._put(item):
                    break
        except BaseException as error:
            self._error = error
        with self._changed:
            self._is_done = True
            self._changed.notify_all()

    def _put(self, item: ItemT) -> bool:
        with self._changed:
            if self._on_drop is not None and len(self._items) >= self._depth:
                self._on_drop(self._items.popleft())
            while len(self._items) >= self._depth and not self._stop.is_set():
                self._changed.wait()
            if self._stop.is_set():
                return False
            self._items.append(item)
            self.beat()
            self._changed.notify_all()
            return True

    # the consumer's side

    def wait_ready(self) -> None:
        """Return once the source is open.

        Raises:
            SourceError: It cannot be opened, or not in time.
        """
        with self._changed:
            self._wait(lambda: self._is_ready)
            if self._is_done and self._error is not None and not self._items:
                self._raise()

    def __iter__(self) -> Background[ItemT]:
        return self

    def __next__(self) -> ItemT:
        with self._changed:
            self._wait(lambda: bool(self._items))
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            if self._error is not None:
                self._raise()
            raise StopIteration

    def _wait(self, is_met: Callable[[], bool]) -> None:
        since = time.monotonic()
        while not is_met() and not self._is_done:
            left = max(since, self._beat_at) + self._patience_seconds - time.monotonic()
            if left <= 0 and self._is_working():
                since = time.monotonic()
                continue
            if left <= 0:
                self._stop.set()
                self._is_done = True
                self._error = SourceError(
                    f"{self._name}: no frame within {self._timeout_seconds:g} s; "
                    "check the source or give it a longer --timeout"
                )
                return
            self._changed.wait(min(left, threading.TIMEOUT_MAX))

    def _is_working(self) -> bool:
        """The worker did not wait but compute: a large picture on a busy machine takes its time, up to a limit."""
        if self._work_clock is None or self._extensions >= MAX_EXTENSIONS:
            return False
        self._extensions += 1
        before, self._worked_seconds = self._worked_seconds, time.clock_gettime(self._work_clock)
        return self._worked_seconds - before > WORKING_SHARE * self._patience_seconds

    def _raise(self) -> None:
        error = self._error
        assert error is not None
        raise error

    def close(self) -> None:
        """Stop the worker; what waits in line is thrown away."""
        self._stop.set()
        with self._changed:
            self._items.clear()
            self._is_done = True
            self._changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join(CLOSE_SECONDS)

    def __enter__(self) -> Background[ItemT]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""Memory of this process: now, and the most during a call."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path

OWN_PAGES_BYTES = 64 * 1024
"""Tensors from this size on get pages of their own."""
_M_MMAP_THRESHOLD = -3
_STATUS, _STATM = Path("/proc/self/status"), Path("/proc/self/statm")


def resident_bytes() -> int:
    """Memory of this process now; where the system does not tell, the most it ever had."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    return _most_ever()


def peak_growth(run: Callable[[], object]) -> int:
    """By how many bytes this process was larger than before, at most, during a call."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    peak = _forget_peak()
    before = resident_bytes()
    run()
    return max(0, peak() - before)


def pages_of_their_own() -> None:
    """Have glibc give each large block of memory pages that go back when it is freed; elsewhere nothing is done."""
    if sys.platform == "linux":
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, OWN_PAGES_BYTES)


def _forget_peak() -> Callable[[], int]:
    """Start to look for the most memory anew, where the system allows it; what is given tells the most since."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        _high_water()
    except (OSError, StopIteration):
        return _most_ever
    return _high_water


def _high_water() -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


def _most_ever() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

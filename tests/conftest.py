"""What holds for every test: fixed seeds, no network, no graphics, no time limits in Hypothesis."""

from __future__ import annotations

import ipaddress
import os
import random
import socket
from collections.abc import Iterator
from typing import Any

# before any test imports the libraries that read them; subprocesses inherit them
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["MPLBACKEND"] = "Agg"

import hypothesis
import numpy as np
import pytest
import torch

hypothesis.settings.register_profile("longtake", deadline=None, derandomize=True, max_examples=60, database=None)
hypothesis.settings.load_profile("longtake")
torch.set_num_threads(1)

_connect = socket.socket.connect


def _connect_to_loopback(self: socket.socket, address: Any) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
        raise OSError(f"tests may not reach the network; this one asked for {address[0]}")
    _connect(self, address)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


socket.socket.connect = _connect_to_loopback  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def seeds() -> Iterator[None]:
    """Each test starts from the same random numbers and leaves none of its own behind."""
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    yield
    random.setstate(before[0])
    np.random.set_state(before[1])
    torch.set_rng_state(before[2])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """With LONGTAKE_FORBID_SKIPS=1 a skipped test fails: for machines that are meant to have everything."""
    report = yield
    if os.environ.get("LONGTAKE_FORBID_SKIPS") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
    return report

"""The command line in this process, with ``Colours`` for every model: as quick as a call, real but for the weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.contract.colours import Colours


class Result(NamedTuple):
    """What a run of the command line left."""

    status: int
    out: str
    err: str


@pytest.fixture
def longtake(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run ``longtake ARGUMENTS``; ``model`` takes the place of whatever --model names."""
    import longtake.cli.captioning
    from longtake.cli.app import run

    def call(*arguments: str | Path, model: object = None) -> Result:
        if model is not None:
            monkeypatch.setattr(longtake.cli.captioning, "load", lambda name: model)
        capfd.readouterr()
        status = run([str(argument) for argument in arguments])
        return Result(status, *capfd.readouterr())

    def with_colours(*arguments: str | Path, model: object = None) -> Result:
        return call(*arguments, model=model or Colours())

    return with_colours

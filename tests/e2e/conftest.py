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


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run ``longtake ARGUMENTS`` with the models they name."""
    from longtake.cli.app import run

    def call(*arguments: object) -> Result:
        capfd.readouterr()
        status = run([str(argument) for argument in arguments])
        return Result(status, *capfd.readouterr())

    return call


@pytest.fixture(scope="session")
def tiny_vlm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Qwen3-VL with its settings: 2 frames a second, two at once."""
    from tests.vlm.folders import SETTINGS, write_folder

    return write_folder(tmp_path_factory.mktemp("models") / "tiny-vlm", **SETTINGS)


@pytest.fixture(scope="session")
def other_vlm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with other weights."""
    from tests.vlm.folders import SETTINGS, write_folder

    return write_folder(tmp_path_factory.mktemp("models") / "other-vlm", louder=1.01, **SETTINGS)


@pytest.fixture(scope="session")
def tiny_mcvit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random MC-ViT with a text tower: segments of 4 frames, a second each."""
    from tests.contract.models import make_mcvit

    from longtake import hub

    folder = tmp_path_factory.mktemp("models") / "tiny-mcvit"
    hub.save(make_mcvit(), folder)  # type: ignore[arg-type]
    return folder


@pytest.fixture(scope="session")
def linear_mcvit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random MC-ViT with a linear head over red, green and blue, and no text tower."""
    from dataclasses import replace

    from longtake import hub
    from longtake.methods.mcvit import MCViT
    from longtake.methods.mcvit_config import MCViTConfig

    folder = tmp_path_factory.mktemp("models") / "linear-mcvit"
    hub.save(MCViT(replace(MCViTConfig.tiny(), text=None)).eval(), folder)
    return folder

"""What the ``eval`` commands check before a public data set is opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from longtake.data.datasets import DataSet


def public_dataset(name: str, task: str, others: tuple[str, ...], data: Path | None) -> tuple[DataSet, Path] | None:
    """The data set of that name and its folder; None if the name is one of ``others``.

    Raises:
        ConfigError: There is none for the task, or no folder is given.
    """
    if name in others:
        return None
    from longtake.data.datasets import dataset_named
    from longtake.errors import ConfigError

    found = dataset_named(name, task, others)
    if data is None:
        raise ConfigError(f"--data is missing; expected the folder of {found.title}, had at {found.home}")
    return found, data


def only_public(given: Mapping[str, object]) -> None:
    """Refuse options, by name, that change nothing for other data sets."""
    for name, value in given.items():
        if value is not None:
            raise typer.BadParameter(f"{name} is for the data sets of docs/datasets.md; leave it out here")


def say(lines: tuple[str, ...]) -> None:
    """Notes on stderr."""
    from longtake.cli.terminal import StatusLine

    status = StatusLine()
    for line in lines:
        status.say(line)

"""Data sets in their official layouts, found under LONGTAKE_SHARED whatever the folders are called."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtake.data.datasets import DATASETS, DataSet
from longtake.data.datasets.catalog import dataset_named
from longtake.errors import ConfigError

SHARED = Path(os.environ.get("LONGTAKE_SHARED", Path(__file__).resolve().parents[4] / "shared"))
ROOT, VIDEOS = SHARED / "fixtures" / "datasets", SHARED / "videos"
ABSENT = f"the data set fixtures are not at {ROOT}; set LONGTAKE_SHARED"


def dataset_of(folder: Path) -> DataSet | None:
    """Which data set a folder is named for."""
    for task in ("captions", "ask", "classify"):
        try:
            return dataset_named(folder.name, task)
        except ConfigError:
            continue
    return None


def folders() -> list[tuple[DataSet, Path]]:
    """Every folder two levels below that is named for a data set."""
    found = ((dataset_of(path), path) for path in sorted(ROOT.glob("*/*")) if path.is_dir())
    return [(one, path) for one, path in found if one is not None]


def cases(having: Callable[[DataSet, Path, str], bool] = lambda dataset, folder, split: True) -> list[Any]:
    """A parameter for each split of each folder, or one skipped parameter where there are none."""
    found = [
        pytest.param(dataset, folder, split, id=f"{folder.parent.name}-{folder.name}-{split}")
        for dataset, folder in folders()
        for split in dataset.splits
        if having(dataset, folder, split)
    ]
    return found or [pytest.param(None, None, "", id="absent", marks=pytest.mark.skip(reason=ABSENT))]


def own(name: str) -> Path:
    """Our own records of a data set; skips the test where they are absent."""
    for dataset, folder in folders():
        if dataset is DATASETS[name] and folder.parent.name == "own":
            return folder
    pytest.skip(ABSENT)


def copied(name: str, to: Path) -> Path:
    """A copy of them that may be changed."""
    shutil.copytree(own(name), to, copy_function=shutil.copyfile)
    for path in (to, *to.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return to


def change(path: Path, edit: Callable[[Any], Any]) -> None:
    """Edit a JSON file in place; ``edit`` changes what it is given, or gives something else."""
    data = json.loads(path.read_text(encoding="utf-8"))
    edited = edit(data)
    path.write_text(json.dumps(data if edited is None else edited), encoding="utf-8")

"""The training loop: stages of a recipe one after the other, resumable at any step.

Where a run is, is one number: the global step. Learning rates, material and validation follow from it and the recipe,
so a killed run that is resumed sees what an unbroken one sees from its last checkpoint on.
"""

from __future__ import annotations

import ctypes
import math
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from accelerate import Accelerator
from safetensors import SafetensorError
from torch.utils.data import DataLoader, Dataset

from longtake.errors import CheckpointError
from longtake.train.log import MetricsLog
from longtake.train.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainProgress:
    """Where a run stands, after each step."""

    stage: str
    step: int
    """Of all stages together."""
    total_steps: int
    losses: dict[str, float]
    seconds_left: float
    tells: bool
    """Whether this stage trains what is said; before that there is nothing to score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A step within its stage."""

    stage: Any
    index: int
    step: int


def places(recipe: Recipe) -> list[Place]:
    """Every step of the run in order."""
    order = [(stage, index) for stage in recipe.stages for index in range(stage.steps)]
    return [Place(stage=stage, index=index, step=step) for step, (stage, index) in enumerate(order)]


def learning_rate(place: Place) -> float:
    """Linear warm-up, then a cosine down to ``final_scale``."""
    stage = place.stage
    if place.index < stage.warmup_steps:
        return stage.learning_rate * (place.index + 1) / stage.warmup_steps
    done = (place.index - stage.warmup_steps) / max(1, stage.steps - stage.warmup_steps)
    scale = stage.final_scale + (1 - stage.final_scale) * 0.5 * (1 + math.cos(math.pi * done))
    return stage.learning_rate * scale


class Run(ABC):
    """One training run in a folder: what all methods share. Subclasses prepare their model and optimizers."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        keep_freed_memory()
        self.recipe = recipe
        self.folder = folder
        self.checkpoint = folder / "checkpoint"
        self.accelerator = Accelerator(mixed_precision="bf16" if has_fast_bf16() else "no")
        self.log = MetricsLog(folder / "metrics.jsonl")

    @abstractmethod
    def stage_data(self, stage: Any, split: str) -> Dataset[Any]:
        """Batches of a stage by number."""

    @abstractmethod
    def one_step(self, place: Place, batch: Any) -> dict[str, float]:
        """Learn from one batch; losses by name, ``loss`` among them."""

    @abstractmethod
    def scores(self, stage: Any) -> dict[str, float]:
        """On validation videos, for a stage that tells."""

    @abstractmethod
    def export(self, folder: Path) -> None:
        """The model without its training heads, for ``hub.load``."""

    def resume(self) -> int:
        """Load the last checkpoint; returns the next step."""
        last = len(places(self.recipe))
        try:
            step = int((self.checkpoint / "step").read_text())
            if not 0 <= step <= last:
                raise ValueError(f"step is {step}, the recipe has {last}")
            self.accelerator.load_state(str(self.checkpoint))
        except (OSError, ValueError, RuntimeError, KeyError, SafetensorError, UnpicklingError) as error:
            raise CheckpointError(
                f"checkpoint {self.checkpoint} is damaged ({' '.join(str(error).split())[:200]}); "
                "start again in another folder"
            ) from error
        self.log.cut(step)
        return step

    def save(self, step: int) -> None:
        """Write a checkpoint beside the old one and swap them, so that one of them is always whole."""
        fresh, old = self.folder / "checkpoint.new", self.folder / "checkpoint.old"
        shutil.rmtree(fresh, ignore_errors=True)
        self.accelerator.save_state(str(fresh))
        (fresh / "step").write_text(str(step))
        shutil.rmtree(old, ignore_errors=True)
        if self.checkpoint.exists():
            self.checkpoint.rename(old)
        fresh.rename(self.checkpoint)
        shutil.rmtree(old, ignore_errors=True)

    def steps(self, first: int) -> Iterator[TrainProgress]:
        """Train from step ``first`` to the end, yielding after each step."""
        order = places(self.recipe)
        began, saved = time.monotonic(), time.monotonic()
        for place, batch in self.material(order[first:]):
            losses = self.one_step(place, batch)
            done = place.step + 1
            self.log.add(step=done, stage=place.stage.name, **losses)
            left = (time.monotonic() - began) / (done - first) * (len(order) - done)
            if time.monotonic() - saved > self.recipe.save_seconds or done == len(order):
                self.save(done)
                saved = time.monotonic()
            yield TrainProgress(
                stage=place.stage.name,
                step=done,
                total_steps=len(order),
                losses=losses,
                seconds_left=left,
                tells=place.stage.data == "videos",
            )

    def material(self, order: list[Place]) -> Iterator[tuple[Place, Any]]:
        for stage in self.recipe.stages:
            mine = [place for place in order if place.stage is stage]
            if not mine:
                continue
            data = self.stage_data(stage, "train")
            loader = DataLoader(
                data,
                batch_size=None,
                sampler=[place.index for place in mine],
                num_workers=self.recipe.workers,
                prefetch_factor=4 if self.recipe.workers else None,
            )
            yield from zip(mine, loader, strict=True)


def keep_freed_memory() -> None:
    """Ask glibc to reuse large blocks instead of returning them: fresh pages cost more than the arithmetic on CPUs.

    Measured: a forward pass over 3,000 frames took a third of the time. Nothing happens where there is no glibc.
    """
    mmap_threshold, trim_threshold, most = -3, -1, 2**31 - 1
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(mmap_threshold, most)
        libc.mallopt(trim_threshold, most)


def has_fast_bf16() -> bool:
    """Whether bf16 matrix products run faster here than float32 ones."""
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported()
    names = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(getattr(torch.cpu, name, lambda: False)() for name in names)

"""The training loop: stages of a recipe one after the other, resumable at any step.

Where a run is, is one number: the global step. Learning rates, material and validation follow from it and the recipe,
so a killed run that is resumed sees what an unbroken one sees from its last checkpoint on.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import math
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError

import torch
from accelerate import Accelerator
from safetensors import SafetensorError
from torch import Tensor
from torch.utils.data import DataLoader

from longtake.data.toybox import TOYBOX_VERSION
from longtake.errors import CheckpointError, ConfigError
from longtake.hub import weights_digest
from longtake.state.ssm import ssm_parameters
from longtake.train.log import MetricsLog
from longtake.train.material import Batch, Taken, ToyboxStage
from longtake.train.objective import STSObjective
from longtake.train.recipe import Recipe, StageConfig


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

    stage: StageConfig
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


class Run:
    """One training run in a folder."""

    def __init__(self, recipe: Recipe, objective: STSObjective, folder: Path, seen_folder: Path | None = None) -> None:
        keep_freed_memory()
        self.recipe = recipe
        self.seen_folder = seen_folder
        self.folder = folder
        self.checkpoint = folder / "checkpoint"
        self.accelerator = Accelerator(mixed_precision="bf16" if has_fast_bf16() else "no")
        model = objective.model
        seeing = {
            id(p)
            for part in (model.encoder, model.bottleneck, objective.cell_head, objective.frame_heads)
            for p in part.parameters()
        }
        slow = {id(p) for p in ssm_parameters(objective)}
        groups = parameter_groups(objective, seeing, slow)
        optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98))
        self.objective, self.optimizer = self.accelerator.prepare(objective, optimizer)
        self.log = MetricsLog(folder / "metrics.jsonl")

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

    def material(self, order: list[Place]) -> Iterator[tuple[Place, Batch]]:
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

    def stage_data(self, stage: StageConfig, split: str) -> ToyboxStage:
        objective = self.accelerator.unwrap_model(self.objective)
        model, recipe = objective.model, self.recipe
        taken = Taken(num_frames=recipe.frames_per_video, whole=recipe.whole_video is not None)
        see = functools.partial(see_frozen, objective, self.accelerator, bool(taken.num_frames))
        seed, frozen = recipe.seed, stage.encoder_scale == 0
        if not frozen:
            return ToyboxStage(stage, model.config, model.tokenizer, seed, split, taken)
        kept = self.seen_folder and self.seen_folder / seeing_digest(objective, stage, taken)
        return ToyboxStage(stage, model.config, model.tokenizer, seed, split, taken, see, kept)

    def one_step(self, place: Place, batch: Batch) -> dict[str, float]:
        # Noise and dropout follow from the step, so that a resumed run draws what an unbroken one draws.
        torch.manual_seed(self.recipe.seed * 1_000_003 + place.step)
        stage, rate = place.stage, learning_rate(place)
        for group in self.optimizer.param_groups:
            scale = (stage.encoder_scale if group["seeing"] else 1.0) * (stage.ssm_scale if group["slow"] else 1.0)
            group["lr"] = rate * scale
            group["weight_decay"] = stage.weight_decay if group["decays"] else 0.0
        self.objective.train()
        losses = self.objective(
            batch.to(self.accelerator.device),
            frozen=stage.encoder_scale == 0,
            label_weight=stage.label_weight,
            feature_noise=stage.feature_noise,
        )
        self.accelerator.backward(losses["loss"])
        norm = self.accelerator.clip_grad_norm_(self.objective.parameters(), 1.0)
        if not torch.isfinite(losses["loss"]):
            raise ConfigError(
                f"loss became {losses['loss'].item()} at step {place.step}; lower learning_rate of {stage.name}"
            )
        self.optimizer.step()
        self.optimizer.zero_grad()
        values = {name: round(value.item(), 5) for name, value in losses.items()}
        return values | {"gradient_norm": round(float(norm or 0.0), 4), "learning_rate": rate}


def see_frozen(objective: STSObjective, accelerator: Accelerator, spread: bool, frames: Tensor) -> Tensor:
    """Kept tokens of one whole video; runs where the video is drawn, beside the process that trains.

    ``spread``: frames come one by one with their own earlier frames, not as one run of frames.
    """
    with torch.no_grad(), accelerator.autocast():
        tokens = objective.see(frames, whole_video=not spread)[1]
    return tokens.transpose(0, 1) if spread else tokens


def seeing_digest(objective: STSObjective, stage: StageConfig, taken: Taken) -> str:
    """What the kept tokens of a video depend on beside the video: weights, world, frames taken."""
    model = objective.model
    weights = {
        f"{part}.{name}": tensor
        for part in ("encoder", "bottleneck")
        for name, tensor in getattr(model, part).state_dict().items()
    }
    rest = (TOYBOX_VERSION, model.config.size, model.config.fps, taken.num_frames, stage.file_share)
    return hashlib.sha256(f"{weights_digest(weights)} {rest}".encode()).hexdigest()[:16]


def parameter_groups(objective: STSObjective, seeing: set[int], slow: set[int]) -> list[dict[str, object]]:
    """Parameters by what their learning rate and weight decay depend on."""
    groups: dict[tuple[bool, bool, bool], list[torch.nn.Parameter]] = {}
    for parameter in objective.parameters():
        key = (id(parameter) in seeing, id(parameter) in slow, parameter.ndim > 1 and id(parameter) not in slow)
        groups.setdefault(key, []).append(parameter)
    names = ("seeing", "slow", "decays")
    return [{"params": parameters, **dict(zip(names, key, strict=True))} for key, parameters in groups.items()]


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
    return bool(getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)())

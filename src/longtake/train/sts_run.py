"""One training run of an STS model or of one of its baselines: its optimizer, its stages, its scores."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from longtake import hub
from longtake.config import from_dict
from longtake.data.toybox import TOYBOX_VERSION, make_script, vocabulary
from longtake.errors import ConfigError
from longtake.hub import weights_digest
from longtake.methods.baselines import WholeVideo
from longtake.methods.baselines.sdc import SDC
from longtake.methods.baselines.sdc_config import SDCConfig
from longtake.methods.sts import STS
from longtake.methods.sts_config import STSConfig
from longtake.state.ssm import ssm_parameters
from longtake.train.caption_objective import CaptionObjective
from longtake.train.loop import Place, Run, learning_rate
from longtake.train.material import Batch, Taken, ToyboxStage
from longtake.train.objective import STSObjective
from longtake.train.sdc_objective import SDCObjective
from longtake.train.start import start_from
from longtake.train.sts_recipe import CaptionRecipe, SDCRecipe, STSRecipe, STSStage
from longtake.train.validate import caption_video, scores


class STSRun(Run):
    """One training run in a folder."""

    def __init__(self, recipe: CaptionRecipe, folder: Path, seen_folder: Path | None = None) -> None:
        super().__init__(recipe, folder)
        self.recipe: CaptionRecipe = recipe
        self.seen_folder = seen_folder
        objective = build_objective(recipe)
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
        self.judge = Judge(self)

    def scores(self, stage: STSStage) -> dict[str, float]:
        return self.judge.scores(self.accelerator.unwrap_model(self.objective))

    def export(self, folder: Path) -> None:
        export(self.accelerator.unwrap_model(self.objective), folder)

    def stage_data(self, stage: STSStage, split: str) -> ToyboxStage:
        objective = self.accelerator.unwrap_model(self.objective)
        model, recipe = objective.model, self.recipe
        taken = Taken(num_frames=recipe.frames_per_video, whole=objective.whole is not None)
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


def see_frozen(objective: CaptionObjective[Any], accelerator: Accelerator, spread: bool, frames: Tensor) -> Tensor:
    """Kept tokens of one whole video; runs where the video is drawn, beside the process that trains.

    ``spread``: frames come one by one with their own earlier frames, not as one run of frames.
    """
    with torch.no_grad(), accelerator.autocast():
        tokens = objective.see(frames, whole_video=not spread)[1]
    return tokens.transpose(0, 1) if spread else tokens


def seeing_digest(objective: CaptionObjective[Any], stage: STSStage, taken: Taken) -> str:
    """What the kept tokens of a video depend on beside the video: weights, world, frames taken."""
    model = objective.model
    weights = {
        f"{part}.{name}": tensor
        for part in ("encoder", "bottleneck")
        for name, tensor in getattr(model, part).state_dict().items()
    }
    rest = (TOYBOX_VERSION, model.config.size, model.config.fps, taken.num_frames, stage.file_share)
    return hashlib.sha256(f"{weights_digest(weights)} {rest}".encode()).hexdigest()[:16]


def parameter_groups(objective: CaptionObjective[Any], seeing: set[int], slow: set[int]) -> list[dict[str, object]]:
    """Parameters by what their learning rate and weight decay depend on."""
    groups: dict[tuple[bool, bool, bool], list[torch.nn.Parameter]] = {}
    for parameter in objective.parameters():
        key = (id(parameter) in seeing, id(parameter) in slow, parameter.ndim > 1 and id(parameter) not in slow)
        groups.setdefault(key, []).append(parameter)
    names = ("seeing", "slow", "decays")
    return [{"params": parameters, **dict(zip(names, key, strict=True))} for key, parameters in groups.items()]


def build_objective(recipe: CaptionRecipe) -> STSObjective | SDCObjective:
    """The model of the recipe with its training heads, with the weights of ``start_from`` where they fit."""
    config = model_config(recipe)
    if isinstance(config, SDCConfig):
        assert isinstance(recipe, SDCRecipe), "only such a recipe has such a config"
        objective = SDCObjective(SDC(config), recipe.prefix_dropout)
    else:
        objective = STSObjective(STS(config), build_whole_video(recipe, config))
    if recipe.start_from:
        start_from(objective, hub.find(recipe.start_from), recipe.start_parts)
    return objective


def model_config(recipe: CaptionRecipe) -> STSConfig | SDCConfig:
    """Toybox's vocabulary unless the recipe says otherwise."""
    fields = {"vocabulary": list(vocabulary())} | recipe.model
    config_type = SDCConfig if isinstance(recipe, SDCRecipe) else STSConfig
    return from_dict(config_type, fields, where=f"recipe {recipe.name}: model")


def build_whole_video(recipe: CaptionRecipe, config: STSConfig) -> WholeVideo | None:
    """The global baseline that the recipe asks for, if any."""
    if not isinstance(recipe, STSRecipe) or recipe.whole_video is None:
        return None
    kept = config.bottleneck
    return WholeVideo(recipe.whole_video, config.stack, kept.num_tokens, kept.dim, config.num_frames)


class Judge:
    """Scores on validation videos that are drawn, and by a frozen encoder seen, once."""

    def __init__(self, run: STSRun) -> None:
        recipe = run.recipe
        self.spread = bool(recipe.frames_per_video)
        stage = next((stage for stage in reversed(recipe.stages) if stage.data == "videos"), None)
        count = recipe.evaluate_videos if stage else 0
        self.scripts = [make_script(recipe.seed + index, split="valid") for index in range(count)]
        self.data = run.stage_data(stage, "valid") if stage else None
        self.videos: list[Batch] = []

    def scores(self, objective: CaptionObjective[Any]) -> dict[str, float]:
        assert self.data is not None, "a stage that tells has videos"
        objective.eval()
        device = next(objective.parameters()).device
        if not self.videos:
            self.videos = [self.data.video(script) for script in self.scripts]
        pairs = [
            (batch.scripts[0], caption_video(objective, batch.to(device), spread=self.spread)) for batch in self.videos
        ]
        return scores(pairs)


def export(objective: CaptionObjective[Any], folder: Path) -> None:
    """The model without its training heads, for ``hub.load``; the old folder stays until the new one is whole."""
    fresh = folder.with_name(folder.name + ".new")
    hub.save(objective.model, fresh)
    if folder.exists():
        for path in fresh.iterdir():
            path.replace(folder / path.name)
        fresh.rmdir()
    else:
        fresh.rename(folder)

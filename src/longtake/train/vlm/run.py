"""One training run of a small video VLM: the house's loop with Muon for the matrices and AdamW for the rest."""

from __future__ import annotations

import logging
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from longtake import hub
from longtake.config import from_dict
from longtake.errors import CheckpointError, ConfigError
from longtake.train.loop import Place, Run, learning_rate
from longtake.train.vlm.build import VLMConfig, build_model, build_processor, save
from longtake.train.vlm.material import Batch, Clips, Films, to
from longtake.train.vlm.objective import VLMObjective
from longtake.train.vlm.recipe import VLMRecipe, VLMStage
from longtake.train.vlm.truth import IGNORED
from longtake.train.vlm.words import question_words


class VLMRun(Run):
    """One training run in a folder."""

    def __init__(self, recipe: VLMRecipe, folder: Path) -> None:
        super().__init__(recipe, folder)
        # each checkpoint would warn that the tied word embeddings are written once
        logging.getLogger("accelerate.utils.other").setLevel(logging.ERROR)
        self.recipe: VLMRecipe = recipe
        self.config = from_dict(VLMConfig, recipe.model, where=f"recipe {recipe.name}: model")
        self.processor = build_processor(self.config, question_words())
        objective = VLMObjective(build_model(self.config, self.processor.tokenizer), self.config)
        if recipe.start_from:
            start_from(objective, hub.find(recipe.start_from))
        matrices, rest = split_parameters(objective)
        muon = torch.optim.Muon(matrices, lr=1.0, adjust_lr_fn="match_rms_adamw")
        adamw = torch.optim.AdamW(rest, lr=1.0, betas=(0.9, 0.98))
        self.objective, self.muon, self.adamw = self.accelerator.prepare(objective, muon, adamw)
        mean = get_ema_multi_avg_fn(recipe.average)
        self.averaged = AveragedModel(self.accelerator.unwrap_model(self.objective), multi_avg_fn=mean)
        self.accelerator.register_for_checkpointing(self.averaged)

    def stage_data(self, stage: VLMStage, split: str) -> Clips | Films:
        seed = self.recipe.seed * 1000 + zlib.crc32(f"{split} {stage.name}".encode()) % 1000
        if stage.data == "clips":
            return Clips(self.config, seed, stage.batch_size)
        return Films(
            self.config,
            self.processor.tokenizer,
            seed=seed,
            batch_size=stage.batch_size,
            steps=(stage.min_length, stage.max_length),
            questions=stage.questions,
            file_share=stage.file_share,
            split=split,
        )

    def one_step(self, place: Place, batch: Batch) -> dict[str, float]:
        torch.manual_seed(self.recipe.seed * 1_000_003 + place.step)
        stage, rate = place.stage, learning_rate(place)
        for optimizer in (self.muon, self.adamw):
            for group in optimizer.param_groups:
                group["lr"] = rate * (stage.vision_scale if group["vision"] else 1.0)
                group["weight_decay"] = stage.weight_decay
        self.objective.train()
        with self.accelerator.autocast():
            losses = self.objective(
                to(batch, self.accelerator.device), label_weight=stage.label_weight, frozen=not stage.vision_scale
            )
        self.accelerator.backward(losses["loss"])
        norm = self.accelerator.clip_grad_norm_(self.objective.parameters(), 1.0)
        if not torch.isfinite(losses["loss"]):
            raise ConfigError(
                f"loss became {losses['loss'].item()} at step {place.step}; lower learning_rate of {stage.name}"
            )
        for optimizer in (self.muon, self.adamw):
            optimizer.step()
            optimizer.zero_grad()
        self.averaged.update_parameters(self.accelerator.unwrap_model(self.objective))
        values = {name: round(value.item(), 5) for name, value in losses.items()}
        return values | {"gradient_norm": round(float(norm or 0.0), 4), "learning_rate": rate}

    def scores(self, stage: VLMStage) -> dict[str, float]:
        """Share of answers whose every token is the most probable one, over unseen videos of the stage's lengths.

        The weights are the running mean, which is what ``export`` writes.
        """
        objective = cast(VLMObjective, self.averaged.module).eval()
        data = self.stage_data(stage, "valid")
        right: dict[str, list[float]] = defaultdict(list)
        for index in range(-(-self.recipe.evaluate_videos // stage.batch_size)):
            for form, correct in marked(objective, data[index], self.processor.tokenizer, self.accelerator):
                right[form].append(correct)
                right["all"].append(correct)
        return {form: round(sum(marks) / len(marks), 4) for form, marks in sorted(right.items())}

    def export(self, folder: Path) -> None:
        """The model without its training heads, as a folder of transformers."""
        save(cast(VLMObjective, self.averaged.module).model, self.processor, folder, self.config)


def marked(
    objective: VLMObjective, batch: Batch, tokenizer: Any, accelerator: Accelerator
) -> Iterator[tuple[str, float]]:
    """First words of each question, and 1.0 where its answer is right."""
    with torch.no_grad(), accelerator.autocast():
        batch = to(batch, accelerator.device)
        hidden, _ = objective.read(batch, objective.see(batch))
        said = objective.answer_logits(hidden, batch).argmax(-1)
    asked = batch.targets != IGNORED
    wrong = torch.zeros_like(batch.targets, dtype=torch.bool)
    wrong[asked] = said != batch.targets[asked]
    for video, number in torch.cartesian_prod(*map(torch.arange, batch.seen.shape)).tolist():
        question = tokenizer.decode(batch.branches[video, number], skip_special_tokens=True)
        yield question.split()[0], float(not wrong[video, number].any())


def split_parameters(objective: nn.Module) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Matrices between hidden states for Muon, everything else for AdamW; the vision tower's apart."""
    groups: dict[tuple[bool, bool], list[Tensor]] = defaultdict(list)
    for name, parameter in objective.named_parameters():
        inner = parameter.ndim == 2 and (".blocks." in name or ".layers." in name or ".merger." in name)
        groups[inner, ".visual." in name or name.startswith("seen_heads")].append(parameter)
    built = {key: {"params": parameters, "vision": key[1]} for key, parameters in groups.items()}
    return [built[True, True], built[True, False]], [built[False, True], built[False, False]]


def start_from(objective: nn.Module, folder: Path) -> None:
    """Take over weights where name and shape agree: of a run (training heads too) or of a saved model."""
    from safetensors.torch import load_file

    places = (folder / "checkpoint" / "model.safetensors", folder / "model.safetensors")
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        raise CheckpointError(f"start_from {folder}: neither a run nor a model folder; train that recipe before")
    weights = load_file(found)
    if found == places[1]:
        weights = {f"model.{name}": tensor for name, tensor in weights.items()}
    own = objective.state_dict()
    fitting = {name: part for name, part in weights.items() if name in own and own[name].shape == part.shape}
    if not fitting:
        raise CheckpointError(f"start_from {folder}: none of its weights fits; it was trained for another model")
    objective.load_state_dict(fitting, strict=False)

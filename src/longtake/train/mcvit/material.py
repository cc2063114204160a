"""Toybox as MC-ViT is taught: single segments, and whole videos of which some frames are taken evenly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor
from torch.utils.data import Dataset

from longtake.data.toybox import Renderer, Script, make_script
from longtake.data.toybox.dice import Dice
from longtake.data.toybox.questions import questions_of
from longtake.data.toybox.routines import ROUTINE_MOVES, ROUTINES
from longtake.methods.mcvit_config import MCViTConfig
from longtake.train.film import drawn, eventful_start, through_file
from longtake.train.mcvit.recipe import MCViTStage
from longtake.train.mcvit.texts import WORDINGS
from longtake.train.truth import IGNORED, Truth, truth_at
from longtake.types import SegmentSpec

CLIPS_PER_VIDEO = 8
NAMES_SHARE = 0.5
"""Of the steps in which classes go by their names; in the others they are said in one of the other wordings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A multiple-choice question about a video of the batch."""

    video: int
    texts: tuple[str, ...]
    """The question with each of its options, as ``MCViT`` compares them."""
    right: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Material of one step; clips are videos of one segment without class and questions."""

    frames: UInt8[Tensor, "videos time 3 height width"]
    truth: Truth
    """``(videos, times, tokens)``, of each tubelet (``truth_of``)."""
    labels: Int[Tensor, " videos"]
    """Index into ROUTINES; IGNORED where there is none."""
    ranks: Int[Tensor, "videos segments moves"]
    """For each of ROUTINE_MOVES: as which it has been done by the end of the segment, 1 to 4, and 0 for not yet.
    IGNORED where there is no class."""
    wording: int = 0
    """How the classes are said: index into WORDINGS."""
    questions: tuple[Asked, ...] = ()


class Clips(Dataset[Batch]):
    """Single segments of many videos, at many frame rates, most of them where something happens."""

    def __init__(self, model: MCViTConfig, stage: MCViTStage, seed: int) -> None:
        self.model, self.stage, self.seed = model, stage, seed

    def __getitem__(self, index: int) -> Batch:
        torch.set_num_threads(1)
        dice = Dice("mcvit clips", self.seed, index)
        frames: list[Tensor] = []
        truths: list[Truth] = []
        for number in range(-(-self.stage.batch_size // CLIPS_PER_VIDEO)):
            seconds = float(dice.integer(40, 90))
            script = make_script(dice.integer(0, 1 << 40), seconds=seconds, split=f"train-{number % 4}")
            renderer = Renderer(script, self.model.encoder.tubelet.size)
            for _ in range(min(CLIPS_PER_VIDEO, self.stage.batch_size - len(frames))):
                spacing = dice.uniform(self.stage.min_spacing, self.stage.max_spacing)
                start = eventful_start(script, dice, spacing * self.model.num_frames)
                times = as_in_file(script, start + spacing * np.arange(self.model.num_frames))
                frames.append(drawn(renderer, times))
                truths.append(truth_of(script, times, self.model))
        videos = len(frames)
        return Batch(
            frames=torch.stack(frames),
            truth=stacked(truths),
            labels=torch.full((videos,), IGNORED),
            ranks=torch.full((videos, 1, len(ROUTINE_MOVES)), IGNORED),
        )


class Videos(Dataset[Batch]):
    """Whole videos, all of a batch with as many frames.

    Args:
        model: Config of what is trained.
        stage: Lengths, frames, questions.
        seed: With the index, decides the videos.
        split: Of Toybox.
        spread: Whether the first frame lies anywhere in its part of the video; else it lies in the middle.
    """

    def __init__(self, model: MCViTConfig, stage: MCViTStage, seed: int, split: str, *, spread: bool = True) -> None:
        self.model, self.stage, self.seed, self.split, self.spread = model, stage, seed, split, spread

    def __getitem__(self, index: int) -> Batch:
        # torch threads in a process that draws would only compete with the one that trains
        torch.set_num_threads(1)
        dice, stage, size = Dice("mcvit frames", self.seed, index), self.stage, self.model.num_frames
        count = size * dice.integer(-(-stage.min_frames // size), stage.max_frames // size)
        wording = 0 if dice.chance(NAMES_SHARE) else dice.integer(1, len(WORDINGS) - 1)
        return self.batch(index, count, wording)

    def batch(self, index: int, count: int, wording: int = 0) -> Batch:
        """Batch ``index`` at ``count`` frames per video: the same videos at any number of frames."""
        dice = Dice("mcvit videos", self.seed, index)
        scripts = [self._script(dice) for _ in range(self.stage.batch_size)]
        asked = tuple(one for video, script in enumerate(scripts) for one in self._asked(script, video, dice))
        filmed = [self._filmed(script, count, dice) for script in scripts]
        return Batch(
            frames=torch.stack([frames for frames, _, _ in filmed]),
            truth=stacked([truth for _, truth, _ in filmed]),
            labels=torch.tensor([label_of(script) for script in scripts]),
            ranks=torch.stack([ranks for _, _, ranks in filmed]),
            wording=wording,
            questions=asked,
        )

    def _script(self, dice: Dice) -> Script:
        seconds = round(4 * dice.uniform(self.stage.min_seconds, self.stage.max_seconds)) / 4
        return make_script(dice.integer(0, 1 << 40), seconds=seconds, split=self.split)

    def _filmed(self, script: Script, count: int, dice: Dice) -> tuple[Tensor, Truth, Tensor]:
        phase = dice.uniform(0.0, 1.0) if self.spread else 0.5
        times = spread_times(script, count, phase=phase)
        size = self.model.encoder.tubelet.size
        if dice.chance(self.stage.file_share):
            spec = SegmentSpec(num_frames=self.model.num_frames, fps=script.fps, height=size, width=size)
            film = through_file(script, spec)
            frames = film[np.minimum(np.round(times * script.fps).astype(int), len(film) - 1)]
        else:
            frames = drawn(Renderer(script, size), times)
        ends = times[self.model.num_frames - 1 :: self.model.num_frames]
        return frames, truth_of(script, times, self.model), ranks_of(script, ends)

    def _asked(self, script: Script, video: int, dice: Dice) -> list[Asked]:
        if not self.stage.questions:
            return []
        found = dice.shuffled([one for one in questions_of(script) if one.answer_index is not None])
        return [
            Asked(
                video=video,
                texts=tuple(f"{one.question} {option}" for option in one.options),
                right=one.answer_index or 0,
            )
            for one in found[: self.stage.questions]
        ]


def spread_times(script: Script, count: int, *, phase: float = 0.5) -> np.ndarray:
    """Times (seconds) of ``count`` frames, one in each equal part of the video, ``phase`` (0 to 1) of the way in it."""
    return as_in_file(script, (np.arange(count) + phase) / count * script.seconds)


def as_in_file(script: Script, times: np.ndarray) -> np.ndarray:
    """The times of the frames of a video file that are on screen at ``times`` (seconds)."""
    frames = np.floor(np.maximum(times, 0.0) * script.fps + 1e-6)
    return np.minimum(frames, round(script.seconds * script.fps) - 1) / script.fps


def truth_of(script: Script, times: np.ndarray, model: MCViTConfig) -> Truth:
    """What each tubelet of frames at ``times`` shows: of its frames the first at which the toy there does something.

    Where it does nothing, the middle one: a short move need not lie on any one frame of a tubelet.
    """
    tubelet = model.encoder.tubelet
    truth = truth_at(script, times, tubelet.size // tubelet.patch)
    busy = (truth.action > 0).unflatten(0, (-1, tubelet.time))
    within = torch.where(busy.any(1), busy.float().argmax(1), tubelet.time // 2)
    frame = within + tubelet.time * torch.arange(len(within))[:, None]
    token = torch.arange(within.shape[1])
    return Truth(**{field.name: getattr(truth, field.name)[frame, token] for field in fields(Truth)})


def label_of(script: Script) -> int:
    """Index of the video's class, IGNORED if it has none."""
    return IGNORED if script.label is None else ROUTINES.index(script.label)


def ranks_of(script: Script, times: np.ndarray) -> Int[Tensor, "times moves"]:
    """See ``Batch.ranks``; a move counts from its middle on."""
    ranks = torch.full((len(times), len(ROUTINE_MOVES)), 0 if script.label else IGNORED)
    if script.label:
        done = [event for event in script.events if event.action in ROUTINE_MOVES]
        for rank, event in enumerate(done, 1):
            over = torch.from_numpy(times >= (event.start_seconds + event.end_seconds) / 2)
            ranks[over, ROUTINE_MOVES.index(event.action)] = rank
    return ranks


def stacked(truths: Sequence[Truth]) -> Truth:
    return Truth(
        **{field.name: torch.stack([getattr(truth, field.name) for truth in truths]) for field in fields(Truth)}
    )


def to(batch: Batch, device: torch.device) -> Batch:
    truth = Truth(**{field.name: getattr(batch.truth, field.name).to(device) for field in fields(Truth)})
    moved = {name: getattr(batch, name).to(device) for name in ("frames", "labels", "ranks")}
    return replace(batch, truth=truth, **moved)

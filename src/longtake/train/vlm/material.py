"""Toybox as a video VLM is taught: steps of frames with their time in words, and questions asked after any of them.

A video is laid out once; each question is a branch that sees the steps before it and itself, so that many questions
share what was computed of the video.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int, UInt8
from torch import Tensor
from torch.utils.data import Dataset

from longtake.data.toybox import COLOURS, KINDS, Renderer, Script, make_script
from longtake.data.toybox.dice import Dice
from longtake.data.toybox.recall import Recall, RecallQuestion, chosen
from longtake.train.film import eventful_start, through_file
from longtake.train.truth import IGNORED, Truth, truth_at
from longtake.train.vlm.build import VISION, VLMConfig
from longtake.types import SegmentSpec

LAST_SHOWN = 3
"""Last steps with its toy, that a question without a moment points to: the model takes where it is seen best."""
TAUGHT_SHARES = {"relational": 0.5, "diffuse": 0.35, "local": 0.15}
"""Kinds of questions in training: counting is learnt last."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Videos of equal length with their questions; single steps have no questions."""

    patches: UInt8[Tensor, "steps patches values"]
    """Of all videos one after the other, as the vision tower takes them but not normalised."""
    truth: Truth
    """``(videos, steps, tokens)``."""
    kept: Int[Tensor, "videos visual"]
    """Which of the tokens of all steps are in the prefix (``Films``: thinned)."""
    prefix: Int[Tensor, "videos prefix"]
    """Tokens of the videos, with placeholders for what is seen."""
    positions: Int[Tensor, "3 videos prefix"]
    branches: Int[Tensor, "videos questions length"]
    """Question, answer and end token, padded."""
    targets: Int[Tensor, "videos questions length"]
    """Token to be said next, IGNORED elsewhere."""
    seen: Int[Tensor, "videos questions"]
    """How many tokens of the prefix a branch sees."""
    starts: Int[Tensor, "videos questions"]
    """Position of a branch's first token."""
    points: Bool[Tensor, "videos questions visual"]
    """Visual tokens of the prefix that show the toy at the moment which a question is about."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question after a step of a video."""

    step: int
    question: RecallQuestion


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the tokens of one step stand."""

    config: VLMConfig
    tokenizer: Any

    def ids(self, steps: int) -> tuple[list[int], list[int], list[list[int]]]:
        """Tokens of the first ``steps`` steps, where each step ends, and positions (time, height, width)."""
        side, tokens = self.config.side, self.tokenizer
        start, end, _, pad = (int(tokens.convert_tokens_to_ids(token)) for token in VISION)
        ids, ends = [int(tokens.convert_tokens_to_ids("<|user|>"))], []
        places: list[list[int]] = [[0], [0], [0]]
        at = 1
        for step in range(steps):
            first = step * self.config.step_seconds
            middle = first + (self.config.frames_per_step - 1) / self.config.fps / 2
            marker = tokens(f"<{middle:.1f} seconds>", add_special_tokens=False)["input_ids"]
            ids += [*marker, start, *[pad] * side**2, end]
            before = [at + index for index in range(len(marker) + 1)]
            at += len(before)
            rows = [at + index // side for index in range(side**2)]
            columns = [at + index % side for index in range(side**2)]
            for place, seen in zip(places, ([at] * side**2, rows, columns), strict=True):
                place += [*before, *seen, at + side]
            at += side + 1
            ends.append(len(ids))
        return ids, ends, places


def patches_of(
    frames: UInt8[np.ndarray, "frames size size 3"], config: VLMConfig
) -> UInt8[Tensor, "steps patches values"]:
    """Frames in the order in which Qwen3-VL's vision tower takes them: merged squares, then colour, time, y and x."""
    steps, side, patch = len(frames) // config.frames_per_step, config.side, config.patch
    pixels = torch.from_numpy(frames).unflatten(0, (steps, config.frames_per_step))
    pixels = pixels.unflatten(3, (side, 2, patch)).unflatten(2, (side, 2, patch))
    # step, frame, row, row in two, y, column, column in two, x, colour
    return pixels.permute(0, 2, 5, 3, 6, 8, 1, 4, 7).flatten(5).flatten(1, 4).contiguous()


class Clips(Dataset[Batch]):
    """Single steps of many videos, most of them where something happens."""

    def __init__(self, config: VLMConfig, seed: int, batch_size: int) -> None:
        self.config, self.seed, self.batch_size = config, seed, batch_size

    def __getitem__(self, index: int) -> Batch:
        dice = Dice("vlm clips", self.seed, index)
        frames: list[np.ndarray] = []
        truths: list[Truth] = []
        per_video = 16
        for number in range(self.batch_size // per_video):
            seconds = dice.uniform(60.0, 120.0)
            script = make_script(dice.integer(0, 1 << 40), seconds=round(seconds), split=f"train-{number % 4}")
            renderer = Renderer(script, self.config.size)
            starts = [round(eventful_start(script, dice, self.config.step_seconds) * 4) / 4 for _ in range(per_video)]
            for start in starts:
                times = start + np.arange(self.config.frames_per_step) / self.config.fps
                frames += [renderer.frame(float(time)) for time in times]
            middles = np.array(starts) + (self.config.frames_per_step // 2) / self.config.fps
            truths.append(truth_at(script, middles, self.config.side))
        empty = torch.zeros(1, 0, dtype=torch.int64)
        return Batch(
            patches=patches_of(np.stack(frames), self.config),
            truth=joined([replaced(truth) for truth in truths], dim=1),
            kept=empty,
            prefix=empty,
            positions=empty.expand(3, 1, 0),
            branches=empty[:, :, None],
            targets=empty[:, :, None],
            seen=empty,
            starts=empty,
            points=torch.zeros(1, 0, 0, dtype=torch.bool),
        )


def replaced(truth: Truth) -> Truth:
    """With an axis for videos in front."""
    return Truth(**{field.name: getattr(truth, field.name)[None] for field in fields(Truth)})


def joined(truths: Sequence[Truth], dim: int = 0) -> Truth:
    return Truth(**{f.name: torch.cat([getattr(truth, f.name) for truth in truths], dim=dim) for f in fields(Truth)})


class Films(Dataset[Batch]):
    """Whole videos of ``steps`` steps with ``questions`` questions each, asked after steps drawn at random.

    Args:
        config: Of the model.
        tokenizer: Likewise.
        seed: With the index, decides the videos.
        batch_size: Videos per batch.
        steps: Least and most steps; all videos of a batch have the same number.
        questions: Per video.
        thinned: Share of the tokens that is left out among those that show no toy: a long video at the cost of a
            shorter one, all that happens at its own time and place.
        moments: After how many steps of a video questions are asked; the last is always one.
        file_share: Share of batches that go through an H.264 file and the reader, as a user's videos do.
    """

    def __init__(
        self,
        config: VLMConfig,
        tokenizer: Any,
        *,
        seed: int,
        batch_size: int,
        steps: tuple[int, int],
        questions: int,
        thinned: float = 0.0,
        moments: int = 8,
        file_share: float = 0.0,
        split: str = "train",
    ) -> None:
        self.config, self.layout, self.seed, self.split = config, Layout(config, tokenizer), seed, split
        self.batch_size, self.steps, self.questions = batch_size, steps, questions
        self.thinned, self.moments, self.file_share = thinned, moments, file_share

    def __getitem__(self, index: int) -> Batch:
        dice = Dice("vlm films", self.seed, index)
        steps = dice.integer(*self.steps)
        filed = dice.chance(self.file_share)
        videos = [self._video(dice, steps, filed) for _ in range(self.batch_size)]
        truth = joined([replaced(truth) for _, truth, _ in videos])
        questions = [questions for _, _, questions in videos]
        branches, targets = self._branches(questions)
        ids, ends, places = map(torch.tensor, self.layout.ids(steps))
        is_visual = ids == int(self.layout.tokenizer.convert_tokens_to_ids(VISION[3]))
        stays = self._stays(is_visual, truth, dice)
        after = torch.tensor([[int(ends[one.step]) for one in asked] for asked in questions])
        kept = of_each(stays[:, is_visual])
        points = torch.stack([self._points(truth, asked) for _, truth, asked in videos])
        return Batch(
            patches=torch.cat([patches for patches, _, _ in videos]),
            truth=truth,
            kept=kept,
            prefix=ids[of_each(stays)],
            positions=places[:, of_each(stays)],
            branches=branches,
            targets=targets,
            seen=stays.cumsum(1).gather(1, after - 1),
            starts=places[0][after - 1] + 1,
            points=points.take_along_dim(kept[:, None], -1),
        )

    def _stays(self, is_visual: Bool[Tensor, " tokens"], truth: Truth, dice: Dice) -> Bool[Tensor, "videos tokens"]:
        """Which tokens are not left out: the first, all that show a toy, some of the others; as many in every video."""
        drawn = torch.Generator().manual_seed(dice.integer(0, 1 << 40))
        chances = torch.rand(self.batch_size, len(is_visual), generator=drawn)
        stays = (chances[:1] >= self.thinned).repeat(self.batch_size, 1)
        stays[:, 0] = True
        worth = chances[:, is_visual] + (truth.kind < len(KINDS)).flatten(1)
        most = int((worth >= self.thinned).sum(1).max())
        shown = torch.zeros(worth.shape, dtype=torch.bool)
        stays[:, is_visual] = shown.scatter(1, worth.topk(most).indices, True)
        return stays

    def _points(self, truth: Truth, asked: list[Asked]) -> Bool[Tensor, "questions visual"]:
        """Where to look: at the toy during the anchor, or where it was seen last."""
        middle = self.config.frames_per_step // 2 / self.config.fps
        times = torch.arange(len(truth.kind)) * self.config.step_seconds + middle
        rows: list[Tensor] = []
        for one in asked:
            colour, kind = one.question.name.split()
            shown = (truth.kind == KINDS.index(kind)) & (truth.colour == COLOURS.index(colour))
            shown &= (times <= one.question.asked_seconds)[:, None]
            if one.question.anchor is None:
                lasts = shown.any(1).nonzero()[-LAST_SHOWN:, 0]
                shown &= torch.isin(torch.arange(len(times)), lasts)[:, None]
            else:
                start, end = one.question.anchor
                shown &= ((times >= start) & (times <= end))[:, None]
            rows.append(shown.flatten())
        return torch.stack(rows)

    def _video(self, dice: Dice, steps: int, filed: bool) -> tuple[Tensor, Truth, list[Asked]]:
        config = self.config
        seconds = steps * config.step_seconds
        while True:
            script = make_script(dice.integer(0, 1 << 40), seconds=max(20.0, float(np.ceil(seconds))), split=self.split)
            asked = self._questions(script, steps, dice)
            if asked:
                break
        times = np.arange(steps * config.frames_per_step) / config.fps
        if filed:
            spec = SegmentSpec(num_frames=config.frames_per_step, fps=config.fps, height=config.size, width=config.size)
            frames = through_file(script, spec)[: len(times)].permute(0, 2, 3, 1).contiguous().numpy()
        else:
            renderer = Renderer(script, config.size)
            frames = np.stack([renderer.frame(float(time)) for time in times])
        middles = times[config.frames_per_step // 2 :: config.frames_per_step]
        return patches_of(frames, config), truth_at(script, middles, config.side), asked

    def _questions(self, script: Script, steps: int, dice: Dice) -> list[Asked]:
        """Half of them at the end, the others after some steps; fewer different ones are asked more than once."""
        recall = Recall(script)
        late = self.moments // 2  # there is more to remember
        firsts = [steps // 4] * (self.moments - late) + [3 * steps // 4] * (late - 1)
        moments = [steps - 1, *(dice.integer(first, steps - 1) for first in firsts)]
        share = self.questions // (2 * len(firsts)) if firsts else 0
        wanted = [self.questions - share * len(firsts), *[share] * len(firsts)]
        asked: list[Asked] = []
        for step, count in zip(moments, wanted, strict=True):
            drafts = list(recall.drafts((step + 1) * self.config.step_seconds, dice))
            found = chosen(drafts, count, dice, TAUGHT_SHARES) or tuple(drafts[:2])
            asked += [Asked(step, draft) for draft in found]
        if not asked:
            return []
        return (asked * -(-self.questions // len(asked)))[: self.questions]

    def _branches(self, questions: list[list[Asked]]) -> tuple[Tensor, Tensor]:
        tokenizer = self.layout.tokenizer
        rows: list[list[tuple[list[int], int]]] = []
        for asked in questions:
            rows.append([])
            for one in asked:
                before = tokenizer(f"{one.question.question}<|assistant|>", add_special_tokens=False)["input_ids"]
                after = tokenizer(f"{one.question.answer}<|end|>", add_special_tokens=False)["input_ids"]
                rows[-1].append(([*before, *after], len(before)))
        length = max(len(ids) for row in rows for ids, _ in row)
        branches = torch.full((len(rows), len(rows[0]), length), tokenizer.pad_token_id)
        targets = torch.full(branches.shape, IGNORED)
        for video, row in enumerate(rows):
            for number, (ids, answer_at) in enumerate(row):
                branches[video, number, : len(ids)] = torch.tensor(ids)
                targets[video, number, answer_at - 1 : len(ids) - 1] = torch.tensor(ids[answer_at:])
        return branches, targets


def of_each(chosen: Bool[Tensor, "rows columns"]) -> Int[Tensor, "rows chosen"]:
    """The columns chosen in each row, as many in every one."""
    return chosen.nonzero()[:, 1].unflatten(0, (len(chosen), -1))


def branch_mask(
    seen: Int[Tensor, "videos questions"], prefix: int, length: int
) -> Bool[Tensor, "videos 1 rows columns"]:
    """What each branch token sees of ``[prefix ; all branches]``: the steps before it, and its own branch so far."""
    videos, questions = seen.shape
    of_prefix = torch.arange(prefix, device=seen.device) < seen[..., None]
    own = torch.ones(length, length, dtype=torch.bool, device=seen.device).tril()
    of_branches = torch.block_diag(*[own] * questions)
    rows = questions * length
    of_prefix = of_prefix.repeat_interleave(length, dim=1)
    return torch.cat([of_prefix, of_branches.expand(videos, rows, rows)], dim=-1)[:, None]


def to(batch: Batch, device: torch.device) -> Batch:
    moved = {f.name: getattr(batch, f.name).to(device) for f in fields(Batch) if f.name != "truth"}
    truth = Truth(**{f.name: getattr(batch.truth, f.name).to(device) for f in fields(Truth)})
    return replace(batch, truth=truth, **moved)

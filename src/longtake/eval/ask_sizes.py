"""A small model with full attention against a larger one with StateKV, at equal operations for taking in a video.

Operations are those of the decoder for the video's tokens, counted on the meta device (``Counted``), causal pairs only;
the vision tower sees the same frames either way and is told apart. The budget is the largest at which the larger model
does not cost more than the small one (StateKV paper, section on equal cost).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from longtake.errors import ConfigError
from longtake.eval.ask import Marked, by, difference, share
from longtake.eval.ask_sweep import FULL, REFERENCE, Trial, read, tokens_of
from longtake.eval.bench_flops import line
from longtake.eval.flops import Counted
from longtake.methods.statekv import StateKV

SMALL = "small, full"
LARGE = "larger, StateKV at equal cost"
LARGE_FULL = "larger, full"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Operations of one model for a video of ``chunks`` steps of ``chunk_tokens`` tokens."""

    first: int
    """Of a step over no earlier keys, every query with every key of the step."""
    per_key: int
    """What each earlier key adds."""
    chunk_tokens: int
    chunks: int
    vision: int
    """Of the vision tower, for the whole video."""
    parameters: int

    @property
    def tokens(self) -> int:
        return self.chunks * self.chunk_tokens

    def at(self, budget: int | None) -> int:
        """Of the decoder for the whole video; None for full attention."""
        most = self.tokens if budget is None else budget
        carried = sum(min(index * self.chunk_tokens, most) for index in range(self.chunks))
        unseen = self.per_key // self.chunk_tokens * (self.chunk_tokens * (self.chunk_tokens - 1) // 2)
        return self.chunks * (self.first - unseen) + self.per_key * carried

    def budget_for(self, operations: int) -> int:
        """The largest budget that costs no more; 0 if even carrying nothing does."""
        low, high = 0, self.tokens
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.at(middle) <= operations else (low, middle - 1)
        return low


def cost_of(model: StateKV, name: str, path: Path) -> Cost:
    """Counted for a video file at the mean length of its steps.

    Raises:
        ConfigError: The model's classes are not counted.
    """
    config = deepcopy(model.family.model.config)
    if config.model_type != "qwen3_vl":
        raise ConfigError(f"{name} is of type {config.model_type}; operations are counted for qwen3_vl models here")
    seen = read(path, model)
    pictures = (model.family.height // config.vision_config.patch_size // 2) ** 2
    counted = Counted(
        name=name,
        config=config,
        frames_per_chunk=config.vision_config.temporal_patch_size,
        frame_pixels=model.family.height,
        marker_tokens=round(tokens_of(model, seen) / len(seen)) - pictures,
    )
    first, per_key = line(counted, [len(seen) * counted.chunk_tokens])
    return Cost(
        first=first,
        per_key=per_key,
        chunk_tokens=counted.chunk_tokens,
        chunks=len(seen),
        vision=counted.vision * len(seen),
        parameters=counted.parameters,
    )


def trials_of(small: Cost, large: Cost) -> dict[str, tuple[Trial, int]]:
    """What is asked of the two models, by name: the trial, and its operations.

    Raises:
        ConfigError: The larger model costs more though it carries nothing.
    """
    full = Trial(name=FULL, settings={"policy": "full"})
    budget = large.budget_for(small.at(None))
    if budget < large.chunk_tokens:
        raise ConfigError(
            f"the larger model costs {large.at(0) / small.at(None):.2f} of the small one with full attention before "
            "it carries a single step; take longer videos or a small model that is less small"
        )
    carried = Trial(name=REFERENCE, settings={}, share=Fraction(budget, large.tokens))
    return {
        SMALL: (full, small.at(None)),
        LARGE: (carried, large.at(budget)),
        LARGE_FULL: (full, large.at(None)),
    }


@dataclass(frozen=True, kw_only=True)
class SizesReport:
    """Answers of both models and what they cost."""

    small: Cost
    large: Cost
    marks: Mapping[str, Sequence[Marked]]
    operations: Mapping[str, int]
    share: Fraction
    """Of the tokens that the larger model carries."""
    blind: Sequence[Marked]

    @property
    def budget(self) -> int:
        return round(self.share * self.large.tokens)

    def to_dict(self) -> dict[str, object]:
        of_small = self.operations[SMALL]
        rows = [
            {
                "what": name,
                **share(marks).to_dict(),
                "by_type": {kind: one.accuracy for kind, one in by(marks, "type").items()},
                "decoder_flops": self.operations[name],
                "of_small": self.operations[name] / of_small,
                "of_small_with_vision": (self.operations[name] + self.large.vision) / (of_small + self.small.vision),
            }
            for name, marks in self.marks.items()
        ]
        gain = difference(self.marks[LARGE], self.marks[SMALL])
        return {
            "rows": rows,
            "budget_tokens": self.budget,
            "budget_share": float(self.share),
            "parameters": [self.small.parameters, self.large.parameters],
            "gain": gain.to_dict(),
            "without_video": share(self.blind).to_dict(),
        }


def markdown(report: SizesReport, heading: str) -> str:
    """The table for docs and model cards."""
    told = report.to_dict()
    small, large = (count / 1e6 for count in (report.small.parameters, report.large.parameters))
    carried = f"{report.budget} of {report.large.tokens} tokens carried"
    lines = [
        f"Share of right answers, {heading} ({len(report.blind)} questions).",
        f"Small: {small:.1f} M parameters. Larger: {large:.1f} M; {carried} at equal cost.",
        f"Words of the questions alone: {share(report.blind).accuracy:.3f}.",
        "",
        "| model | right | decoder GFLOPs | of small | of small, vision tower included |",
        "|---|---|---|---|---|",
    ]
    for row in told["rows"]:  # pyright: ignore[reportGeneralTypeIssues]
        right = f"{row['accuracy']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
        cost = f"{row['decoder_flops'] / 1e9:.2f} | {row['of_small']:.2f} | {row['of_small_with_vision']:.2f}"
        lines.append(f"| {row['what']} | {right} | {cost} |")
    gain = difference(report.marks[LARGE], report.marks[SMALL])
    lines += [
        "",
        f"At equal cost the larger model is {gain.accuracy:+.3f} ({gain.low:+.3f} to {gain.high:+.3f}) ahead.",
    ]
    return "\n".join(lines) + "\n"

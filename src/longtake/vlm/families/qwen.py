"""Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3-VL-MoE: two frames make one step of the grid, positions are M-RoPE.

In the second generation all frames are one run of video tokens, told apart only by their temporal position: the number
of the step (Qwen2-VL) or the seconds since the video began (Qwen2.5-VL). The third says the time in words before each
step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from longtake.errors import ConfigError
from longtake.vlm.families.family import Chunk, Family, free_size


class Qwen(Family):
    """What the generations share."""

    frames_per_chunk = 2
    frame_size = "any multiple of patch x merge; 448 x 448 if not said"

    def __init__(self, model: Any, processor: Any, **options: Any) -> None:
        self.frames_per_chunk = processor.video_processor.temporal_patch_size
        super().__init__(model, processor, **options)

    def words(self, input_ids: Tensor, *, position: int) -> Chunk:
        chunk = super().words(input_ids, position=position)
        return Chunk(
            input_ids=input_ids,
            position_ids=chunk.position_ids[None].expand(3, -1, -1),
            next_position=chunk.next_position,
        )

    def _frame_size(self, height: int | None, width: int | None) -> tuple[int, int]:
        vision = self.processor.video_processor
        return free_size(self.name, vision.patch_size * vision.merge_size, height, width)

    def _see(
        self, pixels: Tensor, pts_seconds: tuple[float, ...], index: int, before: Tensor | None
    ) -> tuple[str, dict[str, Tensor]]:
        seen = self._processed(pixels, pts_seconds)
        text = self.processor.replace_video_token(seen, 0)
        return text, {name: seen[name] for name in ("pixel_values_videos", "video_grid_thw")}


class Qwen3VL(Qwen):
    """Each step stands on its own: its time in words, then its tokens in brackets."""

    name = "Qwen3-VL"
    model_types = ("qwen3_vl", "qwen3_vl_moe")
    example = "Qwen/Qwen3-VL-2B-Instruct"
    notes = (
        "Transformers' processor leaves the chat template's `<|vision_start|>` and `<|vision_end|>` around the whole "
        "video, besides those of each step; so do we."
    )
    time_marker = "`<1.5 seconds>`, mean of a step's first and last frame"

    def _place(
        self, ids: Tensor, inputs: dict[str, Tensor], pts_seconds: tuple[float, ...], index: int, position: int
    ) -> tuple[Tensor, int]:
        kinds = torch.tensor(self.processor.create_mm_token_type_ids(ids.tolist()), device=ids.device)
        own, _ = self.model.model.get_rope_index(ids, kinds, video_grid_thw=inputs["video_grid_thw"])
        return own + position, int(own.max()) + 1 + position


class Qwen2VL(Qwen):
    """One run of video tokens; step ``index`` lies ``index`` above the run's first position."""

    name = "Qwen2-VL"
    model_types = ("qwen2_vl",)
    example = "Qwen/Qwen2-VL-2B-Instruct"
    notes = (
        "In transformers 5.24 the question's positions begin beside the video's first steps, not after its last; "
        "we follow the installed version."
    )
    time_marker = "none; temporal position = number of the step"
    places_from_start = True

    def __init__(self, model: Any, processor: Any, **options: Any) -> None:
        super().__init__(model, processor, **options)
        if self._lead:
            raise ConfigError(
                f"the chat template of this {self.name} has {self._lead!r} right before the video; "
                "expected a special token, as in the model's own template"
            )
        self._origin = self._ids(self._head, opens=True).shape[1]
        vision = self.processor.video_processor
        self._side = max(self.height, self.width) // (vision.patch_size * vision.merge_size)
        self._text_beside_time = self._puts_text_beside_time(vision.merge_size)

    def _steps(self, pts_seconds: tuple[float, ...], index: int) -> int:
        """Temporal positions between the video's first step and this one."""
        return index

    def _place(
        self, ids: Tensor, inputs: dict[str, Tensor], pts_seconds: tuple[float, ...], index: int, position: int
    ) -> tuple[Tensor, int]:
        merge = self.processor.video_processor.merge_size
        own = self.model.model.get_vision_position_ids(
            self._origin, inputs["video_grid_thw"][0], 1, merge, device=ids.device
        )
        steps = self._steps(pts_seconds, index)
        own[0] += steps
        return own[:, None], max(position, self._origin + max(steps + 1, self._side))

    def _first_question(self, ids: Tensor, position: int) -> Chunk:
        """The question; the words to come stand above every position so far, as in the model's ``generate``."""
        chunk = self.words(ids, position=self._origin + self._side if self._text_beside_time else position)
        return Chunk(input_ids=ids, position_ids=chunk.position_ids, next_position=max(position, chunk.next_position))

    def _puts_text_beside_time(self, merge: int) -> bool:
        """Whether the model's own rule lets text after a video begin beside its first frames, not after its last one.

        Up to transformers 4 the text came after the last frame; 5.24 counts only height and width. Asked rather than
        assumed, so that we follow the installed version.
        """
        kinds = torch.tensor([[2, 2, 2, 0]], device=self.device)
        grid = torch.tensor([[3, merge, merge]], device=self.device)
        own, _ = self.model.model.get_rope_index(torch.zeros_like(kinds), kinds, video_grid_thw=grid)
        return bool(own[0, 0, -1] <= own[0, 0, :-1].max())


class Qwen25VL(Qwen2VL):
    """As Qwen2-VL, but temporal positions count real time."""

    name = "Qwen2.5-VL"
    model_types = ("qwen2_5_vl",)
    example = "Qwen/Qwen2.5-VL-3B-Instruct"
    notes = (
        "As Qwen2-VL. The processor knows one rate per video; we place each step by its true time, so uneven frames "
        "get other positions than in one call."
    )
    time_marker = "none; temporal position = true seconds x tokens per second"

    def _steps(self, pts_seconds: tuple[float, ...], index: int) -> int:
        # 1e-6: a time that is whole in decimals must not fall below itself in floating point
        return int(pts_seconds[0] * self.model.config.vision_config.tokens_per_second + 1e-6)

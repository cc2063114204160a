"""SmolVLM: an introduction with the number of frames and the length of the video, then each frame with its time."""

from __future__ import annotations

from datetime import timedelta

from torch import Tensor
from transformers.models.smolvlm import processing_smolvlm as own

from longtake.vlm.families.family import Family, fixed_size


class SmolVLM(Family):
    """Says before the first frame how many will come, so it serves sources whose length is known or promised."""

    name = "SmolVLM"
    model_types = ("smolvlm",)
    example = "HuggingFaceTB/SmolVLM2-2.2B-Instruct"
    tested_with = "real classes; `num2words` replaced by a stand-in"
    notes = "Its processor needs the package `num2words`. Times are cut to whole seconds, minutes go past 59."
    time_marker = "`Frame from 00:01:`, minutes and whole seconds"
    needs_length = True

    def _frame_size(self, height: int | None, width: int | None) -> tuple[int, int]:
        side = self.processor.video_processor.max_image_size["longest_edge"]
        return fixed_size(self.name, (side, side), height, width)

    def _intro(self) -> str:
        # the processor cannot be made without num2words, so it is there
        count = own.num2words(self.horizon_frames)  # pyright: ignore[reportOptionalCall, reportPrivateImportUsage]
        duration = str(timedelta(seconds=int(self.horizon_seconds or 0)))
        return own.DEFAULT_VIDEO_INTRO.format(frame_count=count, video_duration=duration)

    def _outro(self) -> str:
        return own.DEFAULT_MEDIA_OUTTRO

    def _see(
        self, pixels: Tensor, pts_seconds: tuple[float, ...], index: int, before: Tensor | None
    ) -> tuple[str, dict[str, Tensor]]:
        seen, maker = self._processed(pixels, pts_seconds), self.processor
        minutes, seconds = divmod(int(pts_seconds[0]), 60)
        marker = own.FRAME_TIMESTAMP_MESSAGE.format(timestamp=f"{minutes:02d}:{seconds:02d}")
        picture = maker.global_image_token + maker.image_token * maker.image_seq_len
        text = f"{marker}{maker.fake_image_token}{picture}{maker.fake_image_token}"
        return text, {name: seen[name] for name in ("pixel_values", "pixel_attention_mask") if name in seen}

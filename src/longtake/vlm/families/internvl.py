"""InternVL3 (transformers' InternVLForConditionalGeneration): numbered frames, no times."""

from __future__ import annotations

from torch import Tensor

from longtake.vlm.families.family import Family, fixed_size


class InternVL(Family):
    """``Frame1: <img>...</img>``, a line each."""

    name = "InternVL3"
    model_types = ("internvl",)
    example = "OpenGVLab/InternVL3-1B-hf"
    notes = "The prompt has no times: the model cannot know when a frame was."
    time_marker = "`Frame1: `, the number of the frame"

    def _frame_size(self, height: int | None, width: int | None) -> tuple[int, int]:
        own_height, own_width = self.model.config.vision_config.image_size
        return fixed_size(self.name, (own_height, own_width), height, width)

    def _see(
        self, pixels: Tensor, pts_seconds: tuple[float, ...], index: int, before: Tensor | None
    ) -> tuple[str, dict[str, Tensor]]:
        seen = self._processed(pixels, pts_seconds)
        maker = self.processor
        picture = maker.image_token * maker.image_seq_length
        # the processor's own maker of this text begins at Frame1 each time
        text = f"Frame{index + 1}: {maker.start_image_token}{picture}{maker.end_image_token}"
        # the model knows one kind of picture: frames go in as images
        return ("\n" if index else "") + text, {"pixel_values": seen["pixel_values_videos"][0]}

"""What an MC-ViT says without the video, so that the part that comes from seeing can be stated.

The rule: the same model is asked the same about one segment of even grey, in which nothing is to be seen. A score of
equation 8 is ``video . text``: that of what videos have in common plus that of what this one adds. The grey segment
stands for the first part, so what differs from it is the visual part. With a linear head it is the classes' prior.
Nothing of any video goes in, and the same texts always get the same scores.

The paper asks a language model for the words alone (table 4, "blind") and subtracts; a contrastive model has no such
part, and the nearest option to the question as text would be a score that it never computes.
"""

from __future__ import annotations

import torch

from longtake.methods.mcvit import MCViT, MCViTState

GREY = 128
"""Of 255: the middle of what a pixel can be."""


@torch.no_grad()
def without_video(model: MCViT) -> MCViTState:
    """The state of a video in which nothing is to be seen, and which is a segment long."""
    config = model.config
    size, device = config.encoder.tubelet.size, model.encoder.norm.weight.device
    grey = torch.full((1, config.num_frames, 3, size, size), GREY, dtype=torch.uint8, device=device)
    return model.take_in(model.init_state(total_frames=config.num_frames), grey)

"""What is minimised in training STS: the captions' cross-entropy, and what the stack's own heads say of each frame.

The heads teach the stack what to remember; they are not part of the saved model.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from longtake.data.toybox.world import ACTIONS, COLOURS, COUNTED
from longtake.language.tokenizer import PAD, TimedText
from longtake.methods.baselines import WholeVideo
from longtake.methods.sts import STS
from longtake.train.caption_objective import CaptionObjective, KindHeads, class_loss
from longtake.train.labels import MEMORY_ANSWERS, MOST_COUNTS, Labels
from longtake.train.material import Batch

STACK_HEADS = {
    "action": len(ACTIONS),
    "elapsed": 32,
    "ended": len(ACTIONS),
    "length": 32,
    "counts": len(COUNTED) * (MOST_COUNTS + 1),
    "home": 2,
    "memory": len(MEMORY_ANSWERS),
    "colour": len(COLOURS),
}
RARE = {
    "ended": 1.0,
    "memory": 1.0,
    "length": 0.5,
    "elapsed": 0.3,
    "counts": 0.5,
    "home": 0.2,
    "colour": 0.3,
    "action": 0.5,
}
"""Weights of the stack's heads."""


class STSObjective(CaptionObjective[STS]):
    """An STS model, or a global baseline in the place of its stack, with its training heads."""

    def __init__(self, model: STS, whole: WholeVideo | None = None) -> None:
        super().__init__(model, whole)
        self.stack_heads = KindHeads(model.config.bottleneck.num_tokens, model.config.bottleneck.dim, STACK_HEADS)

    def told_losses(self, tokens: Float[Tensor, "batch time tokens dim"], batch: Batch) -> dict[str, Tensor]:
        outputs = self.scan(tokens)
        return self.stack_losses(outputs, batch.labels) | {"captions": self.caption_loss(outputs, batch.tokens)}

    def tell(self, tokens: Float[Tensor, "batch time tokens dim"]) -> list[list[TimedText]]:
        memory, visible = self.shown(self.scan(tokens))
        model = self.model
        return model.decoder.generate(memory, model.tokenizer, visible, event_bias=model.config.event_bias)

    def scan(self, tokens: Float[Tensor, "batch time tokens dim"]) -> Float[Tensor, "batch time tokens dim"]:
        """The whole video at once, which equals segment by segment; with ``carry`` off, each segment from zero."""
        model, (batch, time) = self.model, tokens.shape[:2]
        if self.whole is not None:
            return self.whole(tokens)
        if model.config.stack.carry:
            return model.stack(tokens, model.stack.init_carried(batch, tokens.shape[2]))[0]
        size = model.config.num_frames
        padded = functional.pad(tokens, (0, 0, 0, 0, 0, -time % size))
        rows = padded.unflatten(1, (-1, size)).flatten(0, 1)
        outputs = model.stack(rows, model.stack.init_carried(rows.shape[0], tokens.shape[2]))[0]
        return outputs.unflatten(0, (batch, -1)).flatten(1, 2)[:, :time]

    def stack_losses(self, outputs: Tensor, labels: Labels) -> dict[str, Tensor]:
        said = self.stack_heads(outputs)
        said["counts"] = said["counts"].unflatten(-1, (len(COUNTED), -1))
        return {f"stack_{name}": RARE[name] * class_loss(said[name], getattr(labels, name)) for name in STACK_HEADS}

    def caption_loss(
        self, outputs: Float[Tensor, "batch time tokens dim"], tokens: Int[Tensor, "batch segments length"]
    ) -> Tensor:
        memory, visible = self.shown(outputs)
        targets = tokens.flatten(0, 1)
        inputs = functional.pad(targets, (1, 0), value=PAD)[:, :-1]
        logits = self.model.decoder(memory, inputs, visible)
        return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=PAD)

    def shown(self, outputs: Float[Tensor, "batch time tokens dim"]) -> tuple[Tensor, Tensor | None]:
        """What the decoder reads at each decoding point, and which of it is real."""
        return shown_segments(self.model, outputs) if self.whole is None else (self.whole.show(outputs), None)


def shown_segments(model: STS, outputs: Float[Tensor, "batch time tokens dim"]) -> tuple[Tensor, Tensor | None]:
    """What the decoder reads at each decoding point of whole videos; which of it is real (the last may be short)."""
    size = model.config.num_frames
    short = outputs.shape[1] % size
    whole = outputs[:, : outputs.shape[1] - short].unflatten(1, (-1, size))
    batch, segments = whole.shape[:2]
    memory = model.show(whole.flatten(0, 1)).unflatten(0, (batch, segments))
    if not short:
        return memory.flatten(0, 1), None
    last = model.show(outputs[:, -short:])
    missing = memory.shape[2] - last.shape[1]
    memory = torch.cat([memory, functional.pad(last, (0, 0, missing, 0))[:, None]], dim=1)
    visible = torch.ones(memory.shape[:3], dtype=torch.bool, device=memory.device)
    visible[:, -1, :missing] = False
    return memory.flatten(0, 1), visible.flatten(0, 1)

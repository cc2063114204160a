"""What is minimised: the captions' cross-entropy, and what is true at each frame, read by training's own heads.

The heads teach the encoder what is where and the stack what to remember; they are not part of the saved model.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from longtake.data.toybox.world import ACTIONS, COLOURS, COUNTED, KINDS
from longtake.language.tokenizer import PAD
from longtake.methods.baselines import WholeVideo
from longtake.methods.sts import STS
from longtake.train.labels import IGNORED, MEMORY_ANSWERS, MOST_COUNTS, Labels
from longtake.train.material import Batch

FRAME_HEADS = {"visible": 1, "colour": len(COLOURS), "place": 3, "action": len(ACTIONS)}
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


class KindHeads(nn.Module):
    """Linear heads that say something about each kind of toy.

    With one token per kind each token speaks for its own kind; else all tokens of the frame speak for all kinds.
    """

    def __init__(self, num_tokens: int, dim: int, heads: dict[str, int]) -> None:
        super().__init__()
        self.own = num_tokens == len(KINDS)
        self.sizes = heads
        width = sum(heads.values())
        self.linear = nn.Linear(dim, width) if self.own else nn.Linear(num_tokens * dim, len(KINDS) * width)

    def forward(
        self, tokens: Float[Tensor, "batch time tokens dim"]
    ) -> dict[str, Float[Tensor, "batch time kinds size"]]:
        said = self.linear(tokens) if self.own else self.linear(tokens.flatten(2)).unflatten(-1, (len(KINDS), -1))
        return dict(zip(self.sizes, said.float().split(tuple(self.sizes.values()), dim=-1), strict=True))


class STSObjective(nn.Module):
    """An STS model with its training heads; ``forward`` returns the losses by name, ``loss`` among them."""

    def __init__(self, model: STS, whole: WholeVideo | None = None) -> None:
        super().__init__()
        self.model = model
        self.whole = whole
        num_tokens, dim = model.config.bottleneck.num_tokens, model.config.bottleneck.dim
        self.cell_head = nn.Linear(model.encoder.dim, len(KINDS) + 1)
        self.frame_heads = KindHeads(num_tokens, dim, FRAME_HEADS)
        self.stack_heads = KindHeads(num_tokens, dim, STACK_HEADS)

    def forward(
        self, batch: Batch, *, frozen: bool = False, label_weight: float = 1.0, feature_noise: float = 0.0
    ) -> dict[str, Float[Tensor, ""]]:
        """Losses of a batch.

        Args:
            frozen: encoder and bottleneck take no gradient (and cost no backward pass).
            label_weight: of the heads beside the captions.
            feature_noise: in units of the tokens' standard deviation.
        """
        only_frames = batch.tokens.shape[1] == 0
        losses: dict[str, Tensor] = {}
        if batch.seen is not None:
            tokens = batch.seen
        else:
            with torch.set_grad_enabled(torch.is_grad_enabled() and not frozen):
                grid, tokens = self.see(batch.frames, whole_video=not only_frames)
            losses = {} if frozen else self.frame_losses(grid, tokens, batch.labels)
        if not only_frames:
            if feature_noise and self.training:
                tokens = tokens + feature_noise * tokens.detach().std() * torch.randn_like(tokens)
            outputs = self.scan(tokens)
            losses |= self.stack_losses(outputs, batch.labels)
            losses["captions"] = self.caption_loss(outputs, batch.tokens)
        total = sum(
            (label_weight if not only_frames and name != "captions" else 1.0) * value for name, value in losses.items()
        )
        return losses | {"loss": total}  # pyright: ignore[reportReturnType]

    def see(
        self, frames: Tensor, *, whole_video: bool
    ) -> tuple[Float[Tensor, "batch time cells dim"], Float[Tensor, "batch time tokens dim"]]:
        """Grid and kept tokens. Moments bring their earlier frames along; a video's first frame stands for them."""
        history = self.model.encoder.history
        if whole_video:
            before = frames[:, :1].expand(-1, history, -1, -1, -1)
        else:
            before, frames = frames[:, :history], frames[:, history:]
        grid = self.model.encoder(frames, before)
        return grid, self.model.bottleneck(grid.flatten(0, 1)).unflatten(0, frames.shape[:2])

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

    def frame_losses(self, grid: Tensor, tokens: Tensor, labels: Labels) -> dict[str, Tensor]:
        said = self.frame_heads(tokens)
        visible = labels.visible
        share = visible.sum().clamp(min=1.0)
        apart = functional.smooth_l1_loss(said["place"], labels.place, reduction="none", beta=0.1).sum(-1)
        return {
            "cell": class_loss(self.cell_head(grid).float(), labels.cell.flatten(2)),
            "visible": functional.binary_cross_entropy_with_logits(said["visible"].squeeze(-1), visible),
            "frame_colour": class_loss(said["colour"], labels.colour),
            "frame_action": 0.5 * class_loss(said["action"], labels.action.masked_fill(visible == 0, IGNORED)),
            "place": 2.0 * (apart * visible).sum() / share,
        } | ({"look": self.look_loss(grid, labels)} if self.frame_heads.own else {})

    def look_loss(self, grid: Tensor, labels: Labels) -> Tensor:
        """The token of a kind should look where that toy is: without this, tokens take long to tell the kinds apart."""
        weights = self.model.bottleneck.attention(grid.flatten(0, 1)).mean(1)[..., : grid.shape[2]].float()
        cells = labels.cell.flatten(0, 1).flatten(1)
        frame, cell = (cells < len(KINDS)).nonzero(as_tuple=True)
        return 0.3 * -(weights[frame, cells[frame, cell], cell] + 1e-4).log().mean()

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


def class_loss(logits: Float[Tensor, "*axes classes"], targets: Int[Tensor, "*axes"]) -> Tensor:
    """Mean cross-entropy over what is to be learned; 0 where nothing is."""
    total = functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED, reduction="sum")
    return total / (targets != IGNORED).sum().clamp(min=1)

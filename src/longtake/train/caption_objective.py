"""What training any captioner has in common: frames are seen, and heads of its own say what is true of them.

The heads teach the encoder what is where; they are not part of the saved model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from longtake.data.toybox.world import ACTIONS, COLOURS, KINDS
from longtake.language.tokenizer import TimedText
from longtake.methods.baselines import WholeVideo
from longtake.methods.baselines.sdc import SDC
from longtake.methods.sts import STS
from longtake.train.labels import IGNORED, Labels
from longtake.train.material import Batch

CaptionerT = TypeVar("CaptionerT", bound=STS | SDC)

FRAME_HEADS = {"visible": 1, "colour": len(COLOURS), "place": 3, "action": len(ACTIONS)}


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


class CaptionObjective(nn.Module, ABC, Generic[CaptionerT]):
    """A captioner with training's heads; ``forward`` returns the losses by name, ``loss`` among them.

    ``whole``: a global baseline that reads the whole video first.
    """

    def __init__(self, model: CaptionerT, whole: WholeVideo | None = None) -> None:
        super().__init__()
        self.model = model
        self.whole = whole
        kept = model.config.bottleneck
        num_tokens = kept.num_tokens if kept.num_layers else model.encoder.num_tokens
        self.cell_head = nn.Linear(model.encoder.dim, len(KINDS) + 1)
        self.frame_heads = KindHeads(num_tokens, kept.dim, FRAME_HEADS)

    @abstractmethod
    def told_losses(self, tokens: Float[Tensor, "batch time tokens dim"], batch: Batch) -> dict[str, Tensor]:
        """Losses of whole videos beside those of their frames, ``captions`` among them."""

    @abstractmethod
    def tell(self, tokens: Float[Tensor, "batch time tokens dim"]) -> list[list[TimedText]]:
        """What is said at each decoding point of one whole video, as in use."""

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
            losses |= self.told_losses(tokens, batch)
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


def class_loss(logits: Float[Tensor, "*axes classes"], targets: Int[Tensor, "*axes"]) -> Tensor:
    """Mean cross-entropy over what is to be learned; 0 where nothing is."""
    total = functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED, reduction="sum")
    return total / (targets != IGNORED).sum().clamp(min=1)

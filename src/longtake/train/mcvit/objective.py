"""What is minimised: the contrast of videos with texts (equation 8), and what training's own heads read on the way.

No gradient flows through memory, so nothing in a segment is told what later segments would need of it. The heads say
it: what is in the picture, under the layers whose memory is to hold it, and what has been done so far, above them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from longtake.data.toybox.routines import ROUTINE_MOVES
from longtake.errors import ConfigError
from longtake.methods.mcvit import MCViT
from longtake.train.heads import token_losses, width
from longtake.train.mcvit.material import Asked, Batch
from longtake.train.mcvit.texts import class_texts
from longtake.train.truth import IGNORED

SEEN_HEADS = ("kind", "colour", "action", "offset")
"""Read off every token after ``looks_after`` layers."""
TOLD_HEADS = ("kind", "colour", "action")
"""Read off every output."""
DONE_HEADS = ("before", "done")
"""Likewise, in whole videos."""
NUM_RANKS = len(ROUTINE_MOVES) + 1


class MCViTObjective(nn.Module):
    """An MC-ViT model with its training heads; ``forward`` returns the losses by name, ``loss`` among them.

    Args:
        model: Any variant.
        looks_after: Layers under the heads that say what is in the picture.

    Raises:
        ConfigError: The encoder has not so many layers.
    """

    def __init__(self, model: MCViT, looks_after: int) -> None:
        super().__init__()
        encoder = model.config.encoder
        if not 0 < looks_after <= encoder.num_layers:
            raise ConfigError(f"looks_after is {looks_after}, expected 1 to {encoder.num_layers}, the encoder's layers")
        self.model, self.looks_after = model, looks_after
        self.seen_norm = nn.LayerNorm(encoder.dim)
        self.seen_heads = nn.Linear(encoder.dim, width(SEEN_HEADS))
        self.told_heads = nn.Linear(encoder.dim, width(TOLD_HEADS))
        self.done_heads = nn.Linear(encoder.dim, width(DONE_HEADS))
        self.rank_head = nn.Linear(encoder.dim, len(ROUTINE_MOVES) * NUM_RANKS)

    def forward(
        self, batch: Batch, *, seed: int | None = None, label_weight: float = 1.0
    ) -> dict[str, Float[Tensor, ""]]:
        """Losses of a batch of clips or videos.

        Args:
            batch: All of it on one device.
            seed: Of the memory's draws.
            label_weight: Of what the heads learn beside classes and questions.
        """
        with self._noted() as (inner, outer):
            vector = self.model.watch(batch.frames, seed=seed)
        losses = self._head_losses(torch.cat(inner, dim=1), torch.cat(outer, dim=1), batch)
        losses = {name: label_weight * loss for name, loss in losses.items()}
        with torch.autocast(vector.device.type, enabled=False):
            losses |= self._text_losses(self.model.head(vector.float()), batch)
        return losses | {"loss": sum(losses.values(), torch.zeros((), device=vector.device))}

    @contextmanager
    def _noted(self) -> Iterator[tuple[list[Tensor], list[Tensor]]]:
        """Tokens after ``looks_after`` layers and outputs, segment by segment, of all that is watched meanwhile."""
        encoder, inner, outer = self.model.encoder, list[Tensor](), list[Tensor]()
        first = 0 if encoder.embed.class_token is None else 1
        hooks = [
            encoder.blocks[self.looks_after - 1].register_forward_hook(
                lambda _m, _i, out: inner.append(out[:, first:])
            ),
            encoder.norm.register_forward_hook(lambda _m, _i, out: outer.append(out[:, first:])),
        ]
        try:
            yield inner, outer
        finally:
            for hook in hooks:
                hook.remove()

    def _head_losses(
        self, inner: Float[Tensor, "videos tokens dim"], outer: Float[Tensor, "videos tokens dim"], batch: Batch
    ) -> dict[str, Tensor]:
        losses: dict[str, Tensor] = {}
        times = batch.truth.kind.shape[1:]
        if inner.shape[1] == times.numel():  # else tokens were masked
            seen, told = self.seen_norm(inner).unflatten(1, times), outer.unflatten(1, times)
            found = {"seen": token_losses(self.seen_heads(seen), batch.truth, SEEN_HEADS)}
            found["told"] = token_losses(self.told_heads(told), batch.truth, TOLD_HEADS)
            if self._is_whole(batch):
                found["done"] = token_losses(self.done_heads(told), batch.truth, DONE_HEADS)
            losses = {f"{prefix}_{name}": loss for prefix, part in found.items() for name, loss in part.items()}
        if (batch.ranks != IGNORED).any():
            segments = outer.unflatten(1, (batch.ranks.shape[1], -1)).mean(2)
            losses["ranks"] = functional.cross_entropy(
                self.rank_head(segments).float().unflatten(-1, (-1, NUM_RANKS)).flatten(0, -2),
                batch.ranks.flatten(),
                ignore_index=IGNORED,
            )
        return losses

    def _is_whole(self, batch: Batch) -> bool:
        return bool((batch.labels != IGNORED).any()) or bool(batch.questions)

    def _text_losses(self, videos: Float[Tensor, "videos outputs"], batch: Batch) -> dict[str, Tensor]:
        losses: dict[str, Tensor] = {}
        known = batch.labels != IGNORED
        if known.any():
            scores, labels = self.class_scores(videos[known], batch.wording), batch.labels[known]
            losses["classes"] = functional.cross_entropy(scores, labels)
            if self.model.text:
                losses["videos"] = video_loss(scores, labels)
        if batch.questions:
            losses["questions"] = torch.stack(
                [functional.cross_entropy(said[None], right) for said, right in self.option_scores(videos, batch)]
            ).mean()
        return losses

    def class_scores(
        self, videos: Float[Tensor, "videos outputs"], wording: int = 0
    ) -> Float[Tensor, "videos classes"]:
        """Logits over the classes, by their texts where there is a text tower."""
        if not self.model.text:
            return videos
        texts = [self.model.config.prompt.replace("{}", text) for text in class_texts(wording)]
        return self.model.similarity(videos, self.model.embed_text(texts))

    def option_scores(
        self, videos: Float[Tensor, "videos embed"], batch: Batch
    ) -> Iterator[tuple[Float[Tensor, " options"], Int[Tensor, "1"]]]:
        """Logits over the options of every question, and the right one: the wrong ones are hard negatives."""
        texts = self.model.embed_text([text for one in batch.questions for text in one.texts])
        parts = texts.split([len(one.texts) for one in batch.questions])
        for one, part in zip(batch.questions, parts, strict=True):
            yield self._asked_scores(videos, one, part), torch.tensor([one.right], device=videos.device)

    def _asked_scores(self, videos: Tensor, one: Asked, texts: Tensor) -> Tensor:
        return self.model.similarity(videos[one.video : one.video + 1], texts)[0]


def video_loss(scores: Float[Tensor, "videos classes"], labels: Int[Tensor, " videos"]) -> Float[Tensor, ""]:
    """The second half of equation 8: of all videos of the batch, a text is nearest to its own.

    Departs: a class may have several videos in a batch; each of them counts as its own.
    """
    shares = scores.log_softmax(0)
    return -shares.gather(1, labels[:, None]).mean()

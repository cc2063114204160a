"""What is minimised in training Streaming DVC: the cross-entropy of each border's captions, after those before it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from longtake.language.tokenizer import PAD, TimedText
from longtake.methods.baselines.sdc import SDC
from longtake.state.clusters import Clusters, no_clusters
from longtake.train.caption_objective import CaptionObjective
from longtake.train.material import Batch


class SDCObjective(CaptionObjective[SDC]):
    """An SDC model with its training heads.

    ``prefix_dropout``: share of the earlier captions that a prefix leaves out.
    """

    def __init__(self, model: SDC, prefix_dropout: float) -> None:
        super().__init__(model)
        self.prefix_dropout = prefix_dropout

    def told_losses(self, tokens: Float[Tensor, "batch time tokens dim"], batch: Batch) -> dict[str, Tensor]:
        memory, visible = self.shown(tokens)
        inputs, targets = self.taught(batch.tokens, tokens.shape[1])
        logits = self.model.decoder(memory, inputs, visible)
        return {"captions": functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=PAD)}

    @torch.no_grad()
    def tell(self, tokens: Float[Tensor, "batch time tokens dim"]) -> list[list[TimedText]]:
        model, past, told = self.model, (), [[]]
        for size, memory in self.borders(tokens):
            past = model.prefix(past, told[-1], size)
            told.append(model.say(memory, past))
        return told[1:]

    def borders(self, tokens: Float[Tensor, "batch time tokens dim"]) -> Iterator[tuple[int, Clusters]]:
        """Frames of each segment of whole videos, and the memory at its end."""
        memory, at, num_frames = no_clusters(tokens.shape[0], self.model.time_position), 0, tokens.shape[1]
        by_share = self.model.config.time.encoding == "video"
        for part in tokens.split(self.model.config.num_frames, dim=1):
            size = part.shape[1]
            shares = [frame / num_frames for frame in range(at, at + size)] if by_share else None
            memory, at = self.model.remember(memory, part, shares), at + size
            yield size, memory

    def shown(
        self, tokens: Float[Tensor, "batch time tokens dim"]
    ) -> tuple[Float[Tensor, "rows clusters dim"], Bool[Tensor, "rows clusters"]]:
        """What the decoder reads at each border of each video, and which of it is real: a memory fills up first."""
        shown = [self.model.show(memory) for _, memory in self.borders(tokens)]
        most = max(one.shape[1] for one in shown)
        visible = [torch.arange(most, device=tokens.device) < one.shape[1] for one in shown]
        padded = torch.stack([functional.pad(one, (0, 0, 0, most - one.shape[1])) for one in shown], dim=1)
        return padded.flatten(0, 1), torch.stack(visible).repeat(tokens.shape[0], 1)

    def taught(
        self, tokens: Int[Tensor, "batch segments length"], num_frames: int
    ) -> tuple[Int[Tensor, "rows longest"], Int[Tensor, "rows longest"]]:
        """The decoder's inputs at each border, earlier captions first, and what it is to say: PAD where nothing is."""
        rows = [row for video in tokens for row in self.after_prefixes(video, num_frames)]
        whole = pad_sequence([torch.cat(row) for row in rows], batch_first=True, padding_value=PAD)
        targets = whole.clone()
        for number, (prefix, _) in enumerate(rows):
            targets[number, : len(prefix)] = PAD
        return functional.pad(whole, (1, 0), value=PAD)[:, :-1], targets

    def after_prefixes(self, video: Int[Tensor, "segments length"], num_frames: int) -> Iterator[tuple[Tensor, Tensor]]:
        """At each border of one video: the prefix as it is shown, and what is said after it."""
        model, size = self.model, self.model.config.num_frames
        past, said = (), []
        for number, row in enumerate(video):
            past = model.prefix(past, said, min(size, num_frames - number * size))
            said = model.tokenizer.decode(row.tolist())
            dropout = self.prefix_dropout if self.training else 0.0
            kept = [item for item, draw in zip(past, torch.rand(len(past)).tolist(), strict=True) if draw >= dropout]
            yield torch.tensor(model.prefix_ids(kept), dtype=row.dtype, device=row.device), row[row != PAD]

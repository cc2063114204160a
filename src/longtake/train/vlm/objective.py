"""What is minimised: answers, and what is true of the toy under each visual token, read by training's own heads."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface

from longtake.data.toybox.story import REGIONS
from longtake.data.toybox.world import ACTIONS, COLOURS, COUNTED, KINDS
from longtake.train.vlm.build import VLMConfig
from longtake.train.vlm.material import Batch, branch_mask
from longtake.train.vlm.truth import IGNORED, MOST_COUNTS, MOST_VISITS

SEEN_HEADS = {
    "kind": len(KINDS) + 1,
    "colour": len(COLOURS),
    "action": len(ACTIONS),
    "offset": 2,
    "region": len(REGIONS),
}
DONE_HEADS = {
    "kind": len(KINDS) + 1,
    "action": len(ACTIONS),
    "before": len(ACTIONS),
    "counts": len(COUNTED) * MOST_COUNTS,
    "visits": MOST_VISITS,
    "region": len(REGIONS),
    "done": len(ACTIONS),
}
WEIGHTS = {
    "kind": 1.0,
    "colour": 1.0,
    "action": 1.0,
    "offset": 2.0,
    "before": 1.0,
    "counts": 3.0,
    "visits": 0.5,
    "region": 0.5,
    "done": 3.0,
}
LOOKING, RECALLING = 1.0, 0.3
"""Weights of the losses that say where a question's last token, and a toy's tokens, should look."""

_mask: ContextVar[Bool[Tensor, "videos 1 rows columns"] | None] = ContextVar("mask", default=None)


@dataclass(slots=True)
class Looking:
    """What one head of some layers attends to from the last token of each question."""

    listens_after: int
    """Below this layer's end the toys' tokens are told where to look, in the two layers above it the questions."""
    rows: Int[Tensor, "videos questions"]
    """Of those tokens among all branches."""
    columns: Int[Tensor, " visual"]
    """Of the visual tokens in the video."""
    seen: Int[Tensor, "videos questions"]
    asked: list[Float[Tensor, "videos questions visual"]] = field(default_factory=list)
    """By layer: log of the share that each visual token has of what goes to the video."""
    recalled: list[Float[Tensor, "videos visual visual"]] = field(default_factory=list)
    """The same for visual tokens that look back at earlier ones."""

    def look(self, layer: int, query: Tensor, key: Tensor, prefix: int, scale: float) -> None:
        """Note what the first head of some layers does; query and key without the axis of heads."""
        key, places = key[:, :prefix].float(), torch.arange(prefix, device=key.device)
        if self.listens_after <= layer < self.listens_after + 2:
            rows = self.rows[..., None].expand(-1, -1, query.shape[-1])
            scores = query[:, prefix:].gather(1, rows).float() @ key.transpose(-1, -2) * scale
            ahead = places >= self.seen[..., None]
            self.asked.append(scores.masked_fill(ahead, -torch.inf).log_softmax(-1)[..., self.columns])
        elif 0 < layer < self.listens_after:
            scores = query[:, self.columns].float() @ key.transpose(-1, -2) * scale
            ahead = places > self.columns[:, None]
            self.recalled.append(scores.masked_fill(ahead, -torch.inf).log_softmax(-1)[..., self.columns])


_looking: ContextVar[Looking | None] = ContextVar("looking", default=None)


def branched(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    """Decoder attention: the video causally, every branch over the steps before it and its own tokens."""
    mask = _mask.get()
    assert mask is not None, "set by the objective"
    scale, prefix = kwargs.get("scaling"), mask.shape[-1] - mask.shape[-2]
    before = functional.scaled_dot_product_attention(
        query[:, :, :prefix], key[:, :, :prefix], value[:, :, :prefix], is_causal=True, scale=scale, enable_gqa=True
    )
    looking = _looking.get()
    if looking is not None:
        looking.look(int(module.layer_idx), query[:, 0], key[:, 0], prefix, kwargs["scaling"])  # pyright: ignore[reportArgumentType]
    asked = functional.scaled_dot_product_attention(
        query[:, :, prefix:], key, value, attn_mask=mask, scale=scale, enable_gqa=True
    )
    return torch.cat([before, asked], dim=2).transpose(1, 2), None


def step_by_step(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    """Vision attention within each step, all steps (of one size) at once."""
    steps = kwargs["cu_seq_lens_q"].numel() - 1

    def apart(states: Tensor) -> Tensor:
        return states[0].unflatten(1, (steps, -1)).transpose(0, 1)

    # plain products: on CPUs the fused form is far slower backwards for many short rows
    weights = (apart(query) * kwargs["scaling"] @ apart(key).transpose(-1, -2)).softmax(-1)
    out = weights.to(value.dtype) @ apart(value)
    return out.transpose(1, 2).flatten(0, 1)[None], None


def _as_product(convolution: nn.Conv3d, pixels: Float[Tensor, "patches values"]) -> Float[Tensor, "patches dim"]:
    """The tower's first layer, a convolution whose stride is its kernel, as the matrix product that it is."""
    return functional.linear(pixels, convolution.weight.flatten(1), convolution.bias)


class VLMObjective(nn.Module):
    """The model with its training heads; ``forward`` returns the losses by name, ``loss`` among them."""

    def __init__(self, model: Any, config: VLMConfig) -> None:
        super().__init__()
        self.model, self.config = model, config
        self.seen_heads = nn.Linear(config.dim, sum(SEEN_HEADS.values()))
        self.done_heads = nn.Linear(config.dim, sum(DONE_HEADS.values()))
        AttentionInterface.register("longtake-branched", branched)
        # transformers hands the borders of all steps at once to attentions with this word in their name
        AttentionInterface.register("longtake-steps-flash", step_by_step)
        model.model.language_model.config._attn_implementation = "longtake-branched"
        model.model.visual.config._attn_implementation = "longtake-steps-flash"
        embed = model.model.visual.patch_embed
        embed.forward = functools.partial(_as_product, embed.proj)

    def forward(self, batch: Batch, *, label_weight: float = 1.0, frozen: bool = False) -> dict[str, Float[Tensor, ""]]:
        """Losses of a batch.

        Args:
            batch: Clips or videos.
            label_weight: Of the heads beside the answers.
            frozen: The vision tower takes no gradient (and costs no backward pass).
        """
        with torch.set_grad_enabled(torch.is_grad_enabled() and not frozen):
            seen = self.see(batch)
        losses = {} if frozen else self._head_losses("seen", self.seen_heads(seen), SEEN_HEADS, batch)
        if not batch.branches.numel():
            return losses | {"loss": sum(losses.values(), torch.zeros(()))}
        answer_at = (batch.targets != IGNORED).int().argmax(-1)
        pads = batch.prefix == self.model.config.video_token_id
        looking = Looking(
            listens_after=self.config.listens_after,
            rows=answer_at + torch.arange(answer_at.shape[1], device=answer_at.device) * batch.branches.shape[-1],
            columns=pads[0].nonzero()[:, 0],
            seen=batch.seen,
        )
        token = _looking.set(looking)
        try:
            hidden, between = self.read(batch, seen)
        finally:
            _looking.reset(token)
        losses["looking"] = LOOKING * looking_loss(looking.asked, batch.points)
        during, ended = batch.truth.during.flatten(1), batch.truth.ended.flatten(1)
        recall = (ended[:, :, None] == during[:, None, :]) & (ended >= 0)[:, :, None]
        losses["recalling"] = RECALLING * looking_loss(looking.recalled, recall)
        steps = seen.shape[1]
        shown = between[:, : batch.prefix.shape[1]][pads].unflatten(0, (len(batch.prefix), steps, -1))
        losses |= self._head_losses("done", self.done_heads(shown), DONE_HEADS, batch)
        answers = self.answer_logits(hidden, batch)
        right = batch.targets[batch.targets != IGNORED]
        losses["answer"] = functional.cross_entropy(answers.float(), right)
        total = losses["answer"] + label_weight * sum(
            (value for name, value in losses.items() if name != "answer"), torch.zeros(())
        )
        return losses | {"loss": total}

    def see(self, batch: Batch) -> Float[Tensor, "videos steps token dim"]:
        """The vision tower's tokens of every step."""
        steps, patches, _ = batch.patches.shape
        rows = self.config.size // self.config.patch
        grid = torch.tensor([[1, rows, rows]], device=batch.patches.device).expand(steps, -1)
        pixels = batch.patches.flatten(0, 1).to(self._pixel_type()).sub_(127.5).mul_(1 / 127.5)
        tokens = self.model.model.visual(pixels, grid_thw=grid).pooler_output
        return tokens.unflatten(0, (batch.truth.kind.shape[0], -1, patches // 4))

    @staticmethod
    def _pixel_type() -> torch.dtype:
        """That of the products that follow: half as many bytes to move under autocast."""
        return torch.bfloat16 if torch.is_autocast_enabled("cpu") else torch.float32

    def read(self, batch: Batch, seen: Tensor) -> tuple[Float[Tensor, "videos tokens dim"], Tensor]:
        """Last hidden states of ``[video ; branches]``, and those under the training heads."""
        decoder = self.model.model.language_model
        pads = batch.prefix == self.model.config.video_token_id
        embedded = decoder.embed_tokens(batch.prefix)
        embedded = embedded.masked_scatter(pads[..., None], seen.to(embedded.dtype))
        asked = decoder.embed_tokens(batch.branches.flatten(1))
        length = batch.branches.shape[-1]
        places = batch.starts[..., None] + torch.arange(length, device=batch.starts.device)
        positions = torch.cat([batch.positions, places.flatten(1).expand(3, -1, -1)], dim=-1)
        between: list[Tensor] = []
        layer = decoder.layers[self.config.listens_after - 1]
        hook = layer.register_forward_hook(lambda _module, _inputs, output: between.append(output))
        mask = _mask.set(branch_mask(batch.seen, batch.prefix.shape[1], length))
        try:
            out = decoder(inputs_embeds=torch.cat([embedded, asked], dim=1), position_ids=positions, use_cache=False)
        finally:
            _mask.reset(mask)
            hook.remove()
        return out.last_hidden_state, between[0]

    def answer_logits(self, hidden: Tensor, batch: Batch) -> Float[Tensor, "said vocabulary"]:
        asked = hidden[:, batch.prefix.shape[1] :].unflatten(1, batch.branches.shape[1:])
        return self.model.lm_head(asked[batch.targets != IGNORED])

    def _head_losses(self, prefix: str, said: Tensor, heads: dict[str, int], batch: Batch) -> dict[str, Tensor]:
        losses: dict[str, Tensor] = {}
        for name, part in zip(heads, said.float().split(tuple(heads.values()), dim=-1), strict=True):
            target = getattr(batch.truth, name)
            if name == "offset":
                there = batch.truth.kind < len(KINDS)
                loss = functional.smooth_l1_loss(part[there], target[there], beta=0.1)
            elif name == "done":
                there = batch.truth.kind < len(KINDS)
                loss = functional.binary_cross_entropy_with_logits(part[there], target[there])
            elif name == "kind":
                # most tokens show no toy: those that do weigh half
                weight = torch.ones(len(KINDS) + 1, device=part.device)
                weight[-1] = 0.2
                loss = functional.cross_entropy(part.flatten(0, -2), target.flatten(), weight=weight)
            else:
                if name == "counts":
                    part = part.unflatten(-1, (len(COUNTED), -1))
                loss = functional.cross_entropy(part.flatten(0, -2), target.flatten(), ignore_index=IGNORED)
            losses[f"{prefix}_{name}"] = WEIGHTS[name] * loss
        return losses


def looking_loss(
    found: Sequence[Float[Tensor, "videos rows visual"]], right: Bool[Tensor, "videos rows visual"]
) -> Float[Tensor, ""]:
    """Minus the log of the attention that goes where it should; rows for which nothing was shown do not count."""
    known = right.any(-1)
    if not known.any() or not found:
        return torch.zeros((), device=right.device)
    total = [layer.masked_fill(~right, -torch.inf)[known].logsumexp(-1) for layer in found]
    return -torch.cat(total).clamp(min=-20.0).mean()

"""What is minimised: answers, and what is true of the toy under each visual token, read by training's own heads."""

from __future__ import annotations

import contextvars
import functools
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface

from longtake.data.toybox.world import ACTIONS, COLOURS, COUNTED, KINDS
from longtake.train.vlm.build import VLMConfig
from longtake.train.vlm.material import Batch, branch_mask
from longtake.train.vlm.truth import IGNORED, MOST_COUNTS, MOST_VISITS

SEEN_HEADS = {"kind": len(KINDS) + 1, "colour": len(COLOURS), "action": len(ACTIONS), "offset": 2}
DONE_HEADS = {
    "kind": len(KINDS) + 1,
    "action": len(ACTIONS),
    "before": len(ACTIONS),
    "counts": len(COUNTED) * MOST_COUNTS,
    "visits": MOST_VISITS,
}
WEIGHTS = {"kind": 1.0, "colour": 1.0, "action": 1.0, "offset": 2.0, "before": 1.0, "counts": 1.0, "visits": 0.5}

_mask: contextvars.ContextVar[Bool[Tensor, "videos 1 rows columns"] | None] = contextvars.ContextVar(
    "mask", default=None
)


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

    def forward(self, batch: Batch, *, label_weight: float = 1.0) -> dict[str, Float[Tensor, ""]]:
        """Losses of a batch; ``label_weight`` of the heads beside the answers."""
        seen = self.see(batch)
        losses = self._head_losses("seen", self.seen_heads(seen), SEEN_HEADS, batch)
        if not batch.branches.numel():
            return losses | {"loss": sum(losses.values(), torch.zeros(()))}
        hidden, between = self.read(batch, seen)
        steps = seen.shape[1]
        pads = batch.prefix == self.model.config.video_token_id
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

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

from longtake.data.toybox.recall import HOW_OFTEN
from longtake.data.toybox.world import ACTIONS, COLOURS, KINDS
from longtake.train.heads import token_losses, width
from longtake.train.truth import IGNORED, Truth
from longtake.train.vlm.build import VLMConfig
from longtake.train.vlm.material import Batch, branch_mask, of_each

SEEN_HEADS = ("kind", "colour", "action", "offset", "region")
BEGUN_HEADS = ("begins",)
"""After the first layer: what it takes to tell one long jump from two."""
DONE_HEADS = ("kind", "action", "before", "counts", "visits", "region", "done")
LATE_HEADS = ("before", "counts")
"""A layer later: what has to be found far back."""
LOOKING, RECALLING, COUNTING = 1.0, 1.0, 1.0
"""Weights of the losses that say where a question's last token, and a toy's tokens, should look."""
LONG_AGO = 8
"""Steps; what was so long ago counts twice in where toys' tokens should look, as few look further."""
NOTHING = 4.0
"""What a head that counts gives to the video's first token, if each thing counted gets 1: shares then grow evenly."""
LOOKERS = 1024
"""Visual tokens whose looking counts, at most, drawn at random: in long videos all would be too many pairs."""
ASKING = 2
"""KV heads, of each the first head looks where the question points to: one can hardly carry all that is true there."""

_mask: ContextVar[Bool[Tensor, "videos 1 rows columns"] | None] = ContextVar("mask", default=None)


@dataclass(slots=True)
class Looking:
    """What some heads of some layers attend to, from the last token of each question and from the visual tokens."""

    listens_after: int
    """Below this layer's end the toys' tokens are told where to look, in the two layers above it the questions."""
    rows: Int[Tensor, "videos questions"]
    """Of those tokens among all branches."""
    columns: Int[Tensor, "videos visual"]
    """Of the visual tokens in each video."""
    lookers: Int[Tensor, " looking"]
    """Those of them that are told where to look."""
    seen: Int[Tensor, "videos questions"]
    asked: list[Float[Tensor, "videos questions visual"]] = field(default_factory=list)
    """By layer and head: log of the share that each visual token has of what goes to the video."""
    followed: list[Float[Tensor, "videos looking visual"]] = field(default_factory=list)
    """The same for visual tokens, in the first layer."""
    recalled: list[Float[Tensor, "videos looking visual"]] = field(default_factory=list)
    """From the second layer to the questions' first."""
    counted: list[tuple[str, Float[Tensor, "videos looking 1+visual"]]] = field(default_factory=list)
    """In the last of those layers, with an action of ``HOW_OFTEN``; the video's first token before the visual ones."""

    def look(self, layer: int, query: Tensor, key: Tensor, prefix: int, scale: float) -> None:
        """Note what the heads of a layer do; ``query``: videos, heads, tokens, dim."""
        if self.listens_after <= layer < self.listens_after + 2:
            heads = range(0, query.shape[1], query.shape[1] // key.shape[1])[:ASKING]
            self.asked += [self._from_questions(query, key, prefix, scale, head) for head in heads]
        if layer == 0:
            self.followed.append(self._from_toys(query, key, prefix, scale, 0)[..., 1:])
        elif layer <= self.listens_after:
            # there the first KV heads serve the questions
            head = 0 if layer < self.listens_after else query.shape[1] - query.shape[1] // key.shape[1]
            self.recalled.append(self._from_toys(query, key, prefix, scale, head)[..., 1:])
        if layer == self.listens_after - 1:
            heads = zip(HOW_OFTEN, range(query.shape[1])[-len(HOW_OFTEN) :], strict=False)
            self.counted += [(action, self._from_toys(query, key, prefix, scale, head)) for action, head in heads]

    def _from_questions(self, query: Tensor, key: Tensor, prefix: int, scale: float, head: int) -> Tensor:
        keys = _key_head(query, key, head)[:, :prefix].float()
        rows = self.rows[..., None].expand(-1, -1, query.shape[-1])
        scores = query[:, head, prefix:].gather(1, rows).float() @ keys.transpose(-1, -2) * scale
        ahead = torch.arange(prefix, device=key.device) >= self.seen[..., None]
        return scores.masked_fill(ahead, -torch.inf).log_softmax(-1).take_along_dim(self.columns[:, None], -1)

    def _from_toys(self, query: Tensor, key: Tensor, prefix: int, scale: float, head: int) -> Tensor:
        keys = _key_head(query, key, head)[:, :prefix]
        rows = self.columns[:, self.lookers, None]
        scores = (query[:, head].take_along_dim(rows, 1) @ keys.transpose(-1, -2)).float() * scale
        ahead = torch.arange(prefix, device=key.device) > rows
        told = scores.masked_fill(ahead, -torch.inf).log_softmax(-1)
        return torch.cat([told[..., :1], told.take_along_dim(self.columns[:, None], -1)], dim=-1)


def _key_head(query: Tensor, key: Tensor, head: int) -> Tensor:
    """The keys that a head of the queries reads."""
    return key[:, head * key.shape[1] // query.shape[1]]


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
        looking.look(int(module.layer_idx), query, key, prefix, kwargs["scaling"])  # pyright: ignore[reportArgumentType]
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
        self.seen_heads = nn.Linear(config.dim, width(SEEN_HEADS))
        self.begun_heads = nn.Linear(config.dim, width(BEGUN_HEADS))
        self.done_heads = nn.Linear(config.dim, width(DONE_HEADS))
        self.late_heads = nn.Linear(config.dim, width(LATE_HEADS))
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
        losses = {} if frozen else named("seen", token_losses(self.seen_heads(seen), batch.truth, SEEN_HEADS))
        if not batch.branches.numel():
            return losses | {"loss": sum(losses.values(), torch.zeros(()))}
        answer_at = (batch.targets != IGNORED).int().argmax(-1)
        pads = batch.prefix == self.model.config.video_token_id
        looking = Looking(
            listens_after=self.config.listens_after,
            rows=answer_at + torch.arange(answer_at.shape[1], device=answer_at.device) * batch.branches.shape[-1],
            columns=of_each(pads),
            lookers=torch.randperm(batch.kept.shape[1], device=pads.device)[:LOOKERS],
            seen=batch.seen,
        )
        token = _looking.set(looking)
        try:
            hidden, between = self.read(batch, seen)
        finally:
            _looking.reset(token)
        losses["looking"] = LOOKING * looking_loss(looking.asked, batch.points)
        shown = batch.truth.of(batch.kept)
        losses |= toys_looking(looking, shown, step_of=batch.kept // batch.truth.kind.shape[-1])
        by_layer = (
            ("begun", self.begun_heads, BEGUN_HEADS),
            ("done", self.done_heads, DONE_HEADS),
            ("late", self.late_heads, LATE_HEADS),
        )
        for (name, heads, names), told in zip(by_layer, between, strict=True):
            toys = told[:, : batch.prefix.shape[1]][pads].unflatten(0, (len(batch.prefix), -1))
            losses |= named(name, token_losses(heads(toys), shown, names))
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

    def read(self, batch: Batch, seen: Tensor) -> tuple[Float[Tensor, "videos tokens dim"], list[Tensor]]:
        """Last hidden states of ``[video ; branches]``, and those under the training heads, from early to late."""
        decoder = self.model.model.language_model
        pads = batch.prefix == self.model.config.video_token_id
        embedded = decoder.embed_tokens(batch.prefix)
        seen = seen.flatten(1, 2).take_along_dim(batch.kept[..., None], 1)
        embedded = embedded.masked_scatter(pads[..., None], seen.to(embedded.dtype))
        asked = decoder.embed_tokens(batch.branches.flatten(1))
        length = batch.branches.shape[-1]
        places = batch.starts[..., None] + torch.arange(length, device=batch.starts.device)
        positions = torch.cat([batch.positions, places.flatten(1).expand(3, -1, -1)], dim=-1)
        between: list[Tensor] = []
        hooks = [
            decoder.layers[index].register_forward_hook(lambda _module, _inputs, output: between.append(output))
            for index in (0, self.config.listens_after - 1, min(self.config.listens_after, self.config.layers - 1))
        ]
        mask = _mask.set(branch_mask(batch.seen, batch.prefix.shape[1], length))
        try:
            out = decoder(inputs_embeds=torch.cat([embedded, asked], dim=1), position_ids=positions, use_cache=False)
        finally:
            _mask.reset(mask)
            for hook in hooks:
                hook.remove()
        return out.last_hidden_state, between

    def answer_logits(self, hidden: Tensor, batch: Batch) -> Float[Tensor, "said vocabulary"]:
        asked = hidden[:, batch.prefix.shape[1] :].unflatten(1, batch.branches.shape[1:])
        return self.model.lm_head(asked[batch.targets != IGNORED])


def named(prefix: str, losses: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}_{name}": loss for name, loss in losses.items()}


def toys_looking(looking: Looking, truth: Truth, step_of: Int[Tensor, "videos visual"]) -> dict[str, Tensor]:
    """Losses on where toys look: at themselves a step before, at what they did last, at all that is counted.

    Args:
        looking: Where they look.
        truth: ``(videos, visual)``, of the visual tokens in the video.
        step_of: Of each of these tokens.
    """
    there = truth.kind < len(KINDS)
    name = (truth.kind * len(COLOURS) + truth.colour).masked_fill(~there, IGNORED)
    of = looking.lookers
    itself = (name[:, of, None] == name[:, None, :]) & there[:, of, None]
    a_step_before = step_of[:, of, None] - 1 == step_of[:, None]
    last = (truth.ended[:, of, None] == truth.during[:, None, :]) & (truth.ended[:, of, None] >= 0)
    ago = step_of[:, of] - (last * step_of[:, None]).amax(-1)
    losses = {
        "following": RECALLING * looking_loss(looking.followed, itself & a_step_before),
        "recalling": RECALLING * looking_loss(looking.recalled, last, 1 + ago / LONG_AGO),
    }
    so_far = itself & (step_of[:, of, None] >= step_of[:, None])
    for action, told in looking.counted:
        counted = so_far & (truth.begins == ACTIONS.index(action))[:, None]
        right = torch.cat([NOTHING * there[:, of, None], counted], dim=-1)
        evenly = -(right * told.clamp(min=-20.0)).sum() / right.sum().clamp(min=1)
        losses["counting"] = losses.get("counting", 0.0) + COUNTING / len(looking.counted) * evenly
    return losses


def looking_loss(
    found: Sequence[Float[Tensor, "videos rows visual"]],
    right: Bool[Tensor, "videos rows visual"],
    weight: Float[Tensor, "videos rows"] | None = None,
) -> Float[Tensor, ""]:
    """Minus the log of the attention that goes where it should; rows for which nothing was shown do not count."""
    known = right.any(-1)
    if not known.any() or not found:
        return torch.zeros((), device=right.device)
    total = torch.stack([layer.masked_fill(~right, -torch.inf)[known].logsumexp(-1) for layer in found])
    share = torch.ones_like(total[0]) if weight is None else weight[known] / weight[known].mean()
    return -(total.clamp(min=-20.0) * share).mean()

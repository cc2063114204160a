"""The local text decoder (STS, section 3.4): T5-style, shared by all segments, reads the tokens shown to it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from longtake.errors import ConfigError
from longtake.language.tokenizer import EOS, EVENT, FIRST_TIME, PAD, CaptionTokenizer, TimedText


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """Sizes of the decoder."""

    dim: int = 128
    num_layers: int = 2
    num_heads: int = 4
    mlp_dim: int = 512
    dropout: float = 0.0
    max_tokens: int = 64
    """Longest answer at one decoding point."""

    def __post_init__(self) -> None:
        if self.dim % self.num_heads:
            raise ConfigError(f"decoder dim {self.dim} does not divide by num_heads {self.num_heads}")


class CaptionDecoder(nn.Module):
    """A T5 decoder stack with its own embedding, tied to the output."""

    def __init__(self, config: DecoderConfig, vocab_size: int, memory_dim: int) -> None:
        from transformers import T5Config
        from transformers.models.t5.modeling_t5 import T5Stack

        super().__init__()
        self.config = config
        self.memory = nn.Linear(memory_dim, config.dim) if memory_dim != config.dim else nn.Identity()
        self.stack = T5Stack(
            T5Config(
                vocab_size=vocab_size,
                d_model=config.dim,
                d_kv=config.dim // config.num_heads,
                d_ff=config.mlp_dim,
                num_layers=config.num_layers,
                num_heads=config.num_heads,
                dropout_rate=config.dropout,
                is_decoder=True,
                is_encoder_decoder=True,
                pad_token_id=PAD,
                eos_token_id=EOS,
            )
        )

    def forward(
        self,
        memory: Float[Tensor, "batch memory memory_dim"],
        ids: Int[Tensor, "batch length"],
        visible: Bool[Tensor, "batch memory"] | None = None,
    ) -> Float[Tensor, "batch length vocabulary"]:
        """Scores of the token after each of ``ids`` (which begin with pad, T5's start token)."""
        hidden = self.stack(
            input_ids=ids,
            encoder_hidden_states=self.memory(memory),
            encoder_attention_mask=visible,
            use_cache=False,
        ).last_hidden_state
        return self.logits(hidden)

    def logits(self, hidden: Float[Tensor, "batch length dim"]) -> Float[Tensor, "batch length vocabulary"]:
        # T5 scales the tied output so that its variance does not depend on the width.
        return (hidden * self.config.dim**-0.5) @ self.stack.embed_tokens.weight.T

    @torch.no_grad()
    def generate(
        self,
        memory: Float[Tensor, "batch memory memory_dim"],
        tokenizer: CaptionTokenizer,
        visible: Bool[Tensor, "batch memory"] | None = None,
        event_bias: float = 0.0,
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> list[list[TimedText]]:
        """Say the events of each row, greedily, within the grammar of ``CaptionTokenizer``.

        Args:
            event_bias: added to the score of ``<event>``; above 0 says more, below 0 says less.
            prefix: what was said before, with its end of sequence; it is read, not said again.
        """
        memory = self.memory(memory)
        batch = memory.shape[0]
        ids = torch.full((batch, 1), PAD, device=memory.device)
        if prefix is not None:
            ids = torch.cat([ids, prefix], dim=1)
        given = ids.shape[1]
        unread, probabilities = ids, torch.ones(batch, 0)
        done = torch.zeros(batch, dtype=torch.bool, device=memory.device)
        cache = None
        while not bool(done.all()) and ids.shape[1] < given + self.config.max_tokens:
            output = self.stack(
                input_ids=unread,
                encoder_hidden_states=memory,
                encoder_attention_mask=visible,
                use_cache=True,
                cache=cache,
            )
            cache = output.cache
            scores = self.logits(output.last_hidden_state[:, -1:])[:, -1].float()
            scores[:, EVENT] += event_bias
            scores = scores.masked_fill(~allowed_next(ids, tokenizer), float("-inf"))
            best, token = scores.softmax(-1).max(-1)
            token = token.masked_fill(done, PAD)
            done = done | (token == EOS)
            unread = token[:, None]
            ids = torch.cat([ids, unread], dim=1)
            probabilities = torch.cat([probabilities, best[:, None].cpu()], dim=1)
        return [
            tokenizer.decode(row, scores)
            for row, scores in zip(ids[:, given:].tolist(), probabilities.tolist(), strict=True)
        ]


def allowed_next(ids: Int[Tensor, "batch length"], tokenizer: CaptionTokenizer) -> Bool[Tensor, "batch vocabulary"]:
    """Which tokens may follow: two times after ``<event>`` (the end not before the start), then at least one word."""
    token = torch.arange(tokenizer.vocab_size, device=ids.device)
    is_time = (token >= FIRST_TIME) & (token < tokenizer.first_word)
    is_word = token > tokenizer.first_word  # the first word id is <unk>, which is never said
    last = ids[:, -1:]
    before = ids[:, -2:-1] if ids.shape[1] > 1 else torch.full_like(last, PAD)
    after_start = (before == EVENT) & (last >= FIRST_TIME) & (last < tokenizer.first_word)
    after_end = (last >= FIRST_TIME) & (last < tokenizer.first_word) & ~after_start
    at_border = (last == PAD) | (last == EOS)
    after_word = last >= tokenizer.first_word
    return (
        (at_border & ((token == EVENT) | (token == EOS)))
        | ((last == EVENT) & is_time)
        | (after_start & is_time & (token >= last))
        | (after_end & is_word)
        | (after_word & (is_word | (token == EVENT) | (token == EOS)))
    )

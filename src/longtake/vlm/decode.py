"""From logits to words: sampling, stop strings, and text that can be shown while it grows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from longtake.errors import ConfigError

UNFINISHED = "\ufffd"
"""What a tokenizer gives for the bytes of a character that is not complete yet."""
REPEATS = 12
"""So many equal tokens, or equal groups of up to four, in a row are not language any more."""


MOST_TOKENS = 32_768
"""Of an answer."""
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.001, 100.0
"""Of sampling: below, words' scores leave the range of a float; above, all words are alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the next word is chosen; the defaults are greedy."""

    max_new_tokens: int = 256
    temperature: float = 0.0
    """0 takes the most probable token."""
    top_k: int = 0
    """Only among so many; 0: all."""
    top_p: float = 1.0
    """Only among the most probable that together reach this."""
    repetition_penalty: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    """The answer ends before the first of these."""

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise ConfigError(f"max_new_tokens is {self.max_new_tokens}, expected 1 or more")
        if self.max_new_tokens > MOST_TOKENS:
            raise ConfigError(f"max_new_tokens is {self.max_new_tokens}, expected at most {MOST_TOKENS}")
        if self.temperature != 0 and not LEAST_TEMPERATURE <= self.temperature <= MOST_TEMPERATURE:
            raise ConfigError(
                f"temperature is {self.temperature}, expected 0 (greedy) or {LEAST_TEMPERATURE} to {MOST_TEMPERATURE}"
            )
        if not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"seed is {self.seed}, expected 0 or more, of at most 63 bits")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}, expected more than 0 and at most 1")
        if self.top_k < 0:
            raise ConfigError(f"top_k is {self.top_k}, expected 0 (all) or more")
        if not self.repetition_penalty > 0:
            raise ConfigError(f"repetition_penalty is {self.repetition_penalty}, expected more than 0 (1: none)")
        if "" in self.stop:
            raise ConfigError("a stop string is empty; leave it out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Text that has become certain; the last one says why it is the last."""

    text: str
    finish: str = ""
    """``stop`` (an end token or a stop string), ``length``, or ``repeats``; empty while more may come."""
    num_tokens: int = 0
    """Tokens of the answer so far."""


def say(
    logits: Float[Tensor, "words"],
    step: Callable[[int], Float[Tensor, "words"]],
    tokenizer: Any,
    ends: Collection[int],
    sampling: Sampling,
) -> Iterator[Piece]:
    """Choose token after token and give their text as it becomes certain.

    Args:
        logits: For the first token of the answer.
        step: Takes a token in and gives the logits of the next one.
        tokenizer: Of the model.
        ends: Tokens that end an answer.
        sampling: How tokens are chosen.
    """
    choose = chooser(sampling)
    tokens: list[int] = []
    shown = 0
    while True:
        token = choose(tokens, logits)
        finish = "stop" if token in ends else ""
        if not finish:
            tokens.append(token)
            finish = "repeats" if repeats(tokens) else "length" if len(tokens) >= sampling.max_new_tokens else ""
        text = tokenizer.decode(tokens, skip_special_tokens=True)
        cut = min((at for at in (text.find(stop) for stop in sampling.stop) if at >= 0), default=-1)
        if cut >= 0:
            text, finish = text[:cut], "stop"
        certain = len(text) if finish else certain_length(text, sampling.stop)
        if certain > shown or finish:
            yield Piece(text=text[shown:certain], finish=finish, num_tokens=len(tokens))
            shown = max(shown, certain)
        if finish:
            return
        logits = step(token)


def chooser(sampling: Sampling) -> Callable[[list[int], Float[Tensor, "words"]], int]:
    """A function from the answer's tokens so far and logits to the next token, by transformers' own processors."""
    from transformers import (
        LogitsProcessorList,
        RepetitionPenaltyLogitsProcessor,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    processors = LogitsProcessorList()
    if sampling.repetition_penalty != 1.0:
        processors.append(RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
    if sampling.temperature:
        processors.append(TemperatureLogitsWarper(float(sampling.temperature)))
        if sampling.top_k:
            processors.append(TopKLogitsWarper(sampling.top_k))
        if sampling.top_p < 1:
            processors.append(TopPLogitsWarper(sampling.top_p))
    generator = torch.Generator().manual_seed(sampling.seed)

    def choose(tokens: list[int], logits: Tensor) -> int:
        said = torch.tensor([tokens], dtype=torch.int64, device=logits.device)
        scores = processors(said, logits[None].float())[0]  # pyright: ignore[reportArgumentType] any integer tensor will do
        if not sampling.temperature:
            return int(scores.argmax())
        return int(torch.multinomial(scores.softmax(-1).cpu(), 1, generator=generator))

    return choose


def certain_length(text: str, stops: Sequence[str]) -> int:
    """How much of a growing text will stay: not an unfinished character, nor what may become a stop string."""
    length = len(text.rstrip(UNFINISHED))
    for stop in stops:
        for size in range(min(len(stop) - 1, length), 0, -1):
            if text[:length].endswith(stop[:size]):
                length -= size
                break
    return length


def repeats(tokens: Sequence[int]) -> bool:
    """Whether the end is one token, or one short group of tokens, over and over."""
    return any(
        len(tokens) >= size * REPEATS and tuple(tokens[-size:]) * REPEATS == tuple(tokens[-size * REPEATS :])
        for size in range(1, 5)
    )

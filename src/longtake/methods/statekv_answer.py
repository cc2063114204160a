"""Answers from the detailed cache: on a copy with room for words, so that the stream never notices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from longtake.errors import ConfigError
from longtake.types import Answer
from longtake.vlm.attention import looking_back
from longtake.vlm.cache import ask_anew, cut_back
from longtake.vlm.decode import Piece, Sampling, say
from longtake.vlm.families.family import Chunk, Family

ROOM = 512
"""Tokens that a conversation has room for before its buffers grow."""


EMPTY = "empty"
"""Flag of an answer without a word."""


def flags_of(text: str) -> tuple[str, ...]:
    """What is to be said of an answer's text."""
    return () if text.strip() else (EMPTY,)


class Conversation:
    """Questions and answers about one moment of a stream, each knowing those before it."""

    def __init__(
        self, family: Family, cache: Cache, *, position: int, origin: int = 0, at_seconds: float, sampling: Sampling
    ) -> None:
        """``cache`` holds or finds the past; the model is told positions from ``origin``."""
        self.family, self.sampling, self.at_seconds = family, sampling, at_seconds
        self.cache, self.position, self.origin = cache, position, origin
        self.turns = 0

    def ask(self, question: str) -> Iterator[Piece]:
        """The answer piece by piece. Closed before its end, or failing, it leaves the conversation as it was before."""
        length, position, done = self.cache.get_seq_length(), self.position, False
        try:
            logits = self.hear(question)
            yield from say(logits, self.step, self.family.tokenizer, self.family.eos_token_ids, self.sampling)
            done = True
            self.turns += 1
        finally:
            if not done:
                cut_back(self.cache, length)
                self.position = position

    def answer(self, question: str) -> Answer:
        """The whole answer."""
        pieces = list(self.ask(question))
        flags = () if pieces[-1].finish == "stop" else (pieces[-1].finish,)
        text = "".join(piece.text for piece in pieces).strip()
        return Answer(text=text, at_seconds=self.at_seconds, flags=(*flags, *flags_of(text)))

    def choose(self, question: str, options: Sequence[str]) -> Answer:
        """The most likely of the options as an answer; the conversation is left as it was.

        Probabilities are a softmax over the options' mean log-likelihood per token, so that long ones stand a chance.
        """
        if len(options) < 2:
            raise ConfigError(f"got {len(options)} options, expected two or more to choose from")
        length, position = self.cache.get_seq_length(), self.position
        try:
            logits = self.hear(question)
            heard, place = self.cache.get_seq_length(), self.position
            scores: list[float] = []
            for option in options:
                scores.append(self._likelihood(option, logits))
                cut_back(self.cache, heard)
                self.position = place
        finally:
            cut_back(self.cache, length)
            self.position = position
        shares = torch.tensor(scores, dtype=torch.float64).softmax(0).tolist()
        best = max(range(len(shares)), key=shares.__getitem__)
        return Answer(text=options[best], choice=best, probabilities=tuple(shares), at_seconds=self.at_seconds)

    def hear(self, question: str) -> Tensor:
        """Take a question in: logits of the answer's first token."""
        chunk = self.family.question(question, position=self.position, first=self.turns == 0)
        ask_anew(self.cache)
        return self._take_in(chunk)[-1]

    def step(self, token: int) -> Tensor:
        """Take a token of the answer in: logits of the next one."""
        chunk = self.family.words(torch.tensor([[token]], device=self.family.device), position=self.position)
        return self._take_in(chunk)[-1]

    def _take_in(self, chunk: Chunk, keep: int = 1) -> Tensor:
        """Logits of the last ``keep`` tokens; 0: of all."""
        with looking_back(self.cache):
            logits = self.family.forward(chunk.seen_from(self.origin), self.cache, keep=keep)[0]
        self.position = chunk.next_position
        return logits

    def _likelihood(self, option: str, logits: Tensor) -> float:
        """Mean log-likelihood of the option's tokens after ``logits``."""
        ids = self.family.tokenizer(option, add_special_tokens=False, return_tensors="pt")["input_ids"]
        if not ids.shape[1]:
            raise ConfigError(f"option {option!r} has no tokens in this model; give other words")
        rows = logits[None]
        if ids.shape[1] > 1:
            chunk = self.family.words(ids[:, :-1].to(self.family.device), position=self.position)
            rows = torch.cat([rows, self._take_in(chunk, keep=0)])
        likely = rows.float().log_softmax(-1).cpu()
        return float(likely.gather(1, ids[0][:, None]).mean())

"""Events to token ids and back.

One vocabulary holds, in this order: pad, end of sequence, ``<event>``, one token per time bucket, and the words. What a
decoding point says is ``(<event> <start> <end> word...)* <eos>``. The ``<event>`` token is there for greedy decoding:
without it the end of sequence competes with every single start bucket, wins against each of them, and nothing is said
(methods.md).

Times are bucket numbers here; ``methods/`` turns them into seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer, models, pre_tokenizers

from longtake.errors import ConfigError

PAD, EOS, EVENT = 0, 1, 2
FIRST_TIME = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedText:
    """One event as the decoder says it."""

    start_bucket: int
    end_bucket: int
    text: str
    score: float = 1.0
    """Product of the probabilities of the tokens said."""


class CaptionTokenizer:
    """Text through a ``tokenizers`` tokenizer, with the special and time tokens in front of its ids."""

    def __init__(self, text: Tokenizer, num_buckets: int) -> None:
        self.text = text
        self.num_buckets = num_buckets
        self.first_word = FIRST_TIME + num_buckets

    @classmethod
    def from_words(cls, words: Sequence[str], num_buckets: int) -> CaptionTokenizer:
        """A word-level tokenizer over a closed vocabulary."""
        if len(set(words)) != len(words) or not words:
            raise ConfigError(
                f"vocabulary of {len(words)} words has {len(set(words))} different ones, expected all different"
            )
        vocabulary = {"<unk>": 0} | {word: index + 1 for index, word in enumerate(words)}
        text = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="<unk>"))
        text.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # pyright: ignore[reportAttributeAccessIssue]
        return cls(text, num_buckets)

    @property
    def vocab_size(self) -> int:
        return self.first_word + self.text.get_vocab_size()

    def encode(self, events: Iterable[TimedText]) -> list[int]:
        """Ids of what a decoding point says, end of sequence included."""
        ids: list[int] = []
        for event in events:
            times = (event.start_bucket, event.end_bucket)
            if not all(0 <= bucket < self.num_buckets for bucket in times):
                raise ConfigError(f"event {event.text!r} has buckets {times}, expected 0 to {self.num_buckets - 1}")
            words = self.text.encode(event.text).ids
            ids += [EVENT, *(FIRST_TIME + bucket for bucket in times), *(self.first_word + word for word in words)]
        return [*ids, EOS]

    def decode(self, ids: Sequence[int], probabilities: Sequence[float] | None = None) -> list[TimedText]:
        """The events in ``ids``; anything that does not follow the grammar is left out."""
        scores = list(probabilities) if probabilities is not None else [1.0] * len(ids)
        starts = [index for index, token in enumerate(ids) if token == EVENT]
        stop_of_all = next((index for index, token in enumerate(ids) if token == EOS), len(ids))
        starts = [start for start in starts if start < stop_of_all]
        stops = [*starts[1:], stop_of_all]
        events: list[TimedText] = []
        for start, stop in zip(starts, stops, strict=False):
            times, words = ids[start + 1 : start + 3], ids[start + 3 : stop]
            if len(times) == 2 and words and all(FIRST_TIME <= token < self.first_word for token in times):
                score = 1.0
                for probability in scores[start:stop]:
                    score *= probability
                events.append(
                    TimedText(
                        start_bucket=times[0] - FIRST_TIME,
                        end_bucket=times[1] - FIRST_TIME,
                        text=self.text.decode([token - self.first_word for token in words if token >= self.first_word]),
                        score=score,
                    )
                )
        return events

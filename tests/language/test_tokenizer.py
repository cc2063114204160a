"""Events to ids and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.errors import ConfigError
from longtake.language.tokenizer import EOS, EVENT, FIRST_TIME, CaptionTokenizer, TimedText

WORDS = ("a", "red", "car", "jumps")
TOKENIZER = CaptionTokenizer.from_words(WORDS, num_buckets=9)

timed = st.builds(
    TimedText,
    start_bucket=st.integers(0, 8),
    end_bucket=st.integers(0, 8),
    text=st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
)


@given(st.lists(timed, max_size=4))
def test_events_round_trip(events: list[TimedText]) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(events)) == events


@given(st.lists(st.integers(0, TOKENIZER.vocab_size - 1), max_size=20))
def test_any_ids_decode_to_events_with_words_and_times(ids: list[int]) -> None:
    for event in TOKENIZER.decode(ids):
        assert {event.start_bucket, event.end_bucket} <= set(range(9))
        assert set(event.text.split()) <= {*WORDS, "<unk>"}


def test_nothing_to_say_is_the_end_token_alone() -> None:
    assert TOKENIZER.encode([]) == [EOS]


def test_score_is_the_product_of_its_own_tokens() -> None:
    ids = [EVENT, FIRST_TIME, FIRST_TIME + 1, TOKENIZER.first_word + 1, EOS]
    (event,) = TOKENIZER.decode(ids, [0.5, 0.5, 1.0, 0.5, 0.1])
    assert event.score == 0.125


def test_bucket_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected 0 to 8"):
        TOKENIZER.encode([TimedText(start_bucket=9, end_bucket=2, text="a")])


def test_vocabulary_with_a_word_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="all different"):
        CaptionTokenizer.from_words(("a", "a"), 9)

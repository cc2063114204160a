"""CIDEr-D, BLEU and ROUGE-L against the public scorers' numbers and by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.eval.dvc_fixtures import read, units

from longtake.eval.ngrams import bleu, cider, rouge_l

TOLERANCE = 1e-12


@pytest.mark.parametrize("path", units("cider"))
def test_scores_match_public_scorers(path: Path) -> None:
    for item in read(path)["sets"]:
        pairs = list(zip(item["hyps"], item["refs"], strict=True))
        assert cider(pairs) == pytest.approx(item["cider_items"], abs=TOLERANCE, rel=0)
        assert bleu(pairs) == pytest.approx(item["bleu_1_to_4"], abs=TOLERANCE, rel=0)
        mean = sum(rouge_l(*pair) for pair in pairs) / len(pairs)
        assert mean == pytest.approx(item["rouge_l"], abs=TOLERANCE, rel=0)


def test_cider_of_perfect_captions_is_ten() -> None:
    pairs = [("a red car jumps", "a red car jumps"), ("the blue fish spins", "the blue fish spins")]
    assert cider(pairs) == pytest.approx([10.0, 10.0])


def test_cider_of_a_single_pair_is_zero_even_when_perfect() -> None:
    assert cider([("a red car jumps", "a red car jumps")]) == [0.0]


def test_cider_gives_nothing_for_words_that_all_references_share() -> None:
    pairs = [("the car", "the car jumps high now"), ("the fish", "the fish spins fast now")]
    assert cider([("the", reference) for _, reference in pairs]) == [0.0, 0.0]
    assert min(cider(pairs)) > 0


def test_short_captions_cannot_score_on_longer_ngrams() -> None:
    assert cider([("chop bacon", "chop bacon"), ("add salt", "add salt")]) == pytest.approx([5.0, 5.0])


def test_cider_of_empty_sentences_is_zero() -> None:
    assert cider([("", ""), ("", "")]) == [0.0, 0.0]
    assert cider([]) == []


def test_rouge_of_two_empty_sentences_is_one_as_published() -> None:
    assert rouge_l("", "") == 1.0
    assert rouge_l("", "a car") == 0.0


def test_rouge_follows_the_longest_common_subsequence() -> None:
    precision, recall = 3 / 4, 3 / 5
    expected = (1 + 1.2**2) * precision * recall / (recall + 1.2**2 * precision)
    assert rouge_l("the car jumps twice", "the red car now jumps") == pytest.approx(expected)

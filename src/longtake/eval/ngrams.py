"""Scores from n-grams that need no Java: CIDEr-D, BLEU and ROUGE-L of tokenised pairs with one reference each.

Tokenised sentences are strings of tokens with single spaces between them (``longtake.eval.ptb``). The dense-captioning
evaluators call each scorer once per video and threshold, so "the set" below is one video's pairs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

MAX_N = 4
SIGMA_TOKENS = 6.0
"""Width of CIDEr-D's Gaussian penalty on the difference in length."""
ROUGE_BETA = 1.2
_BLEU_TINY, _BLEU_SMALL = 1e-15, 1e-9
"""Keep BLEU's ratios finite; part of the published numbers."""

NgramCounts = tuple[Counter[tuple[str, ...]], ...]
"""Counts of the 1-, 2-, 3- and 4-grams of a sentence."""


@lru_cache(maxsize=65536)
def ngram_counts(tokens: str) -> NgramCounts:
    """Count the n-grams of a tokenised sentence; not to be written to."""
    words = tokens.split()
    return tuple(
        Counter(tuple(words[start : start + size]) for start in range(len(words) - size + 1))
        for size in range(1, MAX_N + 1)
    )


def cider(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """CIDEr-D of each (hypothesis, reference) pair, factor 10 included; idf from these references only.

    One pair alone gives 0, because its only document holds every n-gram.
    Equation: Vedantam et al. 2015, eq. 5 and 6 with clipping, the Gaussian length penalty, and uniform weights over n
    from 1 to 4.
    """
    frequency: Counter[tuple[str, ...]] = Counter()
    for _, reference in pairs:
        for counts in ngram_counts(reference):
            frequency.update(counts.keys())
    log_size = math.log(len(pairs)) if pairs else 0.0
    return [_cider_pair(hypothesis, reference, frequency, log_size) for hypothesis, reference in pairs]


def _cider_pair(hypothesis: str, reference: str, frequency: Counter[tuple[str, ...]], log_size: float) -> float:
    similarities = 0.0
    for ours, theirs in zip(ngram_counts(hypothesis), ngram_counts(reference), strict=True):
        if not ours.keys() & theirs.keys():
            continue
        weighted, reference_weighted = _weigh(ours, frequency, log_size), _weigh(theirs, frequency, log_size)
        norms = _norm(weighted) * _norm(reference_weighted)
        if norms > 0:
            clipped = ((min(weight, reference_weighted.get(gram, 0.0)), gram) for gram, weight in weighted.items())
            similarities += sum(weight * reference_weighted[gram] for weight, gram in clipped if weight > 0) / norms
    difference = ngram_counts(hypothesis)[1].total() - ngram_counts(reference)[1].total()
    return 10.0 * similarities / MAX_N * math.exp(-(difference**2) / (2 * SIGMA_TOKENS**2))


def _weigh(
    counts: Counter[tuple[str, ...]], frequency: Counter[tuple[str, ...]], log_size: float
) -> dict[tuple[str, ...], float]:
    return {gram: count * (log_size - math.log(max(1, frequency[gram]))) for gram, count in counts.items()}


def _norm(weighted: dict[tuple[str, ...], float]) -> float:
    return math.sqrt(sum(weight**2 for weight in weighted.values()))


def bleu(pairs: Sequence[tuple[str, str]]) -> tuple[float, ...]:
    """Corpus BLEU-1 to BLEU-4 over (hypothesis, reference) pairs."""
    matched, guessed = [0] * MAX_N, [0] * MAX_N
    hypothesis_words = reference_words = 0
    for hypothesis, reference in pairs:
        for order, (ours, theirs) in enumerate(zip(ngram_counts(hypothesis), ngram_counts(reference), strict=True)):
            matched[order] += (ours & theirs).total()
            guessed[order] += ours.total()
        hypothesis_words += ngram_counts(hypothesis)[0].total()
        reference_words += ngram_counts(reference)[0].total()
    ratio = (hypothesis_words + _BLEU_TINY) / (reference_words + _BLEU_SMALL)
    brevity = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    scores, product = [], 1.0
    for order in range(MAX_N):
        product *= (matched[order] + _BLEU_TINY) / (guessed[order] + _BLEU_SMALL)
        scores.append(brevity * product ** (1 / (order + 1)))
    return tuple(scores)


def rouge_l(hypothesis: str, reference: str) -> float:
    """ROUGE-L of one pair. Two empty sentences count as one shared empty token, as in the published scorer."""
    ours, theirs = hypothesis.split(" "), reference.split(" ")
    common = _longest_common_subsequence(ours, theirs)
    if common == 0:
        return 0.0
    precision, recall = common / len(ours), common / len(theirs)
    return (1 + ROUGE_BETA**2) * precision * recall / (recall + ROUGE_BETA**2 * precision)


def _longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    lengths = [0] * (len(second) + 1)
    for word in first:
        diagonal = 0
        for position, other in enumerate(second, start=1):
            above = lengths[position]
            lengths[position] = diagonal + 1 if word == other else max(above, lengths[position - 1])
            diagonal = above
    return lengths[-1]

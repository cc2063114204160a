"""Randomness that is the same on every machine: seeds by hash, draws from documented, frozen bit streams only."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from jaxtyping import UInt8

Item = TypeVar("Item")


def seed_of(*parts: object) -> int:
    """A 64-bit seed from the words given; different words give unrelated seeds."""
    digest = hashlib.sha256("/".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big")


def random_bytes(seed: int, count: int) -> UInt8[np.ndarray, " count"]:
    """``count`` bytes from PCG64, whose bit stream numpy promises not to change."""
    words = np.random.PCG64(seed).random_raw(-(-count // 8))
    return words.astype("<u8").view(np.uint8)[:count]


class Dice:
    """Draws for scripts. Only ``random.random`` is used: Python promises its sequence across versions."""

    def __init__(self, *parts: object) -> None:
        self._random = random.Random(seed_of(*parts)).random

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self._random()

    def integer(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, items: Sequence[Item], weights: Sequence[float] | None = None) -> Item:
        if weights is None:
            return items[int(self._random() * len(items))]
        mark = self._random() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            mark -= weight
            if mark < 0.0:
                return item
        return items[-1]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        keyed = [(self._random(), index) for index in range(len(items))]
        return [items[index] for _, index in sorted(keyed)]

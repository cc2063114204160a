"""The split ``routines``: 24 classes that only the order of four moves, spread over the whole video, tells apart.

In every video of the split one toy does the same four moves once each, and no other toy does any of them; what else
happens distracts. Any part of the video, and any bag of moves, says nothing about the class.
"""

from __future__ import annotations

from itertools import permutations

ROUTINES_SPLIT = "routines"
ROUTINE_MOVES = ("jumps", "spins", "blinks", "shakes")
_THEN = " then "
ROUTINES = tuple(_THEN.join(order) for order in permutations(ROUTINE_MOVES))
"""Names of the classes."""


def routine_of(label: str) -> tuple[str, ...]:
    """The moves of a class, in order."""
    return tuple(label.split(_THEN))

"""``make_script``: everything about a video follows from the split and the seed."""

from __future__ import annotations

from longtake.data.toybox.dice import Dice
from longtake.data.toybox.routines import ROUTINES, ROUTINES_SPLIT, routine_of
from longtake.data.toybox.schedule import Author
from longtake.data.toybox.world import TOYBOX_VERSION, Script
from longtake.errors import ConfigError

MIN_SECONDS = 10.0
MIN_ROUTINE_SECONDS = 40.0
MAX_ATTEMPTS = 50


def make_script(seed: int, *, seconds: float | None = None, split: str = "train", label: str | None = None) -> Script:
    """The script of one video: the same for the same arguments on every machine.

    Args:
        seed: Any whole number.
        seconds: Length, rounded to ticks; drawn from 40 to 120 s if None. Hours are fine.
        split: Scripts of different splits are unrelated. ``routines`` gives videos with a label.
        label: One of ``ROUTINES``, for the split ``routines`` only; drawn if None.

    Raises:
        ConfigError: The video would be too short, or the label is unknown.
    """
    shortest = MIN_ROUTINE_SECONDS if split == ROUTINES_SPLIT else MIN_SECONDS
    if seconds is not None and not shortest <= seconds < float("inf"):
        raise ConfigError(f"a toybox video of {seconds:g} s was asked for; {split} videos take at least {shortest:g} s")
    if label is not None and (split != ROUTINES_SPLIT or label not in ROUTINES):
        raise ConfigError(f"label {label!r} with split {split!r}: labels are those of split {ROUTINES_SPLIT!r}")
    if split == ROUTINES_SPLIT and label is None:
        label = Dice(TOYBOX_VERSION, "label", seed).pick(ROUTINES)
    for attempt in range(MAX_ATTEMPTS):
        dice = Dice(TOYBOX_VERSION, split, seed, attempt, *([] if label is None else [label]))
        author = Author(dice, seconds, routine=() if label is None else routine_of(label))
        author.write()
        if author.is_sound():
            return author.script(seed, split, label)
    raise AssertionError(
        f"no sound script in {MAX_ATTEMPTS} attempts for seed {seed} of {split!r}; report this as a bug"
    )

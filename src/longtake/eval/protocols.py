"""Evaluation protocols: each is a stated combination of rules, none is code of its own.

The rules and where each public evaluator differs are written up in the project's metric notes; the numbers of the
public evaluators are the fixtures that ``tests/eval`` runs. Defects of those evaluators (crashes on empty lists, lost
line alignment, permuted METEOR columns, unsorted input to order-preserving matching) are not part of any rule here.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from longtake.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """One way of scoring dense captions; all pair captions at tIoU >= t and count precision and recall at tIoU > t."""

    name: str
    thresholds: tuple[float, ...] = (0.3, 0.5, 0.7, 0.9)
    """tIoU thresholds; captions, precision and recall are averaged over them."""
    max_proposals: int = 1000
    """Predictions read per video, in file order."""
    filler: Literal["letters", "fixed"] = "letters"
    """What an unmatched prediction is scored against: one word of letters (2019 on) or ``abc123!@#`` (2018)."""
    missing_video: Literal["zero", "skip"] = "zero"
    """A reference video that the predictions lack counts 0, or is left out of every mean."""
    missing_video_in_soda: Literal["zero", "skip"] = "skip"
    end_points: Literal["as_given", "sorted"] = "as_given"
    """An inverted segment has tIoU 0, or counts as the proper one."""
    f1: Literal["per_threshold", "per_video"] = "per_threshold"
    """Mean over thresholds of the F1 of video-averaged P and R; or over videos of the F1 of threshold-averaged ones."""
    soda_references: Literal["each", "merged", "best"] = "each"
    """SODA with several reference sets: the mean of one run each, one long story, or per video the set of best F."""
    soda_sorts_references: bool = True
    """Predictions are always brought into order of their start before SODA's order-preserving matching."""
    start_distances_seconds: tuple[float, ...] = ()
    """Also report P, R and F1 for start times closer than these."""


_ALL = (
    Protocol(name="longtake", missing_video_in_soda="zero"),
    Protocol(name="pdvc2018", filler="fixed"),
    Protocol(name="pdvc2021"),
    Protocol(name="scenic", missing_video_in_soda="zero", end_points="sorted", f1="per_video"),
    Protocol(name="soda", soda_references="merged"),
    Protocol(name="soda-best", soda_references="best", soda_sorts_references=False),
    Protocol(
        name="vidchapters",
        missing_video="skip",
        start_distances_seconds=(1.0, 3.0, 5.0, 10.0, 30.0, 60.0),
    ),
)

PROTOCOLS = MappingProxyType({protocol.name: protocol for protocol in _ALL})
"""Every protocol by name. ``longtake`` is ``pdvc2021`` with a missing video counting 0 in SODA as well."""


def protocol_named(name: str) -> Protocol:
    """The protocol of that name.

    Raises:
        ConfigError: there is none.
    """
    if name not in PROTOCOLS:
        raise ConfigError(f"unknown protocol {name!r}, expected one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]

"""What ``longtake ask`` was asked for, and what of it cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from unicodedata import category

from longtake.errors import ConfigError
from longtake.files import check_savable

if TYPE_CHECKING:
    from longtake.methods.statekv_config import StateKVConfig
    from longtake.video import OnLag

MAX_LETTERS = 20_000
"""Of a question: about as much as a model can take beside a video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What was asked for on the command line; None and empty: not said."""

    source: str
    questions: tuple[str, ...]
    model: str | None
    options: Mapping[str, Any]
    """Fields of ``StateKVConfig``, those that were given."""
    sampling: Mapping[str, Any]
    """Fields of ``Sampling``, those that were given."""
    choices: tuple[str, ...]
    choose_by: Literal["likelihood", "generation"]
    blind: bool
    """Read no video."""
    follow_up: bool
    at: float | None
    seconds: float | None
    save: Path | None
    resume: Path | None
    on_lag: OnLag
    timeout_seconds: float
    trust_remote_code: bool
    as_json: bool
    quiet: bool


def check(job: Job) -> None:
    """All that can be checked before the model is loaded.

    Raises:
        ConfigError: Something that cannot be answered, or an option that cannot work.
        SourceError: No such source.
    """
    for number, question in enumerate(job.questions, 1):
        _check_words(f"question {number}", question)
    _check_choices(job)
    _check_times(job)
    if job.save is not None:
        check_savable(job.save)
        if job.save.resolve() == Path(job.source).resolve():
            raise ConfigError(f"--save {job.save} is the source, which would be overwritten; choose another place")
    if job.source != "-" and job.seconds != 0:
        from longtake.video.address import parse_address  # after the rest: it loads the decoder

        parse_address(job.source)


def check_options(job: Job) -> None:
    """Raise ConfigError for options that no video-language model can take."""
    from longtake.config import from_dict
    from longtake.methods.statekv_config import MOST, StateKVConfig
    from longtake.vlm.decode import Sampling

    if job.blind:
        raise ConfigError(
            "--blind goes with --choice and an MC-ViT model; a video-language model is asked with its video"
        )
    from_dict(Sampling, job.sampling, where="sampling")
    # each for itself: what goes together depends on the model's own settings, and is told when it is loaded
    from_dict(StateKVConfig, {"budget": MOST["budget"], "detailed": "disk"} | dict(job.options), where="options")


def check_used(job: Job, config: StateKVConfig) -> None:
    """Raise ConfigError for an option that changes nothing beside the others, the model's own settings included."""
    from longtake.methods.statekv_config import CHOICES

    needs = {
        "select": ("policy", ("statekv",)),
        "sinks": ("policy", ("statekv",)),
        "per_query": ("policy", ("statekv",)),
        "budget": ("policy", tuple(policy for policy in CHOICES["policy"] if policy != "full")),
        "answer_chunks": ("answer", ("bounded",)),
        "retrieve": ("answer", ("bounded",)),
    }
    for name, (other, values) in needs.items():
        if name in job.options and (got := getattr(config, other)) not in values:
            raise ConfigError(
                f"{name} is given, but {other} is {got}, for which it changes nothing; "
                f"leave it out, or choose {other} {' or '.join(values)}"
            )


def _check_choices(job: Job) -> None:
    for number, choice in enumerate(job.choices, 1):
        _check_words(f"choice {number}", choice)
    if len(job.choices) == 1:
        raise ConfigError("got one --choice, expected two or more to choose from, or none")
    folded = [" ".join(choice.split()).casefold() for choice in job.choices]
    if twice := [choice for choice, same in zip(job.choices, folded, strict=True) if folded.count(same) > 1]:
        raise ConfigError(f"choice {twice[0]!r} is given twice; give each once")
    if job.follow_up and job.choices and job.choose_by == "likelihood":
        raise ConfigError(
            "a choice by likelihood is no turn of a conversation; use --choose-by generation, or leave --follow-up out"
        )


def _check_times(job: Job) -> None:
    for name, value in (("--at", job.at), ("--seconds", job.seconds)):
        if value is not None and not 0 <= value < float("inf"):
            raise ConfigError(f"{name} is {value:g}, expected a number of seconds, 0 or more")
    if job.at is not None and job.seconds is not None and job.resume is None and job.at > job.seconds:
        raise ConfigError(
            f"--at {job.at:g} lies beyond --seconds {job.seconds:g}, where reading stops; give more seconds"
        )
    if job.seconds == 0 and job.resume is None:
        raise ConfigError("--seconds 0 reads nothing, so there is nothing to ask about; it goes with --resume")


def _check_words(what: str, text: str) -> None:
    if not text.strip():
        raise ConfigError(f"{what} is empty; put it in words")
    if len(text) > MAX_LETTERS:
        raise ConfigError(f"{what} has {len(text)} characters, expected at most {MAX_LETTERS}; ask for less at once")
    # marks of the direction of writing (Cf) come with pasted Arabic or Hebrew
    odd = [letter for letter in text if not (letter.isprintable() or letter in "\n\t" or category(letter) == "Cf")]
    if odd:
        raise ConfigError(f"{what} contains {odd[0]!r}, which is not text; remove it")

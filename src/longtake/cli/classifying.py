"""The work behind ``longtake classify``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from longtake.cli.labels import label_lines
from longtake.cli.plain import on_one_line, printable
from longtake.cli.seeing import Seen, Watch, load_model, run_each, warn_half_read
from longtake.cli.terminal import StatusLine
from longtake.methods.mcvit_blind import without_video
from longtake.types import Classify, Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What was asked for on the command line."""

    watch: Watch
    labels: tuple[str, ...]
    """Empty: the model's own."""
    prompt: str | None
    top: int
    blind: bool
    as_json: bool

    @property
    def request(self) -> Classify:
        return Classify(labels=self.labels, top=self.top, prompt=self.prompt)


def run(job: Job) -> int:
    """Classify every source; the exit status."""
    status = StatusLine(shown=not job.watch.quiet)
    model: Any = load_model(job.watch, Classify)
    model.check(job.request)
    if model.text and (job.labels or job.prompt is not None):
        warn_half_read(model, model.label_texts(job.labels or model.config.labels, prompt=job.prompt), status)
    if job.blind:
        return _blind(job, model, status)

    def tell(video: str, seen: Seen) -> None:
        _show(job, video, seen.session.classify(job.labels, top=job.top, prompt=job.prompt), status)

    return run_each(job.watch, model, status, tell)


def _blind(job: Job, model: Any, status: StatusLine) -> int:
    """The same words for every video, none of which is opened."""
    labels: list[Label] = list(model.respond(without_video(model), job.request))
    for video in job.watch.videos:
        _show(job, video, labels, status)
    if not job.as_json:
        status.say("no video was read: these are the scores of the labels alone")
    return 0


def _show(job: Job, video: str, labels: Iterable[Label], status: StatusLine) -> None:
    status.clear()
    if job.as_json:
        shares = [{"label": label.name, "probability": round(label.probability, 6)} for label in labels]
        sys.stdout.write(json.dumps({"video": video, "labels": shares} | ({"blind": True} if job.blind else {})) + "\n")
    else:
        head = [f"# {on_one_line(video)}"] if len(job.watch.videos) > 1 else []
        sys.stdout.write("".join(f"{printable(line)}\n" for line in [*head, *label_lines(labels)]))
    sys.stdout.flush()

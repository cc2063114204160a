"""How often the right class comes first, and among the first few: over all videos and by class, with intervals.

Intervals are 95 %, from bootstrap samples of videos, as ``longtake.eval.ask`` has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longtake.errors import ConfigError
from longtake.eval.ask import Share, share
from longtake.eval.classify_data import LabelledData
from longtake.protocol import StreamModel
from longtake.session import Session
from longtake.types import Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
    """What a model said of one video, beside its class."""

    video: str
    label: str
    said: tuple[str, ...]
    """The most probable labels, best first."""
    probability: float = 0.0
    """Of the right class; 0 where it is not among those said."""

    @property
    def right(self) -> bool:
        return self.said[:1] == (self.label,)


@dataclass(frozen=True, slots=True)
class _Among:
    """Whether the right class is among the first few."""

    video: str
    right: bool


def classify_all(
    data: LabelledData,
    model: StreamModel[Any],
    *,
    labels: Sequence[str] = (),
    prompt: str | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> list[Classified]:
    """Read each video and rank the labels, those of the model if none are given."""
    marks: list[Classified] = []
    for done, (video, path) in enumerate(data.videos.items()):
        if on_progress is not None:
            on_progress(done)
        session: Session[Any] = Session(model, source=str(path), tells_events=False)
        for _ in session.watch(path):
            pass
        ranked = session.classify(labels, top=len(data.classes), prompt=prompt)
        marks.append(marked(video, data.labels[video], ranked))
    if on_progress is not None:
        on_progress(len(data.videos))
    return marks


def marked(video: str, label: str, ranked: Iterable[Label]) -> Classified:
    """A ranking beside the truth."""
    shares = {one.name: one.probability for one in ranked}
    return Classified(video=video, label=label, said=tuple(shares), probability=shares.get(label, 0.0))


def labels_for(model: Any, data: LabelledData) -> tuple[str, ...]:
    """What the model is to choose from: nothing said if its own labels are the classes, else these as texts.

    Raises:
        ConfigError: It has other labels and no text tower.
    """
    own = tuple(model.config.labels)
    if set(own) == set(data.classes):
        return ()
    if model.text is not None:
        return data.classes
    unknown = next((name for name in data.classes if name not in own), None)
    if unknown is None:
        return data.classes
    raise ConfigError(
        f"the model's {len(own)} labels lack class {unknown!r} of the data, and it has no text tower; "
        "give a model that was trained for these classes"
    )


def metrics(
    marks: Sequence[Classified],
    classes: Sequence[str],
    *,
    blind: Sequence[Classified] = (),
    top: Sequence[int] = (1, 5),
) -> dict[str, object]:
    """All figures as JSON data; ``blind`` is what the model says of the same videos without seeing them.

    ``visual``: accuracy beyond the blind one, as the paper subtracts it. ``chance``: of a guess.
    """
    found: dict[str, object] = dict(share(marks).to_dict())
    found["top"] = {str(count): among(marks, count).to_dict() for count in top if count <= len(classes)}
    found["by_class"] = by_class(marks, classes)
    shares = [row["accuracy"] for row in by_class(marks, classes).values()]
    found["mean_class_accuracy"] = sum(shares) / len(shares) if shares else 0.0
    found["mean_probability"] = sum(mark.probability for mark in marks) / len(marks) if marks else 0.0
    found["chance"] = 1 / len(classes)
    if blind:
        found["blind"] = share(blind).to_dict()
        found["visual"] = share(marks).accuracy - share(blind).accuracy
    return found


def among(marks: Iterable[Classified], count: int) -> Share:
    """How often the right class is among the first ``count``."""
    return share(_Among(mark.video, mark.label in mark.said[:count]) for mark in marks)


def by_class(marks: Sequence[Classified], classes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """For each class that occurs: accuracy, number of videos, and the class that it is most often taken for."""
    rows: dict[str, dict[str, Any]] = {}
    for name in classes:
        own = [mark for mark in marks if mark.label == name]
        if own:
            wrong: Mapping[str, int] = Counter(mark.said[0] for mark in own if mark.said and not mark.right)
            taken = max(sorted(wrong), key=lambda one: wrong[one]) if wrong else None
            rows[name] = {**share(own).to_dict(), "taken_for": taken, "taken": wrong[taken] if taken else 0}
    return rows

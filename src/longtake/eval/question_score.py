"""Scores of answers as each data set counts them: over questions, over tasks, or over groups of tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from longtake.eval.ask import share
from longtake.eval.question_answer import official_right
from longtake.eval.question_run import MarkedQuestion


def mean_score(marks: Sequence[MarkedQuestion], mean_over: Sequence[str], *, rule: str = "") -> float:
    """Right answers among all; with tags, first within each value of the first tag, then averaged value by value.

    ``("type", "group")`` is a mean over groups of means over the types of each. ``rule``: as the official script reads
    answers.
    """
    values: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for mark in marks:
        right = official_right(rule, mark.said, mark.question) if rule else mark.right
        values[tuple(mark.question.tags[tag] for tag in reversed(mean_over))].append(float(right))
    for _ in mean_over:
        outer: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for key, found in values.items():
            outer[key[:-1]].append(sum(found) / len(found))
        values = outer
    found = values.get((), [])
    return sum(found) / len(found) if found else 0.0


def metrics(
    marks: Sequence[MarkedQuestion],
    mean_over: Sequence[str] = (),
    *,
    rule: str = "",
    blind: Sequence[MarkedQuestion] = (),
    late: Sequence[MarkedQuestion] = (),
) -> dict[str, object]:
    """All figures as JSON data.

    Args:
        marks: The model's answers.
        mean_over: The data set's own averaging; ``score`` is by it, ``accuracy`` is over questions.
        rule: The data set's own reading of answers, shown beside ours as ``official_rule``.
        blind: Of the same model without the videos.
        late: Of the same model with only the last seconds before each question.
    """
    found: dict[str, object] = {"score": mean_score(marks, mean_over), "mean_over": list(mean_over) or ["question"]}
    found |= share(marks).to_dict()
    for tag in dict.fromkeys(tag for mark in marks for tag in mark.question.tags):
        groups: dict[str, list[MarkedQuestion]] = defaultdict(list)
        for mark in marks:
            groups[mark.question.tags.get(tag, "")].append(mark)
        found[f"by_{tag}"] = {name: share(own).to_dict() for name, own in sorted(groups.items())}
    if rule:
        found["official_rule"] = mean_score(marks, mean_over, rule=rule)
    for name, others in (("blind", blind), ("last_seconds", late)):
        if others:
            found[name] = {"score": mean_score(others, mean_over), **share(others).to_dict()}
    found["flags"] = dict(sorted(Counter(flag for mark in marks for flag in mark.flags).items()))
    return found

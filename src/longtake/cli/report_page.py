"""The page of ``longtake report toybox``: every experiment that its folder holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from longtake.errors import SourceError

if TYPE_CHECKING:
    from longtake.eval.page import Section
    from longtake.train.study import Study
    from longtake.train.study_picture import Rows

QUESTIONS = {
    "ask": "Policies and budgets on questions (StateKV, main results and ablation)",
    "bounded": "Bounded answers (ours)",
    "sizes": "A small model with full attention, a larger one with StateKV (StateKV, key findings)",
}
"""Reports on questions, each in a folder of its name."""
PAPER = {
    "ask": """
The paper on VideoMME, InternVL3-8B at 512 frames (% right):

| full attention | B = 16384 | B = 4096 | B = 1024 | B = 256 | newest 16 frames |
|---:|---:|---:|---:|---:|---:|
| 64.19 | 63.85 | 62.52 | 59.80 | 54.30 | 54.56 |
""",
    "sizes": """
The paper on VideoMME, InternVL3 at 512 frames (% right), at about equal prefill operations:

| 1B, full attention | 8B, StateKV, B = 4096 |
|---:|---:|
| 46.19 | 62.52 |
""",
}


def page_of(folder: Path, studies: Mapping[Path, Study], rows: Mapping[str, Rows]) -> str:
    """The whole page: studies by the file that each is in, and the reports on questions that ``folder`` holds."""
    import longtake
    from longtake.eval.page import page
    from longtake.train.study_page import section

    sections = [section(study, path, rows[study.name], folder) for path, study in studies.items()]
    intro = (
        "The papers' experiments in kind, on Toybox and at small scale: each number is ours unless its head says "
        f"*paper*, and below it stands the command that gives it again. Made by longtake {longtake.__version__}."
    )
    return page("longtake: the papers' tables on Toybox", intro, [*sections, *_questions(folder)])


def _questions(folder: Path) -> Iterator[Section]:
    from longtake.eval.annotations import read_json
    from longtake.eval.page import Section

    for name, title in QUESTIONS.items():
        told, picture = folder / name / f"{name}.json", folder / name / f"{name}.png"
        if told.is_file():
            content, table = read_json(told), told.with_suffix(".md")
            if not (isinstance(content, Mapping) and "command" in content and table.is_file()):
                raise SourceError(f"{told.parent} is no finished report {name}; delete it to run it again")
            yield Section(
                name=name,
                title=title,
                text=table.read_text() + PAPER.get(name, ""),
                source=f"`{content['command']} -o {folder / name}`",
                picture=picture.read_bytes() if picture.is_file() else None,
            )

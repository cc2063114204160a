"""Labels as a person gives them, and how they are shown."""

from __future__ import annotations

import pytest

from longtake.cli.labels import BAR_CELLS, bar, label_lines
from longtake.types import Label


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, ""),
        (1.0, "█" * BAR_CELLS),
        (0.5, "█" * (BAR_CELLS // 2)),
        (1 / BAR_CELLS / 8, "▏"),
        (2.0, "█" * BAR_CELLS),
    ],
)
def test_bar_is_as_long_as_the_share(share: float, shown: str) -> None:
    assert bar(share) == shown.ljust(BAR_CELLS)


def test_line_has_the_share_its_bar_and_the_name_on_one_line() -> None:
    (line,) = label_lines([Label(name="a\ncat", probability=0.25)])
    assert line == f"0.250  {'█' * 6:<{BAR_CELLS}}  a cat"

"""One tokeniser and one METEOR process for all evaluation tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.eval.dvc_fixtures import all_captions

from longtake.eval import TextTools
from longtake.eval.java import JavaError
from longtake.eval.meteor import Meteor


@pytest.fixture(scope="session")
def tools() -> Iterator[TextTools]:
    """Text tools with METEOR; skips where Java or its jars are absent."""
    try:
        Meteor().close()
    except JavaError as error:
        pytest.skip(f"METEOR needs Java: {error}")
    with TextTools() as shared:
        shared.tokens(sorted(all_captions()))
        yield shared

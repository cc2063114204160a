"""The tools that turn captions into tokens and token pairs into METEOR alignments, with or without Java."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Literal

from longtake.eval.java import JavaError
from longtake.eval.meteor import Meteor, Pair, Statistics
from longtake.eval.ptb import tokenize_with_java
from longtake.eval.treebank import tokenize_in_python

log = logging.getLogger(__name__)


class TextTools:
    """A tokeniser and METEOR for any number of reports; a context manager that ends the METEOR process.

    Where Java or a jar is missing or fails, captions are tokenised by our own tokeniser and METEOR is unavailable; the
    reasons stand in ``unavailable`` and in every report.
    """

    def __init__(self, *, java: bool = True) -> None:
        """Start nothing yet. ``java=False`` leaves Java alone, for quick scores inside a training loop."""
        self.tokenizer: Literal["stanford", "python"] = "stanford" if java else "python"
        self.unavailable: dict[str, str] = {} if java else {"meteor": "left out on request"}
        self._meteor: Meteor | None = None
        self._tokens: dict[str, str] = {}

    def __enter__(self) -> TextTools:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._meteor is not None:
            self._meteor.close()

    def tokens(self, captions: Iterable[str]) -> Mapping[str, str]:
        """Tokens of each distinct caption, all unknown ones in one run of the tokeniser."""
        wanted = dict.fromkeys(captions)
        unknown = [caption for caption in wanted if caption not in self._tokens]
        if unknown and self.tokenizer == "stanford":
            try:
                self._tokens.update(zip(unknown, tokenize_with_java(unknown), strict=True))
            except JavaError as error:
                log.warning("captions are tokenised without Java: %s", error)
                self.tokenizer = "python"
                self._tokens.clear()  # one tokeniser for all captions of a report
                return self.tokens(wanted)
        elif unknown:
            self._tokens.update(zip(unknown, tokenize_in_python(unknown), strict=True))
        return {caption: self._tokens[caption] for caption in wanted}

    def align(self, pairs: Iterable[Pair]) -> Mapping[Pair, Statistics] | None:
        """METEOR's numbers for each distinct pair of token strings, or None where METEOR is unavailable."""
        if "meteor" in self.unavailable:
            return None
        try:
            if self._meteor is None:
                self._meteor = Meteor()
            return self._meteor.statistics(pairs)
        except JavaError as error:
            log.warning("no METEOR: %s", error)
            self.unavailable["meteor"] = str(error)
            return None

"""Captions to tokens as the dense-captioning evaluators do it: Stanford's PTB tokeniser, through Java.

A raw caption becomes a string of tokens with single spaces between them, in lower case, punctuation dropped. The
tokeniser without Java is ``longtake.eval.treebank``.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence

from longtake.eval.java import PTB_JAR, JavaError, jar_file, java_command

DROPPED_TOKENS = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])
"""Brackets are not among them: the published list has them in upper case, which lower-cased tokens never equal."""

_LINE_BREAKS = str.maketrans(dict.fromkeys("\n\r\v\f", " "))


def clean(caption: str) -> str:
    """One line of ASCII: every other character becomes one space, as do line breaks of any kind."""
    return re.sub(r"[^\x00-\x7f]", " ", caption).translate(_LINE_BREAKS)


def tokenize_with_java(captions: Sequence[str], *, timeout_seconds: float = 600.0) -> list[str]:
    """Tokenise all captions in one run of Stanford CoreNLP 3.4.1.

    Raises:
        JavaError: Java or the jar is missing, failed, or lost the correspondence of lines and captions.
    """
    lines = [clean(caption) for caption in captions]
    spoken = [number for number, line in enumerate(lines) if line.strip()]
    tokenised = [""] * len(lines)
    if spoken:
        output = _run_java("".join(f"{lines[number]}\n" for number in spoken), timeout_seconds)
        if len(output) != len(spoken):
            raise JavaError(f"the PTB tokeniser gave {len(output)} lines for {len(spoken)} captions, expected as many")
        for number, line in zip(spoken, output, strict=True):
            tokenised[number] = without_punctuation(line.split(" "))
    return tokenised


def _run_java(text: str, timeout_seconds: float) -> list[str]:
    command = java_command(max_heap="1G")
    command += ["-cp", str(jar_file(PTB_JAR)), "edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase"]
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=timeout_seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise JavaError(f"the PTB tokeniser gave no answer within {timeout_seconds:.0f} s") from error
    if done.returncode != 0:
        reason = " ".join(done.stderr.decode(errors="replace").split())[-200:]
        raise JavaError(f"the PTB tokeniser stopped with exit code {done.returncode}: {reason}")
    return done.stdout.decode(errors="replace").removesuffix("\n").split("\n")


def without_punctuation(tokens: Iterable[str]) -> str:
    """Join tokens, leaving out those that the evaluators drop."""
    return " ".join(token for token in tokens if token.strip() and token not in DROPPED_TOKENS)

"""How Java tools are found and run: the PTB tokeniser and METEOR, whose jars come with the package pycocoevalcap."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from longtake.errors import LongtakeError

METEOR_JAR = "meteor/meteor-1.5.jar"
METEOR_DATA = "meteor/data/paraphrase-en.gz"
PTB_JAR = "tokenizer/stanford-corenlp-3.4.1.jar"

# On locales with a decimal comma the jars misread numbers (aac-metrics issue 9).
LOCALE_FLAGS = ("-Duser.language=en", "-Duser.country=US", "-Dfile.encoding=UTF-8")


class JavaError(LongtakeError, RuntimeError):
    """A Java tool is absent, failed, or gave no answer in time."""


def java_command(*, max_heap: str) -> list[str]:
    """The start of a command line that runs Java.

    Raises:
        JavaError: no ``java`` on the path.
    """
    java = shutil.which("java")
    if java is None:
        raise JavaError("no java program on PATH; install a Java runtime (17 is tested)")
    return [java, f"-Xmx{max_heap}", *LOCALE_FLAGS]


def jar_file(name: str) -> Path:
    """Where a file of pycocoevalcap lies; the package itself is not imported.

    Raises:
        JavaError: the package or the file is missing.
    """
    package = importlib.util.find_spec("pycocoevalcap")
    if package is None or not package.submodule_search_locations:
        raise JavaError("the package pycocoevalcap is not installed; pip install 'longtake[eval]'")
    path = Path(next(iter(package.submodule_search_locations))) / name
    if not path.is_file():
        raise JavaError(f"{path} is missing; reinstall pycocoevalcap 1.2")
    return path

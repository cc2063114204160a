"""The annotation files of one data set in a folder: found, read, and what is missing told with where it is had."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

from longtake.data.datasets.records import Record
from longtake.errors import ConfigError, SourceError


class Annotations:
    """A folder with annotations as their authors publish them, or with the files alone."""

    def __init__(self, folder: str | Path, title: str, home: str) -> None:
        """``title`` and ``home``: what the data set is called and where it is had. Raises ConfigError for no folder."""
        self.folder, self.title, self.home = Path(folder).expanduser(), title, home
        if not self.folder.is_dir():
            raise ConfigError(f"{folder} is no folder; expected one with the files of {title}, had at {home}")

    def find(self, *paths: str) -> Path | None:
        """The first of the paths below the folder that is a file; then by their names alone, at the folder's top."""
        for path in (*paths, *(Path(path).name for path in paths)):
            if (self.folder / path).is_file():
                return self.folder / path
        return None

    def need(self, *paths: str) -> Path:
        """``find``. Raises ConfigError if there is none."""
        found = self.find(*paths)
        if found is None:
            wanted = " or ".join(dict.fromkeys(paths))
            raise ConfigError(
                f"{self.folder} has no {wanted}, expected the annotations of {self.title}; had at {self.home}"
            )
        return found

    def json(self, path: Path, *, loose: bool = False) -> Any:
        """The content of a JSON file; ``loose``: commas before a closing bracket are passed over.

        Raises:
            SourceError: It cannot be read, or is no JSON.
        """
        text = self.text(path)
        if loose:
            text = re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', lambda found: found[1] or "", text)
        return _parsed(text, f"{path}", self.home)

    def lines(self, path: Path) -> list[Record]:
        """A file of one JSON object a line. Raises SourceError as ``json``."""
        found = [
            Record(_parsed(line, f"{path}, line {number}", self.home), f"{path}, line {number}")
            for number, line in enumerate(self.text(path).split("\n"), start=1)
            if line.strip()
        ]
        if not found:
            raise SourceError(f"{path} is empty, expected one JSON object a line; download it anew from {self.home}")
        return found

    def rows(self, path: Path, columns: tuple[str, ...]) -> list[Record]:
        """A comma-separated file with a head; all values are text.

        Raises:
            SourceError: It cannot be read, or holds no rows.
            ConfigError: A column is missing, or a row has more or fewer fields than the head.
        """
        reader = csv.reader(io.StringIO(self.text(path), newline=""))
        head = [name.strip() for name in next(reader, [])]
        if lacking := [name for name in columns if name not in head]:
            raise ConfigError(f"{path}: has no column {lacking[0]!r}, expected {','.join(columns)} in its first line")
        found: list[Record] = []
        try:
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                if not row:
                    continue
                if len(row) != len(head):
                    raise ConfigError(f"{where}: has {len(row)} fields, expected {len(head)} as in the first line")
                found.append(Record(dict(zip(head, row, strict=True)), where))
        except csv.Error as error:
            raise SourceError(f"{path}, line {reader.line_num}: {error}; download it anew from {self.home}") from error
        if not found:
            raise SourceError(f"{path} has no rows under its head; download it anew from {self.home}")
        return found

    def names(self, path: Path) -> list[str]:
        """A file of one id a line. Raises SourceError if it cannot be read or holds none."""
        found = [line.strip() for line in self.text(path).splitlines() if line.strip()]
        if not found:
            raise SourceError(f"{path} is empty, expected one id a line; download it anew from {self.home}")
        return found

    def text(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror}; expected a text file") from error
        except UnicodeDecodeError as error:
            raise SourceError(f"{path} is not UTF-8 text; download it anew from {self.home}") from error


def _parsed(text: str, where: str, home: str) -> Any:
    if text.startswith("version https://git-lfs"):
        raise SourceError(f"{where} is a pointer of Git LFS, not the file; run 'git lfs pull' where it came from")
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        detail = " ".join(str(error).split())
        raise SourceError(f"{where}: is not valid JSON ({detail}); download it anew from {home}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(key for key in keys if keys.count(key) > 1)!r} stands twice")
    return found

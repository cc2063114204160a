"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from longtake.errors import ConfigError


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file that appears whole or not at all, also when interrupted.

    What is not an ordinary file (``/dev/stdout``, a pipe) is written to as it is, never replaced.

    Raises:
        ConfigError: It cannot be written.
    """
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        path = path.resolve()  # a link stays a link
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name[:100]}.{os.getpid()}.unfinished")
        try:
            unfinished.write_bytes(data)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}; choose another output") from error


def check_savable(path: str | Path) -> None:
    """``check_writable`` for a snapshot, which replaces what is there and so takes no device and no pipe.

    Raises:
        ConfigError: It cannot be written there.
    """
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ConfigError(f"cannot save a state as {path}: it is a device or a pipe; choose a file")
    check_writable(path)


def check_writable(path: str | Path) -> None:
    """Find out before the work whether ``write_whole`` will be able to write; leaves nothing behind.

    Raises:
        ConfigError: It will not.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            return
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        folder = next(parent for parent in path.resolve().parents if parent.exists())
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}; choose another output") from error

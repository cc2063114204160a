"""Keys and values in files: a page is written once, whole or not at all, and read through a memory map.

A page on disk is still a value: its file never changes, and forks share it. Without a folder of the user's, files lie
in a temporary folder and go with the last state that refers to them, or with the process; a snapshot then takes the
pages in, and what a killed process left is put away when another one makes such a folder. In a folder of the user's
they stay, and a snapshot refers to them by path and digest.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import secrets
import shutil
import tempfile
import weakref
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from longtake.errors import CapacityError, StateError
from longtake.state.rows import Pair, Rows

try:
    import fcntl
except ImportError:  # where there are no such locks, nothing can be proven to be left over
    fcntl = None

PREFIX = "longtake-detailed-"
"""Of temporary folders."""
OWNER = "owner.lock"
"""In each of them, locked by its process."""

_uses: Counter[str] = Counter()
"""How many references to each temporary page are alive in this process."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class DiskRows:
    """A page's keys and values in a file of their own."""

    path: str
    digest: str
    """blake2b of the file's bytes."""
    dtype: str
    """Name of torch's type."""
    shape: tuple[int, int, int, int]
    """Layers, KV heads, tokens, head size; keys come first, then values."""
    kept: bool
    """In a folder of the user's."""

    def __post_init__(self) -> None:
        if not self.kept:
            _uses[self.path] += 1
            weakref.finalize(self, _let_go, self.path)

    @property
    def num_bytes(self) -> int:
        """Memory: none."""
        return 0

    @property
    def stored_bytes(self) -> int:
        """Bytes of the file."""
        return 2 * torch.Size(self.shape).numel() * self._torch_dtype.itemsize

    def read(self, layer: int, heads: slice, start: int, stop: int) -> Pair:
        """Tokens ``start`` to ``stop`` in one layer: a window into the file.

        Raises:
            StateError: The file is gone or was cut short.
        """
        keys, values = self._mapped()
        return keys[layer, heads, start:stop], values[layer, heads, start:stop]

    def portable(self) -> DiskRows | Rows:
        """What a snapshot holds: itself in a folder of the user's, else the page."""
        if self.kept:
            return self
        keys, values = self._mapped()
        return Rows(keys=keys, values=values)

    def check(self) -> None:
        """Read it all. Raises StateError unless the file is the one that was written."""
        self._mapped()
        if _digest(Path(self.path).read_bytes()) != self.digest:
            raise StateError(f"page {self.path} is damaged: its digest does not match; use another copy of its folder")

    @property
    def _torch_dtype(self) -> torch.dtype:
        return getattr(torch, self.dtype)

    def _mapped(self) -> Tensor:
        try:
            size = Path(self.path).stat().st_size
        except OSError as error:
            raise StateError(
                f"page {self.path} of the detailed cache cannot be read ({error.strerror}); put its folder back"
            ) from error
        if size != self.stored_bytes:
            raise StateError(f"page {self.path} has {size} bytes, expected {self.stored_bytes}; use another copy")
        number = 2 * torch.Size(self.shape).numel()
        return torch.from_file(self.path, shared=False, size=number, dtype=self._torch_dtype).view(2, *self.shape)


def written(rows: Rows, folder: str | None) -> DiskRows:
    """Keys and values in a new file of ``folder``, or of a temporary one.

    Raises:
        CapacityError: It cannot be written; nothing is left of it.
    """
    data = torch.stack([rows.keys, rows.values]).detach().cpu().contiguous()
    content = data.flatten().view(torch.uint8).numpy().data
    digest = _digest(content)
    target = Path(folder or tempfile.gettempdir())
    try:
        # the name is new each time: two streams that see the same never share a file that one of them may delete
        target = _folder(folder) / f"page-{digest[:16]}-{secrets.token_hex(4)}.kv"
        unready = target.with_suffix(".tmp")
        try:
            with open(unready, "xb", opener=_for_owner_only) as file:
                file.write(content)
            unready.replace(target)
        finally:
            unready.unlink(missing_ok=True)
    except OSError as error:
        raise CapacityError(
            f"cannot write the detailed cache to {target} ({error.strerror}); nothing was lost: make room there, or "
            "give another detailed_folder, and go on"
        ) from error
    return DiskRows(
        path=str(target),
        digest=digest,
        dtype=str(rows.keys.dtype).removeprefix("torch."),
        shape=(rows.keys.shape[0], rows.keys.shape[1], rows.keys.shape[2], rows.keys.shape[3]),
        kept=folder is not None,
    )


def _for_owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _folder(folder: str | None) -> Path:
    if folder is None:
        return _temporary_folder()
    path = Path(folder).expanduser().resolve()
    path.mkdir(parents=True, exist_ok=True)
    return path


@functools.cache
def _temporary_folder() -> Path:
    """One per process, put away at its exit; those of processes that were killed are put away now."""
    _clear_leftovers(Path(tempfile.gettempdir()))
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    _own(path)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _own(folder: Path) -> None:
    """Mark a folder as this process's: a file there is locked until the process ends, however it ends."""
    if fcntl is None:
        return
    unready = folder / f"{OWNER}.tmp"
    with contextlib.suppress(OSError):  # a file system without locks: the folder is never taken for a leftover
        descriptor = os.open(unready, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unready.rename(folder / OWNER)  # locked before it can be seen, and open until the end


def _clear_leftovers(parent: Path) -> None:
    """Remove folders like ours, of this user, whose process holds its lock no more."""
    if fcntl is None:
        return
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            descriptor = os.open(folder / OWNER, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _let_go(path: str) -> None:
    _uses[path] -= 1
    if not _uses[path]:
        del _uses[path]
        Path(path).unlink(missing_ok=True)


def _digest(content: bytes | memoryview) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()

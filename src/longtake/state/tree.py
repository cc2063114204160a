"""What holds for every state: map its tensors, count its bytes, save it, load it.

A state is a frozen dataclass whose fields are tensors, numbers, strings, bools, ``None``, tuples of these, or further
such dataclasses; one that refers to a file gives by ``portable()`` what shall be saved in its stead. A state file is a
safetensors file (no pickle: loading runs no code from the file); its header holds the tree, the type, the model's
fingerprint, the caller's ``extra`` and a digest over everything.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_type_hints

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file  # pyright: ignore[reportUnknownVariableType]
from torch import Tensor

from longtake.errors import StateError

StateT = TypeVar("StateT")

FORMAT_VERSION = "2"
"""2: pages of the detailed cache have outlines."""
_KEYS = ("version", "type", "fingerprint", "tree", "extra", "digest")


def map_tensors(state: StateT, fn: Callable[[Tensor], Tensor]) -> StateT:
    """A new state with ``fn`` applied to every tensor: ``map_tensors(state, Tensor.detach)`` cuts gradients.

    A tensor that stands in two places is mapped once and stands in both again.

    Raises:
        StateError: The state holds something that is not allowed in one.
    """
    mapped: dict[int, Tensor] = {}

    def visit(node: Any, where: str) -> Any:
        if isinstance(node, Tensor):
            if id(node) not in mapped:
                mapped[id(node)] = fn(node)
            return mapped[id(node)]
        if isinstance(node, tuple):
            return tuple(visit(child, name) for name, child in _children(node, where))
        if _is_dataclass(node):
            fields = zip(dataclasses.fields(node), _children(node, where), strict=True)
            return type(node)(**{field.name: visit(child, name) for field, (name, child) in fields})
        return _plain(node, where)

    return visit(state, "")


def num_bytes(state: object) -> int:
    """Bytes of tensor memory that the state keeps alive.

    Each storage counts once, however many tensors share it, and whole, even if only a small view of it is used:
    that is what it costs. Numbers and strings do not count. A part with a ``num_bytes`` of its own is taken at its
    word, so that what grows with the stream need not be walked through after each segment.

    Raises:
        StateError: The state holds something that is not allowed in one.
    """
    storages: dict[object, int] = {}
    stated = 0
    for _, leaf in _leaves(state, ""):
        if isinstance(leaf, Tensor):
            storage = leaf.untyped_storage()
            key = (leaf.device, storage.data_ptr()) if storage.data_ptr() else id(leaf)  # meta tensors have no address
            storages[key] = storage.nbytes()
        elif _is_dataclass(leaf):
            stated += leaf.num_bytes
    return stated + sum(storages.values())


def save_state(path: str | os.PathLike[str], state: object, *, fingerprint: str, extra: dict[str, Any]) -> None:
    """Write the state to ``path``, whole or not at all: a reader never sees a half-written file, nor does a crash.

    Args:
        path: An existing file is replaced. The new one can be read by its owner only: it tells what a camera saw.
        state: Tensors may be on any device.
        fingerprint: The model's; ``load_state`` refuses another one.
        extra: What the caller wants back beside the state; anything JSON can hold.

    Raises:
        StateError: The state or ``extra`` cannot be stored, or the file cannot be written.
    """
    tensors: dict[str, Tensor] = {}
    tree = _encode(state, "", tensors, {})
    try:
        header = {
            "version": FORMAT_VERSION,
            "type": _type_name(type(state)),
            "fingerprint": fingerprint,
            "tree": json.dumps(tree),
            "extra": json.dumps(extra, allow_nan=False),
        }
    except (TypeError, ValueError) as error:
        raise StateError(f"extra of a state must be plain JSON: {error}") from error
    header["digest"] = _digest(header, tensors)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise StateError(f"cannot write state {target}: it is no ordinary file; give the name of a file")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, temporary, metadata=header)
        _flush(temporary)
        temporary.replace(target)
        _flush(target.parent)
    except (OSError, SafetensorError) as error:
        raise StateError(
            f"cannot write state {target}: {_reason(error)}; nothing was changed, choose another place for it"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def load_state(
    path: str | os.PathLike[str], state_type: type[StateT], *, fingerprint: str, device: torch.device | str = "cpu"
) -> tuple[StateT, dict[str, Any]]:
    """Read back what ``save_state`` wrote: the state, equal to the saved one to the bit, and ``extra``.

    Raises:
        StateError: No such file; not a state; damaged; of another version, type or model. Nothing is returned then.
    """
    try:
        opened: Any = safe_open(path, framework="pt", device="cpu")
        with opened as file:
            header: dict[str, str] = file.metadata() or {}
            _check_header(path, header, state_type, fingerprint)
            names: list[str] = list(file.keys())
            # cloned: a loaded tensor is otherwise a window into the file
            tensors: dict[str, Tensor] = {name: file.get_tensor(name).clone() for name in names}
    except FileNotFoundError as error:
        raise StateError(f"no state file {path}; expected one written by --save or Session.save") from error
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from error
    if _digest(header, tensors) != header["digest"]:
        raise StateError(f"state {path} is damaged: its digest does not match its contents; use another copy")
    tree, extra = json.loads(header["tree"]), json.loads(header["extra"])
    known = {_type_name(kind): kind for kind in _dataclasses_within(state_type, [])}
    state = _decode(tree, {name: tensor.to(device) for name, tensor in tensors.items()}, known)
    return cast(StateT, state), extra


def load_extra(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the caller of ``save_state`` put beside the state, read without the state and not checked against it.

    Raises:
        StateError: No such file, not a state, or of another version.
    """
    try:
        opened: Any = safe_open(path, framework="pt", device="cpu")
        with opened as file:
            header: dict[str, str] = file.metadata() or {}
    except FileNotFoundError as error:
        raise StateError(f"no state file {path}; expected one written by --save or Session.save") from error
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from error
    _check_version(path, header)
    return json.loads(header["extra"])


def _unreadable(path: str | os.PathLike[str], error: Exception) -> StateError:
    place = Path(path)
    if place.is_dir():
        return StateError(f"{path} is a folder, expected a state file written by --save or Session.save")
    if place.is_file() and not place.stat().st_size:
        return StateError(f"{path} is empty, expected a state file written by --save or Session.save")
    return StateError(f"{path} is not a state file, or is damaged or cut short ({_reason(error)}); use another copy")


def _reason(error: Exception) -> str:
    """What the system said; safetensors wraps it in words of its own."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    number = re.search(r"\(os error (\d+)\)", str(error))
    return os.strerror(int(number[1])) if number else str(error).removeprefix("Error while deserializing header: ")


def _check_version(path: object, header: dict[str, str]) -> None:
    if "version" in header and header["version"] != FORMAT_VERSION:
        raise StateError(
            f"state {path} has format version {header['version']}, expected {FORMAT_VERSION}; "
            "use the longtake version that wrote it"
        )
    if not set(_KEYS) <= set(header):
        raise StateError(f"{path} is a safetensors file but not a longtake state; expected one written by Session.save")


def _check_header(path: object, header: dict[str, str], state_type: type, fingerprint: str) -> None:
    _check_version(path, header)
    if header["type"] != _type_name(state_type):
        raise StateError(
            f"state {path} holds {header['type'].rpartition('.')[2]}, expected {state_type.__name__}; "
            "use the kind of model that saved it"
        )
    if header["fingerprint"] != fingerprint:
        raise StateError(
            f"state {path} was saved by model {header['fingerprint']}, expected {fingerprint}; "
            "use the very model (config and weights) that saved it"
        )


def _children(node: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Named parts of a tuple or dataclass."""
    prefix = f"{where}." if where else ""
    if isinstance(node, tuple):
        parts: list[tuple[str, Any]] = [(str(index), part) for index, part in enumerate(cast(tuple[Any, ...], node))]
    else:
        parts = [(field.name, getattr(node, field.name)) for field in dataclasses.fields(node)]
    return ((prefix + name, part) for name, part in parts)


def _leaves(node: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Tensors, plain values, and the parts that state their own size."""
    if _is_dataclass(node) and isinstance(getattr(node, "num_bytes", None), int):
        yield where, node
    elif isinstance(node, tuple) or _is_dataclass(node):
        for name, child in _children(node, where):
            yield from _leaves(child, name)
    else:
        yield where, node if isinstance(node, Tensor) else _plain(node, where)


def _is_dataclass(node: object) -> bool:
    return dataclasses.is_dataclass(node) and not isinstance(node, type)


def _plain(node: Any, where: str) -> Any:
    if node is None or type(node) in (int, float, str, bool):
        return node
    raise StateError(
        f"state field {where or '(root)'} is a {type(node).__name__}, "
        "expected a tensor, number, string, bool, None, tuple or dataclass of these"
    )


def _encode(node: Any, where: str, tensors: dict[str, Tensor], names: dict[object, tuple[str, Tensor]]) -> Any:
    """The node as JSON; its tensors go to ``tensors``, one entry for those that are one and the same.

    ``names`` holds on to the tensors: another one must not come to lie where a passing one was.
    """
    if isinstance(node, Tensor):
        key = (node.data_ptr(), node.device, node.dtype, node.shape, node.stride(), node.is_conj(), node.is_neg())
        if key not in names or not node.numel():
            names[key] = (where, node)
            tensors[where] = _storable(node)
        return {"tensor": names[key][0], "dtype": str(node.dtype), "shape": list(node.shape)}
    if isinstance(node, tuple):
        return {"tuple": [_encode(child, name, tensors, names) for name, child in _children(node, where)]}
    if _is_dataclass(node):
        node = node.portable() if hasattr(node, "portable") else node
        fields = zip(dataclasses.fields(node), _children(node, where), strict=True)
        parts = {field.name: _encode(child, name, tensors, names) for field, (name, child) in fields}
        return {"dataclass": _type_name(node.__class__), "fields": parts}
    node = _plain(node, where)
    return {"float": str(node)} if isinstance(node, float) and not math.isfinite(node) else node


def _storable(tensor: Tensor) -> Tensor:
    """A copy of its own on the CPU; complex as real pairs, since safetensors knows complex64 only."""
    tensor = tensor.detach().resolve_conj().resolve_neg().cpu()
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _decode(node: Any, tensors: dict[str, Tensor], known: dict[str, type]) -> Any:
    if not isinstance(node, dict):
        return node
    parts = cast(dict[str, Any], node)
    if "tensor" in parts:
        return _restored(parts, tensors)
    if "tuple" in parts:
        return tuple(_decode(child, tensors, known) for child in parts["tuple"])
    if "float" in parts:
        return float(parts["float"])
    kind, fields = known.get(parts["dataclass"]), parts["fields"]
    if kind is None or {field.name for field in dataclasses.fields(kind)} != set(fields):
        raise StateError(
            f"saved {parts['dataclass']} has fields {sorted(fields)}, which this version's state does not; "
            "use the longtake version that wrote it"
        )
    return kind(**{name: _decode(child, tensors, known) for name, child in fields.items()})


def _restored(described: dict[str, Any], tensors: dict[str, Tensor]) -> Tensor:
    name, dtype, shape = described["tensor"], described["dtype"], tuple(described["shape"])
    tensor = tensors.get(name)
    if tensor is not None and dtype.startswith("torch.complex") and tensor.is_floating_point():
        tensor = torch.view_as_complex(tensor)
    if tensor is None or str(tensor.dtype) != dtype or tuple(tensor.shape) != shape:
        got = "missing" if tensor is None else f"{tensor.dtype} {tuple(tensor.shape)}"
        raise StateError(f"state tensor {name} is {got}, expected {dtype} {shape}; use another copy of the file")
    return tensor


def _dataclasses_within(hint: Any, found: list[type]) -> list[type]:
    """The dataclasses that a state of this type can hold, by its annotations: no others are ever built from a file."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and hint not in found:
        found.append(hint)
        for inner in get_type_hints(hint).values():
            _dataclasses_within(inner, found)
    for inner in get_args(hint):
        _dataclasses_within(inner, found)
    return found


def _type_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _digest(header: dict[str, str], tensors: dict[str, Tensor]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for key in sorted(set(_KEYS) - {"digest"}):
        digest.update(f"{key}\0{header[key]}\0".encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _flush(path: Path) -> None:
    """Make what was written survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

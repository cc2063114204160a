"""Any state comes back from its file as it went in, or not at all."""

from __future__ import annotations

import dataclasses
import json
import math
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from longtake.errors import StateError
from longtake.state import tree
from longtake.state.tree import load_extra, load_state, map_tensors, num_bytes, save_state


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """A nested part."""

    carried: Tensor
    name: str = "layer"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """One field of every kind that is allowed."""

    layers: tuple[Layer, ...] = ()
    blocks: tuple[tuple[Tensor, ...], ...] = ()
    last: Layer | None = None
    tokens: Tensor = dataclasses.field(default_factory=lambda: torch.zeros(0, 4))
    count: int = 0
    seconds: float = 0.0
    text: str = ""
    done: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Other:
    """A state of another method."""

    carried: Tensor


DTYPES = (
    torch.float64,
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.complex64,
    torch.complex128,
    torch.int64,
    torch.uint8,
    torch.bool,
)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    tensor = torch.randn(shape, generator=torch.Generator().manual_seed(draw(st.integers(0, 2**31)))) * 3
    dtype = draw(st.sampled_from(DTYPES))
    tensor = tensor.abs().to(dtype) if dtype == torch.uint8 else tensor.to(dtype)
    return tensor.mT if tensor.ndim > 1 and draw(st.booleans()) else tensor


layers = st.builds(Layer, carried=tensors(), name=st.text(max_size=5))
states = st.builds(
    State,
    layers=st.lists(layers, max_size=3).map(tuple),
    blocks=st.lists(st.lists(tensors(), max_size=2).map(tuple), max_size=2).map(tuple),
    last=st.none() | layers,
    tokens=tensors(),
    count=st.integers(),
    seconds=st.floats(),
    text=st.text(max_size=9),
    done=st.booleans(),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def same(left: Any, right: Any) -> bool:
    """Equal to the bit, types included."""
    if isinstance(left, Tensor):
        return left.dtype == right.dtype and left.shape == right.shape and torch.equal(left, right)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if dataclasses.is_dataclass(left):
        pairs = ((getattr(left, f.name), getattr(right, f.name)) for f in dataclasses.fields(left))
        return type(left) is type(right) and all(same(a, b) for a, b in pairs)
    if isinstance(left, float) and math.isnan(left):
        return isinstance(right, float) and math.isnan(right)
    return type(left) is type(right) and left == right


def example() -> State:
    carried = torch.randn(2, 3, dtype=torch.complex64)
    return State(layers=(Layer(carried=carried), Layer(carried=torch.randn(5))), count=3, text="a box", seconds=1.5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("states")


@given(state=states, extra=st.dictionaries(st.text(max_size=5), json_values, max_size=3))
def test_saved_state_loads_as_it_was(folder: Path, state: State, extra: dict[str, Any]) -> None:
    path = folder / "a.state"
    save_state(path, state, fingerprint="f", extra=extra)
    loaded, loaded_extra = load_state(path, State, fingerprint="f")
    assert same(loaded, state)
    assert loaded_extra == extra
    assert [p.name for p in folder.iterdir()] == ["a.state"]


def test_shared_tensors_are_stored_once_and_shared_again(tmp_path: Path) -> None:
    block = torch.randn(1000)
    save_state(tmp_path / "s", State(blocks=((block, block), (block[:10],))), fingerprint="f", extra={})
    loaded, _ = load_state(tmp_path / "s", State, fingerprint="f")
    assert loaded.blocks[0][0] is loaded.blocks[0][1]
    assert torch.equal(loaded.blocks[1][0], block[:10])
    assert (tmp_path / "s").stat().st_size < 2 * block.nbytes


def test_loaded_tensors_live_without_the_file_and_can_be_written(tmp_path: Path) -> None:
    state = example()
    save_state(tmp_path / "s", state, fingerprint="f", extra={})
    loaded, _ = load_state(tmp_path / "s", State, fingerprint="f")
    (tmp_path / "s").write_bytes(b"\0" * 4096)
    assert same(loaded, state)
    loaded.layers[1].carried.zero_()


def test_saving_does_not_touch_gradients_or_conjugate_views(tmp_path: Path) -> None:
    weight = torch.randn(3, dtype=torch.complex64, requires_grad=True)
    state = State(layers=(Layer(carried=(weight * 2).conj()),))
    save_state(tmp_path / "s", state, fingerprint="f", extra={})
    loaded, _ = load_state(tmp_path / "s", State, fingerprint="f")
    assert torch.equal(loaded.layers[0].carried, state.layers[0].carried.detach())
    assert not loaded.layers[0].carried.requires_grad


def test_map_tensors_reaches_every_tensor_and_leaves_the_rest() -> None:
    state = State(layers=(Layer(carried=torch.ones(2), name="x"),), blocks=((torch.ones(1),), ()), last=None, count=4)
    mapped = map_tensors(state, lambda tensor: tensor * 2)
    assert mapped.layers[0].carried.tolist() == [2, 2]
    assert mapped.blocks[0][0].tolist() == [2]
    assert (mapped.layers[0].name, mapped.blocks[1], mapped.last, mapped.count) == ("x", (), None, 4)
    assert state.layers[0].carried.tolist() == [1, 1]


def test_map_tensors_with_detach_cuts_gradients() -> None:
    weight = torch.ones(3, requires_grad=True)
    state = State(layers=(Layer(carried=weight * 2),))
    assert state.layers[0].carried.requires_grad
    assert not map_tensors(state, Tensor.detach).layers[0].carried.requires_grad


def test_map_tensors_keeps_sharing() -> None:
    block = torch.ones(3)
    mapped = map_tensors(State(blocks=((block,), (block,))), torch.clone)
    assert mapped.blocks[0][0] is mapped.blocks[1][0]
    assert mapped.blocks[0][0] is not block


def test_num_bytes_counts_each_storage_once_and_whole() -> None:
    block = torch.zeros(100, dtype=torch.complex64)
    assert num_bytes(State(blocks=((block,),))) == 800
    assert num_bytes(State(blocks=((block, block[:5]), (block.real,)))) == 800
    assert num_bytes(State(blocks=((block[:5],),))) == 800
    assert num_bytes(State(layers=(Layer(carried=torch.zeros(2, 3)), Layer(carried=torch.zeros(3))), count=7)) == 36
    meta = torch.zeros(10, device="meta")
    assert num_bytes(State(blocks=((meta, torch.zeros(5, device="meta")),))) == 60


@pytest.mark.parametrize("value", [[1], {"a": 1}, {1}, b"x", object()])
def test_values_that_are_no_state_are_refused_by_name(tmp_path: Path, value: object) -> None:
    state = Layer(carried=torch.zeros(1))
    object.__setattr__(state, "name", value)
    for attempt in (
        lambda: map_tensors((state,), torch.clone),
        lambda: num_bytes((state,)),
        lambda: save_state(tmp_path / "s", (state,), fingerprint="f", extra={}),
    ):
        with pytest.raises(StateError, match=rf"state field 0\.name is a {type(value).__name__}, expected"):
            attempt()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("extra", [{"a": object()}, {"a": float("nan")}])
def test_extra_that_is_no_json_is_refused(tmp_path: Path, extra: dict[str, Any]) -> None:
    with pytest.raises(StateError, match="plain JSON"):
        save_state(tmp_path / "s", example(), fingerprint="f", extra=extra)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "a.state"
    save_state(path, example(), fingerprint="model-1", extra={"seen_seconds": 1.5})
    return path


def refusal(path: Path, state_type: type = State, fingerprint: str = "model-1") -> str:
    with pytest.raises(StateError) as caught:
        load_state(path, state_type, fingerprint=fingerprint)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_state_of_another_model_is_refused_naming_both(saved: Path) -> None:
    message = refusal(saved, fingerprint="model-2")
    assert "model-1" in message
    assert "model-2" in message


def test_state_of_another_type_is_refused_naming_both(saved: Path) -> None:
    message = refusal(saved, state_type=Other)
    assert "holds State, expected Other" in message


def test_missing_state_file_is_refused(tmp_path: Path) -> None:
    assert "no state file" in refusal(tmp_path / "absent.state")


def test_folder_is_refused(tmp_path: Path) -> None:
    assert str(tmp_path) in refusal(tmp_path)


def test_plain_safetensors_file_is_refused(tmp_path: Path) -> None:
    save_file({"weight": torch.zeros(3)}, tmp_path / "model.safetensors")
    assert "not a longtake state" in refusal(tmp_path / "model.safetensors")


@pytest.mark.parametrize("content", [b"hello", b"\0" * 200, b"\xff" * 64, b'{"events": []}' * 20])
def test_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    assert "not a state file" in refusal(tmp_path / "x")


def test_file_cut_short_anywhere_is_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in range(7, len(whole), 7):
        saved.write_bytes(whole[:length])
        assert "damaged or cut short" in refusal(saved)


def test_file_with_any_byte_changed_is_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    for position in range(0, len(whole), 5):
        saved.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        assert refusal(saved)


def rewrite_header(path: Path, **changes: str) -> None:
    """Change metadata the way another program could."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"].update(changes)
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + content[8 + length :])


def test_other_format_version_is_refused_naming_both(saved: Path) -> None:
    rewrite_header(saved, version="9")
    assert "format version 9, expected 2" in refusal(saved)


def test_changed_clock_is_refused(saved: Path) -> None:
    rewrite_header(saved, extra='{"seen_seconds": 99.0}')
    assert "digest" in refusal(saved)


def test_state_whose_fields_have_changed_since_is_refused(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True, kw_only=True, eq=False)
    class Shrunk:
        layers: tuple[Layer, ...]

    Shrunk.__module__, Shrunk.__qualname__ = State.__module__, State.__qualname__
    assert "has fields ['blocks'," in refusal(saved, state_type=Shrunk)


def test_file_cannot_name_a_class_of_its_choice(tmp_path: Path) -> None:
    save_state(tmp_path / "s", State(last=Other(carried=torch.zeros(1))), fingerprint="model-1", extra={})  # type: ignore[arg-type]
    assert f"saved {__name__}.Other" in refusal(tmp_path / "s")


def test_failed_save_leaves_the_old_file_and_nothing_else(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def disk_full(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str]) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tree, "save_file", disk_full)
    with pytest.raises(StateError, match="No space left"):
        save_state(saved, example(), fingerprint="f", extra={})
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_interrupted_save_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tree, "_flush", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_state(saved, example(), fingerprint="f", extra={})
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_save_makes_a_missing_folder(tmp_path: Path) -> None:
    save_state(tmp_path / "absent" / "s", example(), fingerprint="f", extra={})
    assert load_state(tmp_path / "absent" / "s", State, fingerprint="f")[0].text == example().text


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full here")
def test_device_is_never_replaced() -> None:
    with pytest.raises(StateError, match="no ordinary file"):
        save_state("/dev/full", example(), fingerprint="f", extra={})
    assert Path("/dev/full").is_char_device()


def test_folder_and_empty_file_are_told_apart_from_damage(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for path, words in ((tmp_path, "is a folder"), (tmp_path / "empty", "is empty")):
        with pytest.raises(StateError, match=words):
            load_extra(path)


def test_save_writes_through_a_link_for_the_owner_only(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save_state(tmp_path / "link", example(), fingerprint="model-1", extra={})
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o600
    assert load_state(tmp_path / "real", State, fingerprint="model-1")[0].text == "a box"


def test_extra_is_read_without_the_state(tmp_path: Path) -> None:
    save_state(tmp_path / "state", State(count=3), fingerprint="abc", extra={"notes": [1, "two"]})
    assert load_extra(tmp_path / "state") == {"notes": [1, "two"]}


@pytest.mark.parametrize("content", [None, b"", b"no state"])
def test_extra_of_what_is_no_state_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "state").write_bytes(content)
    with pytest.raises(StateError, match="state"):
        load_extra(tmp_path / "state")

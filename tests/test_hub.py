"""Checkpoints: what is saved loads to the same numbers, and whatever is wrong with one is said in one line."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from longtake import hub
from longtake.config import from_dict, to_dict
from longtake.errors import CheckpointError, ConfigError
from longtake.types import Request, Response, Segment, SegmentSpec


@dataclass(frozen=True, kw_only=True)
class ToyTraits:
    loud: bool = False
    pitch: int = 1


@dataclass(frozen=True, kw_only=True)
class ToyConfig:
    width: int = 3
    bias: bool = True
    traits: ToyTraits = field(default_factory=ToyTraits)

    def to_dict(self) -> dict[str, Any]:
        return to_dict(self)


class Toy(nn.Module, hub.Published):
    """A module with tied weights, a buffer, and an integer and an empty tensor: what real models have."""

    def __init__(self, config: ToyConfig) -> None:
        super().__init__()
        self.config = config
        self.first = nn.Linear(config.width, config.width, bias=config.bias)
        self.tied = nn.Linear(config.width, config.width, bias=False)
        self.tied.weight = self.first.weight
        self.register_buffer("steps", torch.arange(config.width))
        self.register_buffer("nothing", torch.zeros(0, 2))

    @classmethod
    def from_config(cls, fields: dict[str, Any]) -> Toy:
        return cls(from_dict(ToyConfig, fields))

    # the rest of StreamModel, which loading does not call

    segment_spec = SegmentSpec(num_frames=1, fps=1.0, height=1, width=1)
    supports: frozenset[type[Request]] = frozenset()
    fingerprint = ""

    def init_state(self) -> tuple[()]:
        return ()

    def max_state_bytes(self) -> int:
        return 0

    def advance(self, state: tuple[()], segment: Segment) -> tuple[()]:
        raise NotImplementedError

    def respond(self, state: tuple[()], request: Request) -> Iterator[Response]:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def toy_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hub.METHODS, "toy", (__name__, "Toy"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "toy-model"
    hub.save(Toy(ToyConfig()), folder, notes={"seed": 3})
    return folder


def edit_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def edit_weights(folder: Path, **changes: torch.Tensor | None) -> None:
    """Change the weights as someone would who also forgets about the digest."""
    weights = load_file(folder / "model.safetensors")
    for name, tensor in changes.items():
        weights.pop(name.replace("__", "."), None)
        if tensor is not None:
            weights[name.replace("__", ".")] = tensor
    save_file(weights, folder / "model.safetensors")
    edit_config(folder, weights_sha256=None)


def test_saved_model_loads_with_the_same_weights(tmp_path: Path) -> None:
    model = Toy(ToyConfig(width=5))
    hub.save(model, tmp_path)
    loaded = hub.load(tmp_path, device="cpu")
    assert isinstance(loaded, Toy)
    assert loaded.config == model.config
    assert not loaded.training
    assert loaded.tied.weight is loaded.first.weight
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


def test_checkpoint_has_config_weights_and_card(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    config = json.loads((folder / "config.json").read_text())
    assert (config["method"], config["config"], config["notes"]) == ("toy", ToyConfig().to_dict(), {"seed": 3})
    assert "toy-model" in (folder / "README.md").read_text()
    assert set(load_file(folder / "model.safetensors")) == {"first.weight", "first.bias", "steps", "nothing"}


def test_saving_again_keeps_a_written_card_and_replaces_the_rest(folder: Path) -> None:
    (folder / "README.md").write_text("written by a person")
    hub.save(Toy(ToyConfig(width=4)), folder)
    assert (folder / "README.md").read_text() == "written by a person"
    assert hub.load(folder).config.width == 4
    hub.save(Toy(ToyConfig(width=4)), folder, card="new card")
    assert (folder / "README.md").read_text() == "new card"


def test_option_overrides_the_config_of_a_checkpoint(tmp_path: Path) -> None:
    hub.save(Toy(ToyConfig(bias=False)), tmp_path)
    with pytest.raises(CheckpointError, match=r"weights lack first\.bias"):
        hub.load(tmp_path, bias=True)
    with pytest.raises(ConfigError, match="did you mean 'bias'"):
        hub.load(tmp_path, bais=True)


def test_option_of_a_nested_config_leaves_its_other_fields_alone(tmp_path: Path) -> None:
    hub.save(Toy(ToyConfig(traits=ToyTraits(pitch=7))), tmp_path)
    assert hub.load(tmp_path, traits={"loud": True}).config.traits == ToyTraits(loud=True, pitch=7)
    with pytest.raises(ConfigError, match="traits: unknown key 'lout'"):
        hub.load(tmp_path, traits={"lout": True})


def test_fingerprint_tells_config_and_weights_apart() -> None:
    torch.manual_seed(1)
    model = Toy(ToyConfig())
    torch.manual_seed(1)
    twin = Toy(ToyConfig())
    assert hub.fingerprint(model) == hub.fingerprint(twin)
    with torch.no_grad():
        twin.first.weight[0, 0] += 1e-3
    assert hub.fingerprint(model) != hub.fingerprint(twin)
    torch.manual_seed(1)
    assert hub.fingerprint(Toy(ToyConfig(bias=False))) != hub.fingerprint(model)


def test_fingerprint_survives_saving_and_loading(folder: Path) -> None:
    first, second = hub.load(folder), hub.load(folder)
    assert isinstance(first, Toy)
    assert isinstance(second, Toy)
    assert hub.fingerprint(first) == hub.fingerprint(second)


def test_missing_weights_are_named(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"has no model\.safetensors"):
        hub.load(folder)


def test_missing_config_is_named(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        hub.load(folder)


@pytest.mark.parametrize("length", [0, 3, 9, 60, -1])
def test_cut_off_weights_are_called_damaged(folder: Path, length: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CheckpointError, match="is damaged"):
        hub.load(folder)


def test_changed_byte_in_the_weights_is_noticed(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="digest differs"):
        hub.load(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"method": "toy"}', '{"method": "toy", "config": 3}', "\0"])
def test_config_that_is_none_is_refused(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        hub.load(folder)


@pytest.mark.parametrize("method", ["toi", 3, None])
def test_unknown_method_is_refused(folder: Path, method: object) -> None:
    edit_config(folder, method=method)
    with pytest.raises(CheckpointError, match="which this version does not know"):
        hub.load(folder)


def test_weights_of_another_shape_are_refused(folder: Path) -> None:
    edit_config(folder, config={"width": 4})
    with pytest.raises(CheckpointError, match=r"first.bias has shape \(3,\), its config asks for \(4,\)"):
        hub.load(folder)


def test_weights_that_lack_a_tensor_are_refused(folder: Path) -> None:
    edit_weights(folder, first__bias=None)
    with pytest.raises(CheckpointError, match=r"lack first\.bias"):
        hub.load(folder)


def test_weights_with_a_tensor_too_many_are_refused(folder: Path) -> None:
    edit_weights(folder, third=torch.zeros(1))
    with pytest.raises(CheckpointError, match="hold third"):
        hub.load(folder)


def test_unknown_key_in_the_config_is_refused(folder: Path) -> None:
    edit_config(folder, config={"widht": 3})
    with pytest.raises(ConfigError, match="did you mean 'width'"):
        hub.load(folder)


def test_model_of_no_method_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="Linear is not a method of longtake"):
        hub.save(nn.Linear(2, 2), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_folder_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot write a checkpoint"):
        hub.save(Toy(ToyConfig()), tmp_path / "file" / "below")


def test_interrupted_save_leaves_the_old_checkpoint_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = hub.fingerprint(hub.load(folder))

    def fail(weights: object, path: Path, **_: object) -> None:
        path.write_bytes(b"half")
        raise OSError("disk is full")

    monkeypatch.setattr(hub, "save_file", fail)
    with pytest.raises(CheckpointError, match="disk is full"):
        hub.save(Toy(ToyConfig(width=7)), folder)
    assert hub.fingerprint(hub.load(folder)) == before
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]


@pytest.fixture
def toy_bundled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "not-a-model").mkdir()
    monkeypatch.setattr(hub, "_bundled_root", lambda: folder.parent)


@pytest.mark.usefixtures("toy_bundled")
def test_bundled_models_are_listed_and_found_by_name() -> None:
    assert hub.bundled() == ("toy-model",)
    assert isinstance(hub.load("toy-model"), Toy)


@pytest.mark.usefixtures("toy_bundled")
def test_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(CheckpointError, match=r"no model 'toy-modl'.*did you mean 'toy-model'"):
        hub.load("toy-modl")


@pytest.mark.parametrize("name", ["/no/such/folder", "./missing/folder", "~/missing/model", "a/b/c"])
def test_missing_folder_is_not_asked_from_the_hub(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_download", lambda *_, **__: pytest.fail("asked the network"))
    with pytest.raises(CheckpointError, match="no model"):
        hub.load(name)


def test_file_is_refused_with_what_was_expected(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="is a file, expected a checkpoint folder"):
        hub.load(folder / "model.safetensors")


def test_hub_id_without_network_is_an_error_of_one_line() -> None:
    with pytest.raises(CheckpointError, match="no model 'somebody/something'") as caught:
        hub.load("somebody/something")
    assert "\n" not in str(caught.value)


def test_pretrained_interface_uses_the_same_layout(tmp_path: Path) -> None:
    model = Toy(ToyConfig(width=6))
    model.save_pretrained(tmp_path / "saved")
    assert json.loads((tmp_path / "saved" / "config.json").read_text())["method"] == "toy"
    assert hub.fingerprint(Toy.from_pretrained(tmp_path / "saved")) == hub.fingerprint(model)
    assert hub.fingerprint(hub.load(tmp_path / "saved")) == hub.fingerprint(model)


def test_pretrained_interface_refuses_another_class(folder: Path) -> None:
    class Other(Toy):
        pass

    with pytest.raises(CheckpointError, match="holds a Toy, expected a Other"):
        Other.from_pretrained(folder)


class FakeHub(BaseHTTPRequestHandler):
    """As much of the hub's protocol as a download needs, over one repository ``tester/toy``."""

    folder: Path
    asked: list[str]

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def answer(self, *, with_body: bool) -> None:
        self.asked.append(self.path)
        commit, name = "0" * 40, self.path.rpartition("/")[2]
        files = [{"rfilename": path.name} for path in self.folder.iterdir()]
        info = {"id": "tester/toy", "sha": commit, "siblings": files, "tags": [], "private": False, "downloads": 0}
        tree = [
            {
                "type": "file",
                "path": path.name,
                "size": path.stat().st_size,
                "oid": hashlib.sha1(path.name.encode()).hexdigest(),
            }
            for path in self.folder.iterdir()
        ]
        if "/tester/toy/tree/" in self.path:
            self.send(json.dumps(tree).encode(), with_body, {"content-type": "application/json"})
        elif self.path.startswith("/api/models/tester/toy"):
            self.send(json.dumps(info).encode(), with_body, {"content-type": "application/json"})
        elif self.path.startswith("/tester/toy/resolve/") and (self.folder / name).is_file():
            content = (self.folder / name).read_bytes()
            self.send(content, with_body, {"x-repo-commit": commit, "etag": f'"{hashlib.sha1(content).hexdigest()}"'})
        else:
            self.send_response(404)
            self.send_header("x-error-code", "RepoNotFound")
            self.send_header("content-length", "0")
            self.end_headers()

    def send(self, content: bytes, with_body: bool, headers: dict[str, str]) -> None:
        self.send_response(200)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def hub_address(folder: Path) -> Iterator[str]:
    FakeHub.folder, FakeHub.asked = folder, []
    (folder / "unwanted.bin").write_bytes(b"x" * 1000)
    with ThreadingHTTPServer(("127.0.0.1", 0), FakeHub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def find_in_new_process(name: str, address: str, home: Path) -> subprocess.CompletedProcess[str]:
    """The address of the hub is read at import, so the question is asked in a process of its own."""
    code = f"from longtake import hub; print(hub.read_config(hub.find({name!r})))"
    environment = os.environ | {"HF_ENDPOINT": address, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0", "HF_TOKEN": ""}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def test_hub_id_is_downloaded_and_only_its_checkpoint_files(hub_address: str, tmp_path: Path) -> None:
    done = find_in_new_process("tester/toy", hub_address, tmp_path / "home")
    assert "'method': 'toy'" in done.stdout, done.stderr
    assert any("model.safetensors" in path for path in FakeHub.asked)
    assert not any("unwanted.bin" in path for path in FakeHub.asked)


def test_hub_id_that_does_not_exist_is_an_error_of_one_line(hub_address: str, tmp_path: Path) -> None:
    done = find_in_new_process("nobody/nothing", hub_address, tmp_path / "home")
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("longtake.errors.CheckpointError: no model 'nobody/nothing'"), done.stderr


def test_model_without_a_name_is_refused() -> None:
    with pytest.raises(CheckpointError, match="the model's name is empty"):
        hub.find("")

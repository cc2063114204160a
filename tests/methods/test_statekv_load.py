"""``longtake.load`` for transformers' folders: the same model as in memory, and every fault of a folder in one line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub.utils import filter_repo_objects
from safetensors.torch import load_file, save_file
from tests.contract.models import make_segments
from tests.vlm.families import make
from tests.vlm.folders import SETTINGS, write_folder

from longtake import hub
from longtake.cli.app import run
from longtake.errors import CheckpointError, ConfigError, LongtakeError
from longtake.methods.statekv import StateKV
from longtake.methods.statekv_config import StateKVConfig
from longtake.types import Ask
from longtake.vlm.families import family_of

FAMILIES = ("qwen2-vl", "qwen2.5-vl", "qwen3-vl", "qwen3-vl-moe", "internvl3", "llava-onevision", "videollama3")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("models") / "tiny-vlm", **SETTINGS)


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(pristine, tmp_path / "tiny-vlm"))


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@torch.inference_mode()
def answer(model: Any, question: str = "what was red?") -> str:
    state = model.init_state()
    for segment in make_segments(model.segment_spec, 4):
        state = model.advance(state, segment)
    return str(list(model.respond(state, Ask(question=question))))


@pytest.mark.parametrize("name", [*FAMILIES, "perception-lm"])
def test_loaded_folder_answers_as_the_model_in_memory(name: str, tmp_path: Path) -> None:
    size = {"height": 64, "width": 96} if name.startswith("qwen3") else {}
    size = {"height": 56, "width": 84} if name in ("qwen2-vl", "qwen2.5-vl", "videollama3") else size
    config = StateKVConfig(budget=48, max_new_tokens=6, **size)
    loaded = hub.load(write_folder(tmp_path, name), device="cpu", budget=48, max_new_tokens=6, **size)
    in_memory = StateKV(family_of(*make(name), **size), config)
    assert isinstance(loaded, StateKV)
    assert loaded.config == config
    assert not any(weights.requires_grad for weights in loaded.family.model.parameters())
    assert answer(loaded) == answer(in_memory)
    assert loaded.fingerprint == in_memory.fingerprint


def test_settings_of_the_folder_lie_under_the_users_options(pristine: Path) -> None:
    model = hub.load(pristine, budget=32)
    assert (model.config.fps, model.config.budget, model.segment_spec.width) == (2.0, 32, 96)


def test_what_a_folder_sets_for_its_policy_is_no_hindrance_to_another(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, "qwen3-vl")
    (folder / "longtake.json").write_text(json.dumps({"budget": 40, "select": "layer", "sinks": 2}))
    assert hub.load(folder).config.select == "layer"
    assert hub.load(folder, policy="recency").config.policy == "recency"
    assert hub.load(folder, policy="full").config.policy == "full"


def test_family_that_must_know_the_length_takes_it_from_the_horizon(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, "smolvlm")
    with pytest.raises(ConfigError, match="give horizon_seconds"):
        hub.load(folder)
    family = hub.load(folder, horizon_seconds=6.6, fps=2.0).family
    assert (family.horizon_frames, family.horizon_seconds) == (13, 6.6)


def test_dynamic_scaling_is_fixed_by_the_horizon_before_the_model_is_made(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, "internvl3")
    config = json.loads((folder / "config.json").read_text())
    rope = config["text_config"]["rope_parameters"] | {"rope_type": "dynamic", "factor": 2.0}
    config["text_config"] |= {"rope_parameters": rope, "max_position_embeddings": 512}
    (folder / "config.json").write_text(json.dumps(config))
    short, long = hub.load(folder), hub.load(folder, horizon_seconds=3600.0)
    for model, grows in ((short, False), (long, True)):
        made = model.family.text_config.rope_parameters
        assert made["rope_type"] == "default"
        assert (made["rope_theta"] > rope["rope_theta"]) == grows
    assert answer(short) != answer(long)


def test_a_horizon_that_changes_nothing_is_told(
    pristine: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub.load(write_folder(tmp_path, "smolvlm"), horizon_seconds=6.6)
    assert not caplog.records
    hub.load(pristine, horizon_seconds=60.0)
    assert "horizon_seconds 60 changes nothing" in caplog.text


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_dtype_is_what_was_asked_for(pristine: Path, dtype: str) -> None:
    assert str(hub.load(pristine, dtype=dtype).family.dtype) == f"torch.{dtype}"


def test_half_precision_weights_run_in_float32_on_a_cpu(folder: Path) -> None:
    edit(folder / "config.json", dtype="float16")
    assert hub.load(folder, device="cpu").family.dtype == torch.float32


def test_all_that_a_folder_is_read_from_is_downloaded_and_no_more(pristine: Path) -> None:
    ours = {path.name for path in pristine.iterdir()}
    theirs = {"vocab.json", "merges.txt", "preprocessor_config.json", "model-00001-of-00002.safetensors"}
    theirs |= {"model.safetensors.index.json", "tokenizer.model", "modeling_own.py"}
    others = {"pytorch_model.bin", "onnx/config.json", "consolidated.safetensors", "figure.png", "original/params.json"}
    wanted = filter_repo_objects(ours | theirs | others, allow_patterns=list(hub._WANTED), ignore_patterns=["*/*"])
    assert set(wanted) == ours | theirs


# --- what is wrong is said in one line


def lose(*names: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return damage


def cut_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def lose_a_tensor(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights[next(name for name in weights if "language_model" in name)]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def widen(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["intermediate_size"] *= 2
    (folder / "config.json").write_text(json.dumps(config))


def shard(folder: Path) -> None:
    """An index that names a file which is not there."""
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    shards = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))


def settings(**changes: object) -> Callable[[Path], None]:
    return lambda folder: edit(folder / "longtake.json", **changes)


def model_type(name: str, **more: object) -> Callable[[Path], None]:
    return lambda folder: edit(folder / "config.json", model_type=name, **more)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lose("model.safetensors"), "has no model.safetensors; expected the weights"),
        (cut_weights, "model.safetensors is damaged"),
        (lose_a_tensor, "weights lack "),
        (widen, "cannot read its model: "),
        (shard, "has no model-00002-of-00002.safetensors"),
        (lose("tokenizer.json"), "has no tokenizer; expected tokenizer.json"),
        (lose("processor_config.json"), "has no processor; expected processor_config.json"),
        (lose("chat_template.jinja"), "cannot read its prompts: "),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), "cannot read its processor: "),
        (lambda folder: (folder / "config.json").write_text("{}"), "nor a model_type of transformers"),
        (model_type("gemma3", text_config={}), "attends within a sliding window"),
        (model_type("llama"), "model type 'llama' is not served"),
        (model_type("walrus"), "model type 'walrus' is not served; expected one of"),
        (settings(bugdet=3), "unknown key 'bugdet'; did you mean 'budget'?"),
        (settings(budget="many"), 'budget is "many" (str), expected int'),
        (lambda folder: (folder / "longtake.json").write_text("[]"), "longtake.json holds no settings"),
        (lambda folder: (folder / "longtake.json").write_text("{"), "longtake.json cannot be read"),
    ],
)
def test_damaged_folder_is_refused_in_one_line(folder: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(folder)
    with pytest.raises(LongtakeError) as caught:
        hub.load(folder)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bugdet": 3}, "did you mean 'budget'"),
        ({"policy": "statekw"}, "did you mean 'statekv'"),
        ({"sinks": 48}, "fewer than the budget of 48"),
        ({"height": 33}, "takes multiples of 32"),
        ({"dtype": "int8"}, "dtype is 'int8', expected auto"),
        ({"caption_question": "What now, {name}?"}, "expected words with {start} and {end}"),
    ],
)
def test_option_that_cannot_work_is_refused(pristine: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        hub.load(pristine, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize("stated", ["eagle_2_5_vl", "walrus", "qwen3_vl"])
def test_code_of_a_folder_does_not_run_unless_asked(folder: Path, stated: str) -> None:
    ran = folder / "ran"
    (folder / "code.py").write_text(f"open({str(ran)!r}, 'w')\nclass Config: ...\nclass Model: ...\n")
    edit(folder / "config.json", model_type=stated, auto_map={"AutoConfig": "code.Config", "AutoModel": "code.Model"})
    if stated == "qwen3_vl":  # transformers has this one itself
        assert hub.load(folder).family.name == "Qwen3-VL"
    else:
        with pytest.raises(CheckpointError, match="brings code of its own, which is not run unless you ask"):
            hub.load(folder)
    assert not ran.exists()


def test_folder_is_loaded_without_any_network(pristine: Path) -> None:
    """Also where the hub could be asked: in a process of its own, in which nobody has said offline."""
    code = (
        "import socket, sys\n"
        "def refuse(*arguments, **options): raise SystemExit('the network was asked')\n"
        "socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse\n"
        "import longtake\n"
        f"print(longtake.load({str(pristine)!r}, device='cpu').family.name)\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "Qwen3-VL"), done.stderr
    assert done.stderr == ""


# --- longtake models


def test_models_show_tells_a_video_models_family_parts_and_settings(
    pristine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["models", "show", str(pristine), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["method"], facts["family"]) == ("statekv", "Qwen3-VL")
    assert facts["segment"] == "2 frames at 2 fps, 96x64"
    assert facts["settings"]["budget"] == 48
    model, _ = make("qwen3-vl")
    assert sum(facts["parameters"].values()) == sum(weights.numel() for weights in model.parameters())
    assert {"visual", "language_model"} <= set(facts["parameters"])
    assert run(["models", "show", str(pristine)]) == 0
    assert "setting: budget" in capsys.readouterr().out


def test_models_list_has_a_bundled_video_model_with_its_scores(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings(notes={"scores": {"accuracy": 0.9216}})(folder)
    monkeypatch.setattr(hub, "_bundled_root", lambda: folder.parent)
    assert run(["models", "list", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["models"][0]
    assert row == {"name": "tiny-vlm", "method": "statekv", "kind": "bundled", "scores": "accuracy 0.922"}
    assert hub.load("tiny-vlm").config.budget == 48

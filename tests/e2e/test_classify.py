"""``longtake classify`` on real films: own labels and any words, text and JSON, pauses, live sources, mistakes."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import Result
from tests.e2e.films import write_film
from tests.e2e.vlm_command import SHOWN, start
from tests.video.servers import send_and_hang, tcp_server
from tests.video.shared import SHARED

import longtake as lt

Run = Callable[..., Result]
DEMO = Path(__file__).resolve().parents[2] / "assets" / "demo.mp4"


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_film(tmp_path_factory.mktemp("films") / "street.mp4", SHOWN)


@pytest.fixture
def classify(command: Run, film: Path, tiny_mcvit: Path) -> Run:
    """``longtake classify`` of the film; further arguments follow."""
    return lambda *arguments: command("classify", film, *arguments, "--model", tiny_mcvit)


def watched(model: Path, film: Path) -> lt.Session[Any]:
    session: lt.Session[Any] = lt.Session(lt.load(model, device="cpu"))
    for _ in session.watch(film):
        pass
    return session


def told(result: Result) -> list[dict[str, Any]]:
    assert result.status == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def test_text_is_a_line_for_each_label_and_all_else_is_on_stderr(classify: Run, tiny_mcvit: Path, film: Path) -> None:
    result = classify()
    assert result.status == 0
    expected = watched(tiny_mcvit, film).classify()
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines] == [f"{label.probability:.3f}" for label in expected]
    assert [line.split()[-1] for line in lines] == [label.name for label in expected]
    assert all("█" in line for line in lines)
    assert re.fullmatch(r"longtake: street: 12\.0 s seen, [\d.]+x real time, state [\d.]+ kB\n", result.err)


def test_json_has_exactly_the_keys_of_the_contract(classify: Run) -> None:
    result = classify("--json", "--quiet")
    (line,) = told(result)
    assert list(line) == ["video", "labels"]
    assert line["video"] == "street"
    assert [list(entry) for entry in line["labels"]] == [["label", "probability"]] * 3
    assert sum(entry["probability"] for entry in line["labels"]) == pytest.approx(1, abs=1e-5)
    assert result.err == ""


def test_sample_video_and_a_film_of_the_world_are_classified(command: Run, tiny_mcvit: Path) -> None:
    others = [SHARED / "videos" / "moviepy__chaplin.mp4"] if (SHARED / "videos").is_dir() else []
    result = command("classify", DEMO, *others, "--model", tiny_mcvit, "--json", "--top", "1")
    assert [line["video"] for line in told(result)] == ["demo", *(path.stem for path in others)]
    assert all(len(line["labels"]) == 1 for line in told(result))


def test_labels_from_a_file_and_from_the_command_line_are_the_same(classify: Run, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("\ufeffred\r\n\r\n  which came most often \r\n", encoding="utf-8")
    result = classify("--labels", tmp_path / "labels.txt", "--json", "-q")
    assert told(result) == told(classify("--label", "red", "--label", "which came most often", "--json", "-q"))
    assert {entry["label"] for entry in told(result)[0]["labels"]} == {"red", "which came most often"}


def test_prompt_is_said_of_each_label(classify: Run, tiny_mcvit: Path, film: Path) -> None:
    asked = ("--label", "red", "--label", "blue", "--json", "-q")
    plain, prompted = (told(classify(*asked, *more)) for more in ((), ("--prompt", "which came {} most often ?")))
    assert plain != prompted
    by_hand = watched(tiny_mcvit, film).classify([f"which came {one} most often ?" for one in ("red", "blue")])
    shares = {entry["label"]: entry["probability"] for entry in prompted[0]["labels"]}
    assert [shares[label.name.split()[2]] for label in by_hand] == [
        pytest.approx(label.probability, abs=1e-5) for label in by_hand
    ]


def test_words_the_model_does_not_know_are_told(classify: Run) -> None:
    result = classify("--label", "red", "--label", "a zebra")
    assert result.status == 0
    assert "1 of 2 texts have words that the model does not know" in result.err
    assert "'a zebra'" in result.err


def test_blind_reads_no_video_and_is_always_the_same(command: Run, classify: Run, tiny_mcvit: Path) -> None:
    (line,) = told(classify("--blind", "--json"))
    assert line["blind"] is True
    (other,) = told(command("classify", "no-such-film.mp4", "--blind", "--json", "--model", tiny_mcvit))
    assert line["labels"] == other["labels"]
    assert line["labels"] != told(classify("--json"))[0]["labels"]
    assert "no video was read" in classify("--blind").err


def test_failing_source_is_named_and_the_others_are_kept(
    command: Run, film: Path, linear_mcvit: Path, tmp_path: Path
) -> None:
    (tmp_path / "torn.mp4").write_bytes(film.read_bytes()[:2000])
    result = command("classify", film, tmp_path / "torn.mp4", DEMO, "--model", linear_mcvit, "--top", "2")
    assert result.status == 1
    heads = [line for line in result.out.splitlines() if line.startswith("#")]
    assert heads == ["# street", "# demo"]
    assert sum("torn.mp4" in line for line in result.err.splitlines()) == 1


def test_saved_half_goes_on_to_the_same_labels_with_its_own_model(
    command: Run, classify: Run, film: Path, tmp_path: Path
) -> None:
    state = tmp_path / "half.state"
    assert classify("--seconds", "5", "--save", state, "--set", "memory.variant=st").status == 0
    whole = told(classify("--json", "--set", "memory.variant=st"))
    assert told(command("classify", film, "--resume", state, "--json")) == whole
    again = command("classify", film, "--resume", state, "--seconds", "0", "--json")
    assert told(again) != whole


def test_state_of_another_setting_is_refused(classify: Run, tmp_path: Path) -> None:
    state = tmp_path / "half.state"
    assert classify("--seconds", "5", "--save", state).status == 0
    result = classify("--resume", state, "--set", "memory.kind=last")
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)


def test_other_rate_is_taken_if_it_is_given(classify: Run) -> None:
    assert "12.0 s seen" in classify("--fps", "2").err


def test_live_source_is_read_for_the_seconds_given(command: Run, tiny_mcvit: Path, tmp_path: Path) -> None:
    stream = write_film(tmp_path / "street.ts", SHOWN, codec="mpeg2video").read_bytes()
    released = threading.Event()
    with tcp_server(send_and_hang(stream, released)) as url:
        result = command("classify", url, "--model", tiny_mcvit, "--seconds", "4", "--json")
        released.set()
    assert len(told(result)[0]["labels"]) == 3
    assert ": 4.0 s seen" in result.err


def test_interrupt_of_a_live_source_tells_what_was_seen(tiny_mcvit: Path, tmp_path: Path) -> None:
    stream = write_film(tmp_path / "street.ts", SHOWN, codec="mpeg2video").read_bytes()
    released, state = threading.Event(), tmp_path / "state"
    with (
        tcp_server(send_and_hang(stream, released)) as url,
        start("classify", url, "--model", tiny_mcvit, "--json", "--save", state, "--timeout", "100") as process,
    ):
        deadline = time.monotonic() + 200
        while not state.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate()
        released.set()
    assert process.returncode == 130, errors
    assert len(json.loads(out)["labels"]) == 3


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--labels", "missing.txt"], 1, "labels missing.txt cannot be read"),
        (["--labels", "bytes.txt"], 1, "bytes.txt is no UTF-8 text"),
        (["--labels", "empty.txt"], 1, "empty.txt: got 0 labels, expected two or more"),
        (["--label", "red"], 1, "got 1 label, expected two or more"),
        (["--label", "red", "--label", "red"], 1, "label 'red' is given twice"),
        (["--label", "red", "--label", " "], 1, "a label is empty"),
        (["--label", "red", "--label", "a\x1bb"], 1, "which is not text"),
        (["--labels", "empty.txt", "--label", "red"], 2, "--labels and --label are both given"),
        (["--prompt", "a video"], 1, "expected a text with {} in the label's place"),
        (["--top", "0"], 2, "--top is '0', expected 1 or more"),
        (["--fps", "0"], 2, "--fps is '0'"),
        (["--seconds", "0"], 1, "--seconds 0 reads nothing"),
        (["--seconds", "-1"], 1, "--seconds is -1"),
        (["--set", "memory.kinds=last"], 1, "unknown key 'kinds'; did you mean 'kind'?"),
        (["--save", "/proc/none/state"], 1, "cannot write /proc/none/state"),
        (["--resume", "missing"], 1, "no state file missing"),
        (["--blind", "--save", "x"], 2, "--blind reads no video"),
    ],
)
def test_what_cannot_work_is_told_in_one_line_before_anything_is_read(
    classify: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00red")
    result = classify(*arguments)
    assert (result.status, result.out) == (status, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert " seen" not in result.err


def test_linear_head_knows_its_own_labels_only(command: Run, film: Path, linear_mcvit: Path) -> None:
    arguments = ("classify", film, "--model", linear_mcvit, "--quiet")
    assert "label 'car' is none of the 3" in command(*arguments, "--label", "car", "--label", "red").err
    assert "a prompt changes nothing" in command(*arguments, "--prompt", "a {}").err
    assert command(*arguments, "--label", "blue", "--label", "red").out.count("\n") == 2


def test_model_that_gives_no_labels_is_told_so(command: Run, film: Path) -> None:
    result = command("classify", film, "--model", "toybox-sts")
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert "toybox-sts is a STS and gives no labels" in result.err


def test_default_model_that_is_not_there_is_told_clearly(command: Run, film: Path) -> None:
    from longtake.hub import bundled

    if "toybox-mcvit" in bundled():
        pytest.skip("it is bundled")
    result = command("classify", film)
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert result.err.startswith("longtake: toybox-mcvit does not come with this version; give --model")


def test_state_is_not_saved_over_the_source(classify: Run, film: Path) -> None:
    before = film.read_bytes()
    assert classify("--save", film).status == 2
    assert film.read_bytes() == before

"""``longtake caption`` on films whose events are known: every format, many sources, and what can be wrong."""

from __future__ import annotations

import json
import re
import wave
from collections.abc import Callable
from pathlib import Path

import av
import pytest
from PIL import Image
from tests.contract.colours import Colours
from tests.e2e.conftest import Result
from tests.e2e.films import PAINT, expected_events, write_film

from longtake.cli.caption import Format, OnLag
from longtake.language.formats import FORMATS

Run = Callable[..., Result]
SHOWN = "rrrrrggggrrbbbbb"
OTHER = "ggggggbbbbrr"


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_film(tmp_path_factory.mktemp("films") / "street.mp4", SHOWN)


def told(lines: str) -> list[tuple[float, float, str]]:
    return [(line["start"], line["end"], line["sentence"]) for line in map(json.loads, lines.splitlines())]


def test_caption_prints_a_line_for_each_event(longtake: Run, film: Path) -> None:
    result = longtake("caption", film)
    assert result.status == 0
    lines = ["0:00.00-0:01.25  red", "0:01.25-0:02.25  green", "0:02.25-0:02.75  red for time 2"]
    assert result.out.splitlines() == lines
    assert re.fullmatch(r"longtake: street: 4\.0 s seen, 3 events, [\d.]+x real time, state 56 bytes\n", result.err)


def test_caption_prints_json_lines(longtake: Run, film: Path) -> None:
    result = longtake("caption", film, "--format", "jsonl", "--quiet")
    assert told(result.out) == expected_events(SHOWN)
    assert {json.loads(line)["video"] for line in result.out.splitlines()} == {"street"}
    assert result.err == ""


@pytest.mark.parametrize(
    ("to", "start"), [("json", "{"), ("srt", "1\n00:00:00,000 --> 00:00:01,250\nred\n"), ("vtt", "WEBVTT\n")]
)
def test_caption_prints_whole_formats_at_the_end(longtake: Run, film: Path, to: str, start: str) -> None:
    assert longtake("caption", film, "--format", to).out.startswith(start)


def test_caption_writes_several_files_by_their_suffixes_and_shows_events(
    longtake: Run, film: Path, tmp_path: Path
) -> None:
    files = [tmp_path / "new folder" / f"out{suffix}" for suffix in (".vtt", ".srt", ".json", ".jsonl", ".txt")]
    result = longtake("caption", film, *(word for file in files for word in ("-o", file)))
    assert result.status == 0
    assert len(result.out.splitlines()) == 3
    assert [
        file.read_text().startswith(start)
        for file, start in zip(files, ("WEBVTT", "1\n", "{", "{", "0:0"), strict=True)
    ]
    assert files[1].read_text().count(" --> ") == 3
    results = json.loads(files[2].read_text())["results"]
    assert [(*entry["timestamp"], entry["sentence"]) for entry in results["street"]] == expected_events(SHOWN)
    assert told(files[3].read_text()) == expected_events(SHOWN)
    assert files[4].read_text() == result.out
    assert sorted(path.name for path in files[0].parent.iterdir()) == sorted(file.name for file in files)


def test_caption_obeys_format_before_suffix(longtake: Run, film: Path, tmp_path: Path) -> None:
    longtake("caption", film, "--format", "json", "-o", tmp_path / "events.out")
    assert json.loads((tmp_path / "events.out").read_text())["results"]["street"]


def test_caption_is_silent_when_quiet_with_a_file(longtake: Run, film: Path, tmp_path: Path) -> None:
    assert longtake("caption", film, "-q", "-o", tmp_path / "a.json") == (0, "", "")


def test_caption_command_knows_the_formats_and_policies_of_the_library() -> None:
    from typing import get_args

    from longtake.video import OnLag as LibraryOnLag

    assert tuple(one.value for one in Format) == FORMATS
    assert tuple(one.value for one in OnLag) == get_args(LibraryOnLag)


def test_caption_goes_on_when_one_source_fails_and_leaves_it_out(longtake: Run, film: Path, tmp_path: Path) -> None:
    write_film(tmp_path / "b.mp4", OTHER)
    result = longtake("caption", film, tmp_path / "missing.mp4", tmp_path / "b.mp4", "-o", tmp_path / "out.json")
    assert result.status == 1
    assert [line for line in result.err.splitlines() if "seen" not in line] == [
        f"longtake: {tmp_path}/missing.mp4: no such file; check the path"
    ]
    assert result.out.startswith("# street\n0:00.00")
    results = json.loads((tmp_path / "out.json").read_text())["results"]
    assert list(results) == ["street", "b"]
    assert len(results["b"]) == len(expected_events(OTHER))


def test_caption_keeps_videos_of_one_name_apart(longtake: Run, film: Path, tmp_path: Path) -> None:
    write_film(tmp_path / "street.mp4", OTHER)
    result = longtake("caption", film, tmp_path / "street.mp4", film, "--format", "json")
    assert list(json.loads(result.out)["results"]) == [str(film), f"{tmp_path}/street.mp4", f"{film}-2"]


def test_caption_takes_the_videos_in_a_folder_one_by_one(longtake: Run, tmp_path: Path) -> None:
    write_film(tmp_path / "b.mp4", OTHER)
    write_film(tmp_path / "a.mkv", SHOWN)
    (tmp_path / "notes.txt").write_text("not a video")
    result = longtake("caption", tmp_path, "--format", "json")
    assert list(json.loads(result.out)["results"]) == ["a", "b"]


def test_caption_takes_a_folder_of_images_as_one_video(longtake: Run, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    for index, letter in enumerate("r" * 30 + "g" * 40 + "b" * 20):
        Image.new("RGB", (20, 20), PAINT[letter]).save(folder / f"{index:03}.png")
    result = longtake("caption", folder, "--format", "jsonl")
    assert [json.loads(line)["sentence"] for line in result.out.splitlines()] == ["red", "green"]
    assert {json.loads(line)["video"] for line in result.out.splitlines()} == {"images"}


def test_caption_reads_a_film_shorter_than_a_segment(longtake: Run, tmp_path: Path) -> None:
    result = longtake("caption", write_film(tmp_path / "short.mp4", "rg"))
    assert result.status == 0
    assert result.out == "0:00.00-0:00.25  red\n"


def test_caption_takes_names_in_any_script(longtake: Run, tmp_path: Path) -> None:
    result = longtake("caption", write_film(tmp_path / "été 図 100%.mp4", SHOWN), "-o", tmp_path / "ø.json")
    assert result.status == 0
    assert list(json.loads((tmp_path / "ø.json").read_text())["results"]) == ["été 図 100%"]


def test_caption_says_once_that_the_input_looks_unfamiliar(longtake: Run, tmp_path: Path) -> None:
    result = longtake("caption", write_film(tmp_path / "grey.mp4", "xxxxrrrrxxxxrrrr"))
    assert result.status == 0
    assert result.err.count("longtake: WARNING: grey: the picture is grey") == 1


def test_caption_draws_the_timeline(longtake: Run, film: Path, tmp_path: Path) -> None:
    assert longtake("caption", film, "--timeline", tmp_path / "time.png").status == 0
    with av.open(str(tmp_path / "time.png")) as picture:
        pixels = next(picture.decode(video=0)).to_ndarray(format="rgb24")
    assert pixels.shape[1] > 1000
    bars = (pixels.astype(int) - (229, 72, 77)).__abs__().max(axis=2) < 8
    assert bars.sum() > 1000, "the red events have red bars"


def test_caption_samples_at_another_rate_if_the_model_allows_it(longtake: Run, film: Path) -> None:
    result = longtake("caption", film, "--fps", "8", "--format", "jsonl")
    assert told(result.out) == expected_events(SHOWN)


# --- what can be wrong: one line, exit 1 or 2, nothing half written


def make_text(path: Path) -> Path:
    path.write_text("this is no video\n" * 100)
    return path


def make_empty(path: Path) -> Path:
    path.write_bytes(b"")
    return path


def make_sound(path: Path) -> Path:
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(16000))
    return path


def make_cut(path: Path) -> Path:
    whole = write_film(path, SHOWN).read_bytes()
    path.write_bytes(whole[: len(whole) // 3])
    return path


def make_folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("make", [lambda path: path, make_text, make_empty, make_sound, make_cut, make_folder])
def test_caption_says_in_one_line_what_is_wrong_with_a_source(
    longtake: Run, tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    source = make(tmp_path / "film.mp4")
    before = set(tmp_path.iterdir())
    result = longtake(
        "caption", source, "-o", tmp_path / "o.json", "--save", tmp_path / "s", "--timeline", tmp_path / "t.png"
    )
    assert (result.status, result.out) == (1, "")
    assert re.fullmatch(r"longtake: .*film\.mp4: .+\n", result.err), result.err
    assert set(tmp_path.iterdir()) == before


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder the command runs in; it holds a text named file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a text")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["-o", "out.csv"], 1, "out.csv ends in .csv, expected one of .txt .jsonl .json .srt .vtt"),
        (["-o", "file/below.json"], 1, "cannot write file/below.json"),
        (["--format", "srt", "-o", "."], 1, "cannot write .: Is a directory"),
        (["--save", "file/below"], 1, "cannot write file/below"),
        (["--timeline", "file/below.png"], 1, "cannot write file/below.png"),
        (["--timeline", "picture.doc"], 1, "picture.doc is no name for a picture"),
        (["--resume", "missing"], 1, "no state file missing"),
        (["--resume", "file"], 1, "file is not a state file"),
        (["--fps", "30"], 1, "sampling rate is 30 fps, Colours runs at 1 to 8 fps"),
        (["--fps", "0"], 2, "--fps"),
        (["--format", "mp3"], 2, "mp3"),
        (["--on-lag", "hope"], 2, "hope"),
        (["--no-such-option"], 2, "no-such-option"),
        (["-o", "-"], 2, "leave -o out"),
        (["-o", "a.json", "-o", "./a.json"], 2, "given twice"),
        (["-o", "a.json", "--save", "a.json"], 2, "given twice"),
    ],
)
def test_caption_refuses_options_that_cannot_work(
    longtake: Run, film: Path, folder: Path, arguments: list[str], status: int, message: str
) -> None:
    result = longtake("caption", film, *arguments)
    assert (result.status, result.out) == (status, "")
    assert message in result.err
    assert status == 2 or result.err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_caption_never_writes_over_its_source(longtake: Run, tmp_path: Path) -> None:
    film = write_film(tmp_path / "film.mp4", SHOWN)
    before = film.read_bytes()
    assert longtake("caption", film, "--format", "json", "-o", film).status == 2
    assert film.read_bytes() == before


@pytest.mark.parametrize("option", ["--save", "--resume", "--timeline"])
def test_caption_refuses_what_is_for_one_source_when_there_are_two(longtake: Run, film: Path, option: str) -> None:
    result = longtake("caption", film, "b.mp4", option, "x.png")
    assert result.status == 2
    assert f"{option} is for one source, got 2" in result.err


def test_caption_refuses_subtitles_of_two_videos(longtake: Run, film: Path, tmp_path: Path) -> None:
    result = longtake("caption", film, "b.mp4", "-o", tmp_path / "a.srt")
    assert (result.status, result.out) == (1, "")
    assert result.err == "longtake: srt holds one video, got 2; write json or jsonl, or run one by one\n"


def test_caption_without_a_source_is_wrong_usage(longtake: Run) -> None:
    assert longtake("caption").status == 2


def test_caption_refuses_a_model_that_is_not_there(film: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from longtake.cli.app import run

    assert run(["caption", str(film), "--model", "toybox-stz"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert re.fullmatch(r"longtake: no model 'toybox-stz'.*\n", err)


class Talker(Colours):
    """Says no events."""

    supports = Colours.supports - {next(kind for kind in Colours.supports if kind.__name__ == "Caption")}


def test_caption_refuses_a_model_that_says_no_events(longtake: Run, film: Path) -> None:
    result = longtake("caption", film, model=Talker())
    assert (result.status, result.out) == (1, "")
    assert result.err == "longtake: Talker says no events (Caption), only answers; load another model\n"

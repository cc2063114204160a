"""Studies: rows differ in what they say, are trained once, go on after a kill, and end in a table."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from longtake.cli.app import run
from longtake.config import load_recipe
from longtake.errors import ConfigError
from longtake.hub import bundled
from longtake.train.run import build_run
from longtake.train.study import SCORES, Study, StudyRow, run_study, table, write_table
from longtake.train.study_picture import lines

ROOT = Path(__file__).resolve().parents[2]
TEXT = """
name = "tiny"
title = "Carry or not"
source = "ours"
[recipe]
workers = 0
evaluate_videos = 1
save_seconds = 0.0
frames_per_video = 8
[recipe.model]
size = 16
encoder = { dim = 16, stem_dim = 8, depth = 1 }
bottleneck = { num_tokens = 3, dim = 16, num_heads = 2 }
decoder = { dim = 16, num_layers = 1, num_heads = 2, mlp_dim = 32, max_tokens = 12 }
[[recipe.stages]]
name = "tell"
data = "videos"
steps = 3
batch_size = 1
encoder_scale = 0.0
[[rows]]
name = "With carry"
recipe.model.stack = { num_layers = 1, state = 4 }
[[rows]]
name = "Without"
recipe.model.stack = { num_layers = 1, state = 4, carry = false }
"""
SDC_ROW = """
[[rows]]
name = "Streaming DVC"
recipe.method = "sdc"
recipe.model.memory.size = 9
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TEXT)
    return path


def test_rows_share_the_recipe_and_say_where_they_differ(path: Path) -> None:
    study = load_recipe(path, Study)
    carries, resets = (study.recipe_of(row) for row in study.rows)
    assert "carry" not in carries.model["stack"]
    assert resets.model["stack"] == {"num_layers": 1, "state": 4, "carry": False}
    assert (carries.name, resets.name) == ("tiny-with-carry", "tiny-without")


def test_killed_study_goes_on_and_trains_nothing_twice(path: Path, tmp_path: Path) -> None:
    study = load_recipe(path, Study)
    steps = []
    for progress in run_study(study, tmp_path / "out"):
        steps.append((progress.number, progress.run.step))
        if steps[-1] == (2, 1):
            break
    assert list(table(study, tmp_path / "out")) == ["With carry"]
    steps += [(progress.number, progress.run.step) for progress in run_study(study, tmp_path / "out")]
    assert steps == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert not list(run_study(study, tmp_path / "out"))
    rows = table(study, tmp_path / "out")
    write_table(study, rows, tmp_path / "out")
    with (tmp_path / "out" / "tiny.csv").open() as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["row", *SCORES]
    assert [line[0] for line in lines[1:]] == ["With carry", "Without"]
    assert (tmp_path / "out" / "tiny.png").stat().st_size > 1000


def test_command_runs_a_study_and_prints_its_table(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(TEXT + SDC_ROW)
    assert run(["report", "toybox", "--study", str(path), "-o", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = told["studies"]["tiny"]
    assert list(found) == ["With carry", "Without", "Streaming DVC"]
    assert set(found["Without"]) == set(found["Streaming DVC"]) == set(SCORES)
    assert run(["report", "toybox", "--study", str(path), "-o", str(tmp_path / "out"), "--no-run"]) == 0
    shown = capsys.readouterr().out
    assert "Carry or not" in shown
    assert "not run" not in shown
    assert told["page"] == str(tmp_path / "out" / "report.html")


def test_page_has_ours_beside_the_papers_and_says_what_was_not_run(path: Path, tmp_path: Path) -> None:
    path.write_text(TEXT.replace('name = "Without"', 'name = "Without"\npaper = { CIDEr = 12.5 }'))
    out = tmp_path / "out"
    (out / "bounded").mkdir(parents=True)
    (out / "bounded" / "bounded.json").write_text('{"command": "longtake report bounded --videos 2"}')
    (out / "bounded" / "bounded.md").write_text("Right answers of bounded ones.\n")
    assert run(["report", "toybox", "--study", str(path), "-o", str(out), "--no-run"]) == 0
    page = (out / "report.html").read_text()
    assert page.count("not run") == 2 * len(SCORES)
    assert "paper: CIDEr" in page
    assert "12.5" in page
    assert f"--study {path}" in page
    assert "seed 0" in page
    assert "Right answers of bounded ones." in page
    assert "longtake report bounded --videos 2 -o" in page


@pytest.mark.parametrize("content", ["{", "[]", '{"videos": 2}'])
def test_a_damaged_report_is_named(
    path: Path, tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out" / "bounded"
    folder.mkdir(parents=True)
    (folder / "bounded.json").write_text(content)
    (folder / "bounded.md").write_text("Right answers of bounded ones.\n")
    assert run(["report", "toybox", "--study", str(path), "-o", str(folder.parent), "--no-run"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(folder) in line


def test_rows_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="different names"):
        Study(name="x", title="x", source="x", recipe={}, rows=(StudyRow(name="a b"), StudyRow(name="A-b")))


def test_a_wrong_row_is_refused_before_any_row_is_trained(path: Path, tmp_path: Path) -> None:
    path.write_text(TEXT.replace("carry = false", "carries = false"))
    with pytest.raises(ConfigError, match="carries"):
        next(run_study(load_recipe(path, Study), tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("path", sorted((ROOT / "recipes" / "studies").rglob("*.toml")), ids=lambda path: path.stem)
def test_every_study_in_the_repository_builds(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    study = load_recipe(path, Study)
    for row in study.rows:
        recipe = study.recipe_of(row)
        if recipe.start_from not in bundled():  # a run that comes first
            recipe = replace(recipe, start_from="")
        assert build_run(recipe, tmp_path / "run").objective.model.config.fps > 0  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]


LINES = """
name = "frames"
title = "Frames"
source = "ours"
along = "frames of a video"
[columns]
classes_4 = "4"
classes_8 = "8"
[costs]
gflops = "GFLOPs of a video"
[recipe]
method = "mcvit"
workers = 0
evaluate_videos = 2
evaluate_frames = [4, 8]
looks_after = 1
[recipe.model]
num_frames = 4
[recipe.model.encoder]
dim = 16
num_layers = 2
num_heads = 2
mlp_dim = 32
tubelet = { size = 16, patch = 4, position_frames = 4 }
[recipe.model.memory]
size = 5
segments = 3
[[recipe.stages]]
name = "routines"
data = "videos"
steps = 1
batch_size = 2
max_frames = 8
min_frames = 8
[[rows]]
name = "st"
recipe.model.memory.variant = "st"
[[rows]]
name = "joint, 1"
line = "joint"
at = 1
recipe.model.memory.variant = "joint"
"""


def test_lines_lie_along_heads_that_are_numbers_and_over_costs(tmp_path: Path) -> None:
    path = tmp_path / "frames.toml"
    path.write_text(LINES)
    study, out = load_recipe(path, Study), tmp_path / "out"
    assert len(list(run_study(study, out))) == 2
    rows = table(study, out)
    write_table(study, rows, out)
    with (out / "frames.csv").open() as file:
        assert next(csv.reader(file)) == ["row", "classes_4", "classes_8", "gflops_4", "gflops_8"]
    found = lines(study, rows)
    assert [point.along for point in found["st"]] == [4.0, 8.0]
    assert [point.along for point in found["joint"]] == [1.0, 1.0]
    assert rows["st"]["gflops_8"] == pytest.approx(2 * rows["st"]["gflops_4"])
    assert rows["joint, 1"]["gflops_8"] > 2 * rows["joint, 1"]["gflops_4"]
    assert (out / "frames.png").stat().st_size > 1000

"""``longtake embed`` on real films: one vector or one for each stretch, several sources, and what can be wrong."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.conftest import Result
from tests.e2e.films import write_film
from tests.e2e.vlm_command import SHOWN, start

import longtake as lt

Run = Callable[..., Result]
DEMO = Path(__file__).resolve().parents[2] / "assets" / "demo.mp4"
KEYS = ["video", "start", "end", "embedding"]


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_film(tmp_path_factory.mktemp("films") / "street.mp4", SHOWN)


def read(content: Path | bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(content) if isinstance(content, bytes) else content, allow_pickle=False) as found:
        return dict(found)


def test_whole_video_is_one_vector(command: Run, film: Path, tiny_mcvit: Path, tmp_path: Path) -> None:
    result = command("embed", film, "-o", tmp_path / "new" / "vectors.npz", "--model", tiny_mcvit)
    assert (result.status, result.out) == (0, "")
    found = read(tmp_path / "new" / "vectors.npz")
    assert list(found) == KEYS
    assert (found["video"].tolist(), found["start"].tolist(), found["end"].tolist()) == (["street"], [0.0], [12.0])
    session: lt.Session[Any] = lt.Session(lt.load(tiny_mcvit, device="cpu"))
    for _ in session.watch(film):
        pass
    np.testing.assert_allclose(found["embedding"][0], session.embed().vector.numpy(), rtol=1e-5, atol=1e-6)
    assert "1 vectors of 1 videos" in result.err


def test_stretches_follow_each_other_and_keep_the_past(
    command: Run, film: Path, tiny_mcvit: Path, linear_mcvit: Path, tmp_path: Path
) -> None:
    """With a linear head vectors are as they are: those of the stretches, weighted, make that of the whole."""
    command("embed", film, "-o", tmp_path / "parts.npz", "--every", "5", "--model", linear_mcvit)
    command("embed", film, "-o", tmp_path / "whole.npz", "--model", linear_mcvit)
    parts, whole = read(tmp_path / "parts.npz"), read(tmp_path / "whole.npz")
    assert parts["start"].tolist() == [0.0, 5.0, 10.0]
    assert parts["end"].tolist() == [5.0, 10.0, 12.0]
    weighted = np.average(parts["embedding"], axis=0, weights=parts["end"] - parts["start"])
    np.testing.assert_allclose(weighted, whole["embedding"][0], rtol=1e-4, atol=1e-5)
    command(
        "embed",
        film,
        "-o",
        tmp_path / "alone.npz",
        "--every",
        "5",
        "--model",
        linear_mcvit,
        "--set",
        "memory.variant=st",
    )
    alone = read(tmp_path / "alone.npz")
    assert not np.allclose(alone["embedding"][1], parts["embedding"][1]), "the past is in memory"


def test_stretches_shorter_than_a_segment_are_segments(
    command: Run, film: Path, tiny_mcvit: Path, tmp_path: Path
) -> None:
    command("embed", film, "-o", tmp_path / "v.npz", "--every", "0.1", "--model", tiny_mcvit)
    assert read(tmp_path / "v.npz")["end"].tolist() == [float(second) for second in range(1, 13)]


def test_damaged_source_is_named_and_the_others_are_kept(
    command: Run, film: Path, tiny_mcvit: Path, tmp_path: Path
) -> None:
    (tmp_path / "torn.mp4").write_bytes(film.read_bytes()[:2000])
    result = command("embed", film, tmp_path / "torn.mp4", DEMO, "-o", tmp_path / "v.npz", "--model", tiny_mcvit)
    assert result.status == 1
    assert sum("torn.mp4" in line for line in result.err.splitlines()) == 1
    assert read(tmp_path / "v.npz")["video"].tolist() == ["street", "demo"]


def test_nothing_is_written_where_no_source_came_through(command: Run, tiny_mcvit: Path, tmp_path: Path) -> None:
    result = command("embed", tmp_path / "none.mp4", "-o", tmp_path / "v.npz", "--model", tiny_mcvit)
    assert result.status == 1
    assert list(tmp_path.iterdir()) == []


def test_without_a_file_the_npz_goes_to_stdout(film: Path, tiny_mcvit: Path) -> None:
    with start("embed", film, "--model", tiny_mcvit, "--quiet", text=False) as process:
        out, errors = process.communicate()
    assert (process.returncode, errors) == (0, b"")
    assert list(read(out)) == KEYS


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["-o", "vectors.npy"], 2, "does not end in .npz"),
        (["-o", "file/below.npz"], 1, "cannot write file/below.npz"),
        (["-o", "v.npz", "--every", "0"], 2, "--every is '0', expected 0.001 or more"),
        (["-o", "v.npz", "--every", "5", "--set", "memory.variant=joint"], 1, "sees a video as a whole"),
        (["-o", "v.npz", "--model", "toybox-sts"], 1, "toybox-sts is a STS and gives no vectors"),
    ],
)
def test_what_cannot_work_is_told_in_one_line(
    command: Run,
    film: Path,
    tiny_mcvit: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    status: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a text")
    model = [] if "--model" in arguments else ["--model", tiny_mcvit]
    result = command("embed", film, *model, *arguments)
    assert (result.status, result.out) == (status, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_vectors_are_not_written_over_a_source(command: Run, tiny_mcvit: Path, tmp_path: Path) -> None:
    film = write_film(tmp_path / "film.mp4", "rrgg").rename(tmp_path / "film.npz")
    before = film.read_bytes()
    assert command("embed", film, "-o", film, "--model", tiny_mcvit).status == 2
    assert film.read_bytes() == before

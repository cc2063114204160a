"""A StateKV stream in each tier: answers, limits, snapshots, a killed process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.methods.statekv_models import QUESTION, answered, heard, segments, statekv, watched

from longtake.errors import CapacityError, ConfigError, StateError
from longtake.methods.statekv_config import StateKVConfig
from longtake.session import Session
from longtake.state.pages import PAGE_CHUNKS
from longtake.state.tree import map_tensors, num_bytes

ROOT = Path(__file__).resolve().parents[2]
LONG = PAGE_CHUNKS + 6
TIERS = ("memory", "int8", "disk")


@pytest.mark.parametrize("policy", ["statekv", "full"])
@pytest.mark.parametrize("tier", TIERS)
def test_size_stays_within_what_is_promised(tier: str, policy: str) -> None:
    model = statekv(detailed=tier, policy=policy, answer="bounded", detailed_bytes=400_000)
    session: Session[Any] = Session(model)
    with pytest.raises(CapacityError, match="detailed_bytes allows 400000"):
        list(session.follow(segments(model, 300)))
    state = session.state
    assert 390_000 < state.kv.detailed.stored_bytes <= 400_000
    assert num_bytes(state) <= model.max_state_bytes()
    walked: dict[int, int] = {}
    map_tensors(state, lambda part: (walked.update({part.untyped_storage().data_ptr(): part.nbytes}), part)[1])
    assert num_bytes(state) == sum(walked.values())
    assert answered(model, state), "nothing was lost"


def test_disk_matches_memory() -> None:
    stream, ends = segments(statekv(), LONG), {}
    for tier in ("memory", "disk"):
        model = statekv(detailed=tier)
        state = watched(model, stream)
        ends[tier] = heard(model, state), answered(model, state, QUESTION, "and then?")
    assert torch.equal(ends["memory"][0], ends["disk"][0])
    assert ends["memory"][1] == ends["disk"][1]


@pytest.mark.parametrize("name", ["qwen3-vl", "internvl3"])
def test_8_bits_change_logits_little(name: str) -> None:
    """Measured, root mean square over the logits' standard deviation: 0.005 (Qwen3-VL, whose keys are normalised) and
    0.035; Kullback-Leibler divergence of the next word 3e-5 and 2e-3. Prefill is not touched at all."""
    small, exact = statekv(name, detailed="int8"), statekv(name)
    stream = segments(exact, LONG)
    one, other = watched(small, stream), watched(exact, stream)
    assert torch.equal(one.kv.carried.keys, other.kv.carried.keys)
    expected = heard(exact, other)
    difference = float((heard(small, one) - expected).square().mean().sqrt() / expected.std())
    assert 0 < difference < {"qwen3-vl": 0.01, "internvl3": 0.05}[name]
    assert one.kv.detailed.num_bytes < 0.4 * other.kv.detailed.num_bytes


@pytest.mark.parametrize("tier", TIERS)
def test_session_resumes_in_every_tier(tier: str, tmp_path: Path) -> None:
    model = statekv(detailed=tier, answer="bounded", answer_chunks=4)
    stream = segments(model, LONG + 4)
    session: Session[Any] = Session(model)
    list(session.follow(stream[:LONG]))
    session.save(tmp_path / "state")
    resumed: Session[Any] = Session.resume(model, tmp_path / "state")
    assert resumed.progress.state_bytes == session.progress.state_bytes
    assert resumed.ask(QUESTION) == session.ask(QUESTION)
    for one in (session, resumed):
        list(one.follow(stream[LONG:]))
    assert torch.equal(session.state.kv.carried.keys, resumed.state.kv.carried.keys)
    assert resumed.ask(QUESTION) == session.ask(QUESTION)


def test_more_room_can_be_given_on_resuming(tmp_path: Path) -> None:
    tight = statekv(detailed_bytes=200_000)
    stream = segments(tight, 300)
    session: Session[Any] = Session(tight)
    with pytest.raises(CapacityError):
        list(session.follow(stream))
    session.save(tmp_path / "state")
    resumed: Session[Any] = Session.resume(statekv(), tmp_path / "state")
    list(resumed.follow(stream[resumed.clock.num_segments :][:3]))
    assert resumed.ask(QUESTION).text
    with pytest.raises(StateError, match="was saved by model"):
        Session.resume(statekv(budget=23), tmp_path / "state")


VICTIM = """
import sys, time
from tests.methods.statekv_models import answered, segments, statekv
from longtake.session import Session
import json
folder, path = sys.argv[1] or None, sys.argv[2]
model = statekv(detailed="disk", detailed_folder=folder)
session = Session(model)
for number, segment in enumerate(segments(model, 400)):
    session.advance(segment)
    if number == {stop}:
        session.save(path)
        pages = [page.rows.path for page in session.state.kv.detailed.pages]
        print(json.dumps([session.ask({question!r}).text, pages]), flush=True)
"""


@pytest.mark.parametrize("mine", [False, True], ids=["temporary", "folder"])
def test_killed_process_resumes_identically(mine: bool, tmp_path: Path) -> None:
    """Killed in the midst of going on; its temporary files may be swept away, those in a folder of the user's stay."""
    folder, path = str(tmp_path / "pages") if mine else "", tmp_path / "state"
    code = VICTIM.format(stop=LONG - 1, question=QUESTION)
    command = [sys.executable, "-c", code, folder, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        text, pages = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    for page in pages if not mine else ():
        Path(page).unlink()
        Path(page).parent.rmdir() if not list(Path(page).parent.iterdir()) else None
    model = statekv(detailed="disk", detailed_folder=folder or None)
    resumed: Session[Any] = Session.resume(model, path)
    assert resumed.ask(QUESTION).text == text
    unbroken = watched(model, segments(model, LONG + 2))
    list(resumed.follow(segments(model, 2, first=LONG)))
    assert answered(model, resumed.state) == answered(model, unbroken)
    if mine:
        Path(pages[0]).unlink()
        with pytest.raises(StateError, match="put its folder back"):
            Session.resume(model, path)


WRITES_A_PAGE = """
import sys, torch
from longtake.state.disk import written
from longtake.state.rows import Rows
rows = written(Rows(keys=torch.zeros(1, 1, 1, 4), values=torch.zeros(1, 1, 1, 4)), None)
print(rows.path, flush=True)
"""


def test_temporary_folder_is_put_away_at_exit() -> None:
    done = subprocess.run([sys.executable, "-c", WRITES_A_PAGE], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not Path(done.stdout.strip()).parent.exists()


def test_leftovers_of_killed_processes_are_put_away_and_nothing_else(tmp_path: Path) -> None:
    """A folder of a living process stays, and one that nobody marked, whatever its name."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", WRITES_A_PAGE + "sys.stdin.read()"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    foreign = tmp_path / "longtake-detailed-foreign"
    foreign.mkdir()
    with (
        subprocess.Popen(command, env=environment, cwd=ROOT, **pipes) as dead,
        subprocess.Popen(command, env=environment, cwd=ROOT, **pipes) as alive,
    ):
        assert dead.stdout is not None
        assert alive.stdout is not None
        left, held = (Path(process.stdout.readline().strip()).parent for process in (dead, alive))  # type: ignore[union-attr]
        dead.kill()
        dead.wait()
        assert left.parent == tmp_path
        assert left.exists(), "a killed process puts nothing away"
        subprocess.run([sys.executable, "-c", WRITES_A_PAGE], env=environment, check=True, cwd=ROOT)
        assert sorted(tmp_path.iterdir()) == sorted([held, foreign])
        assert list(held.glob("page-*.kv"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"answer_chunks": 0}, "more than 0"),
        ({"detailed_folder": "/somewhere"}, "detailed = 'disk'"),
    ],
)
def test_wrong_choices_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        StateKVConfig(**wrong)

"""The bundled toybox-vlm: small enough, loaded by its name, and better at questions than their words alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from longtake import hub
from longtake.eval.ask import share, text_only_of_toybox
from longtake.eval.ask_data import open_recall
from longtake.eval.ask_run import ask_all, without_video
from longtake.eval.caption_data import render_toybox
from longtake.methods.statekv import StateKV

pytestmark = pytest.mark.skipif("toybox-vlm" not in hub.bundled(), reason="toybox-vlm is not in this checkout")


def test_questions_about_unseen_videos_are_answered_better_than_by_their_words(tmp_path: Path) -> None:
    model = hub.load("toybox-vlm")
    assert isinstance(model, StateKV)
    assert sum(tensor.numel() for tensor in model.family.model.parameters()) <= 12_000_000
    assert (hub.find("toybox-vlm") / "model.safetensors").stat().st_size <= 24_000_000
    render_toybox(tmp_path / "data", videos=4, seed=11, seconds=(60, 70))
    data = open_recall(tmp_path / "data")
    words = without_video(text_only_of_toybox(videos=100), data)
    assert share(ask_all(data, model)).accuracy > share(words).accuracy + 0.05

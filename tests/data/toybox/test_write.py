"""The mp4 holds what was drawn, at the times that were meant."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from longtake.data.toybox import Renderer, make_script
from longtake.data.toybox.write import write_video


def test_mp4_round_trip_keeps_times_and_pictures(tmp_path: Path) -> None:
    script = make_script(2, seconds=12.25)
    path = tmp_path / "video.mp4"
    write_video(script, path)
    renderer = Renderer(script)
    with av.open(str(path)) as container:
        (stream,) = container.streams
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"
        frames = list(container.decode(stream))
    assert [frame.pts * frame.time_base for frame in frames] == [index / 8 for index in range(98)]
    assert [index for index, frame in enumerate(frames) if frame.key_frame] == list(range(0, 98, 16))
    for index in (0, 41, 97):
        shown = frames[index].to_ndarray(format="rgb24").astype(float)
        assert np.abs(shown - renderer.frame(index / 8)).mean() < 6.0


def test_nothing_is_left_when_writing_is_interrupted(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        assert total == 80
        if done == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_video(make_script(2, seconds=10), tmp_path / "video.mp4", on_frame=stop)
    assert list(tmp_path.iterdir()) == []

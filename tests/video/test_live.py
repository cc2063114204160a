"""Live sources on the loopback: they go away, come back, fall silent, and outrun their consumer."""

from __future__ import annotations

import itertools
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.video.clips import make_video, number_of
from tests.video.servers import HttpFile, http_server, send, send_and_hang, send_paced, tcp_server

from longtake.errors import SourceError
from longtake.types import Frame, Segment, SegmentSpec
from longtake.video import OnLag, open_source, probe, segments
from longtake.video.address import parse_address
from longtake.video.lag import LagClock, StrideControl
from longtake.video.options import ReadOptions
from longtake.video.segments import SegmentStream

FFMPEG = shutil.which("ffmpeg")
SPEC = SegmentSpec(num_frames=5, fps=5, height=48, width=64)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Two seconds of MPEG-TS, 50 frames."""
    return make_video(tmp_path_factory.mktemp("live") / "a.ts", frames=50).read_bytes()


def numbers(cut: list[Segment]) -> list[int]:
    return [number_of(pixels.permute(1, 2, 0).numpy()) for segment in cut for pixels in segment.pixels]


def test_a_tcp_stream_is_live_and_read_to_its_end(stream: bytes) -> None:
    with tcp_server(send(stream)) as url, open_source(url, max_outage_seconds=0.1) as source:
        assert source.is_live
        frames = list(source)
    assert [number_of(frame.rgb) for frame in frames] == list(range(50))
    assert [frame.pts_seconds for frame in frames] == pytest.approx([number / 25 for number in range(50)])
    assert source.report.warnings == ()


def test_a_stream_that_comes_back_goes_on_with_the_gap_in_its_times(stream: bytes) -> None:
    with tcp_server(send(stream), send(stream)) as url, open_source(url, max_outage_seconds=0.1) as source:
        began = time.monotonic()
        frames = list(source)
        took = time.monotonic() - began
    times = [frame.pts_seconds for frame in frames]
    assert [number_of(frame.rgb) for frame in frames] == [*range(50), *range(50)]
    assert times == sorted(times)
    gap = times[50] - times[49]
    assert 0.2 < gap < took
    assert times[99] - times[50] == pytest.approx(49 / 25, abs=1e-3)
    assert any("came back" in line for line in source.report.warnings)
    assert source.report.frames == 100


def test_a_stream_cut_in_a_packet_comes_back(stream: bytes) -> None:
    torn = stream[: len(stream) * 2 // 3 + 77]
    with tcp_server(send(torn), send(stream)) as url, open_source(url, max_outage_seconds=0.1) as source:
        frames = list(source)
    assert [number_of(frame.rgb) for frame in frames[-50:]] == list(range(50))
    assert len(frames) > 60
    assert source.report.frames == len(frames)


def test_a_stream_that_falls_silent_is_connected_again(stream: bytes) -> None:
    released = threading.Event()
    with tcp_server(send_and_hang(stream, released), send(stream)) as url:
        threading.Timer(1.2, released.set).start()
        with open_source(url, timeout_seconds=0.5, max_outage_seconds=0.1) as source:
            frames = list(source)
    assert len(frames) > 90
    assert any("came back" in line for line in source.report.warnings)


def test_a_stream_that_breaks_off_for_good_is_an_error_after_its_frames(stream: bytes) -> None:
    released = threading.Event()
    with tcp_server(send_and_hang(stream, released)) as url:
        source = open_source(url, timeout_seconds=0.4, max_outage_seconds=0.1)
        seen: list[Frame] = []
        with source, pytest.raises(SourceError, match="not back within"):
            seen.extend(source)
        released.set()
    assert len(seen) > 40


def test_a_stream_that_never_begins_is_an_error_at_once() -> None:
    released = threading.Event()
    with tcp_server(send_and_hang(b"", released)) as url:
        with pytest.raises(SourceError, match=r"0\.3 s"):
            open_source(url, timeout_seconds=0.3)
        released.set()
    with pytest.raises(SourceError, match="connection refused"):
        open_source(url, timeout_seconds=5.0)


def test_segments_hold_over_a_short_outage(stream: bytes) -> None:
    with tcp_server(send(stream), send(stream)) as url, segments(url, SPEC, max_outage_seconds=0.1) as source:
        cut = list(source)
    assert all(a.end_seconds == b.start_seconds for a, b in itertools.pairwise(cut))
    assert numbers(cut)[:10] == list(range(0, 50, 5))
    times = [seconds for segment in cut for seconds in segment.pts_seconds]
    assert times == sorted(times)


def test_segments_leave_a_long_outage_out(stream: bytes) -> None:
    spec = SegmentSpec(num_frames=2, fps=20, height=48, width=64)
    with tcp_server(send(stream), send(stream)) as url, segments(url, spec, max_outage_seconds=0.1) as source:
        cut = list(source)
    jumps = [(a, b) for a, b in itertools.pairwise(cut) if a.end_seconds != b.start_seconds]
    assert len(jumps) == 1
    before, after = jumps[0]
    assert after.start_seconds - before.end_seconds > 0.05
    assert len(before.pts_seconds) == 2
    assert numbers([after])[0] <= 1, "begins with what came back"
    assert [segment.index for segment in cut] == list(range(len(cut)))


def test_http_is_live_only_on_request(stream: bytes) -> None:
    file = HttpFile(stream, has_ranges=False, has_length=False)
    with http_server(file) as url:
        with open_source(url) as source:
            assert not source.is_live
        with open_source(url, live=True, max_outage_seconds=0.0) as source:
            assert source.is_live
            frames = [frame for _, frame in zip(range(120), source, strict=False)]
    assert file.num_requests >= 3, "an answer that ended was asked for again"
    times = [frame.pts_seconds for frame in frames]
    assert len(times) == 120
    assert times == sorted(times)


def test_a_live_stream_resumed_counts_on_from_where_it_was(stream: bytes) -> None:
    with tcp_server(send(stream)) as url, segments(url, SPEC, start_seconds=30.0, max_outage_seconds=0.1) as source:
        cut = list(source)
    assert cut[0].start_seconds == pytest.approx(30.0)
    assert numbers(cut)[:3] == [0, 5, 10]


def test_probe_of_a_live_stream_ends(stream: bytes) -> None:
    released = threading.Event()
    with tcp_server(send_and_hang(stream * 8, released)) as url:
        report = probe(url, max_seconds=1.0)
        released.set()
    assert 25 <= report.frames <= 27


@pytest.fixture(scope="module")
def long_stream(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Twelve seconds of MPEG-TS, 300 frames."""
    return make_video(tmp_path_factory.mktemp("live") / "a.ts", frames=300).read_bytes()


QUICK = SegmentSpec(num_frames=5, fps=25, height=48, width=64)


def lagging(url: str, on_lag: OnLag) -> SegmentStream:
    return segments(url, QUICK, on_lag=on_lag, max_outage_seconds=0.1)


def test_wait_takes_every_frame_of_a_stream_that_is_too_fast(long_stream: bytes) -> None:
    with tcp_server(send(long_stream)) as url, lagging(url, "wait") as source:
        cut = list(source)
    assert numbers(cut) == list(range(300))
    assert source.dropped_frames == 0


def test_drop_leaves_segments_out_and_counts_them(long_stream: bytes) -> None:
    with tcp_server(send(long_stream)) as url, lagging(url, "drop") as source:
        cut = [next(source)]
        while source.dropped_frames < 100:
            time.sleep(0.01)
        cut += list(source)
    taken = numbers(cut)
    assert len(taken) + source.dropped_frames == 300
    assert taken == sorted(set(taken))
    assert taken[-1] == 299, "the newest is kept"
    assert all(len(segment.pts_seconds) == 5 for segment in cut)
    assert any(b.start_seconds > a.end_seconds for a, b in itertools.pairwise(cut))


def test_stride_spreads_the_frames_of_a_segment_and_counts_the_rest(long_stream: bytes) -> None:
    released = threading.Event()
    with tcp_server(send_paced(long_stream, 1.0, released=released)) as url, lagging(url, "stride") as source:
        source._clock.arrived(3600.0)  # the wall clock says that an hour has gone by
        cut = list(source)
    taken = numbers(cut)
    steps = {b - a for segment in cut for a, b in itertools.pairwise(numbers([segment]))}
    assert {4, 8} <= steps <= {1, 2, 4, 8}
    assert len(taken) + source.dropped_frames == 300
    assert all(a.end_seconds == pytest.approx(b.start_seconds) for a, b in itertools.pairwise(cut))


def test_lag_is_the_time_not_yet_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    clock = LagClock()
    assert clock.lag_seconds == 0.0
    clock.arrived(0.0)
    now = 103.0
    assert clock.lag_seconds == pytest.approx(3.0)
    clock.arrived(5.0)  # a burst of stored frames: the source is further than the wall clock
    assert clock.lag_seconds == pytest.approx(5.0)
    clock.taken(4.0)
    assert clock.lag_seconds == pytest.approx(1.0)
    clock.taken(9.0)
    assert clock.lag_seconds == 0.0


def test_stride_grows_with_the_lag_and_falls_back() -> None:
    control = StrideControl(1.0)
    seen = []
    for lag in (0.5, 2.5, 5.0, 9.0, 100.0, 0.5, 0.5, 0.5, 0.5):
        control.adapt(lag)
        seen.append(control.stride)
    assert seen == [1, 2, 4, 8, 8, 4, 2, 1, 1]


def test_udp_packets_are_read(stream: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe_socket:
        probe_socket.bind(("127.0.0.1", 0))
        port = probe_socket.getsockname()[1]
    stop = threading.Event()

    def talk() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while not stop.is_set():
                for place in range(0, len(stream), 188 * 7):
                    sender.sendto(stream[place : place + 188 * 7], ("127.0.0.1", port))
                    stop.wait(0.005)

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    try:
        with open_source(f"udp://127.0.0.1:{port}") as source:
            frames = [frame for _, frame in zip(range(60), source, strict=False)]
    finally:
        stop.set()
        thread.join()
    times = [frame.pts_seconds for frame in frames]
    assert times == sorted(times)
    assert len(times) == 60


@pytest.fixture
def rtsp(tmp_path: Path) -> Iterator[str]:
    """Address to which ffmpeg sends a video by RTSP again and again, until it is listened to."""
    if FFMPEG is None:
        pytest.skip("no ffmpeg program here to send RTSP (apt install ffmpeg)")
    path = make_video(tmp_path / "a.mp4", frames=100)
    with socket.socket() as probe_socket:
        probe_socket.bind(("127.0.0.1", 0))
        url = f"rtsp://127.0.0.1:{probe_socket.getsockname()[1]}/live"
    command = [FFMPEG, "-v", "quiet", "-nostdin", "-re", "-i", str(path), "-c", "copy", "-f", "rtsp"]
    stop = threading.Event()

    def talk() -> None:
        while not stop.is_set():
            subprocess.run([*command, "-rtsp_transport", "tcp", url], check=False, timeout=60)
            stop.wait(0.1)

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    yield url
    stop.set()
    thread.join()


def test_rtsp_is_read_live(rtsp: str) -> None:
    address = parse_address(rtsp)
    assert address.is_live
    listening = replace(address, options=address.options | {"rtsp_flags": "listen", "listen_timeout": "20"})
    options = ReadOptions(max_outage_seconds=0.0, timeout_seconds=20.0)
    with SegmentStream(listening, SPEC, options) as source:
        cut = [segment for _, segment in zip(range(3), source, strict=False)]
        assert source.is_live
        assert source.lag_seconds >= 0
    taken = numbers(cut)
    assert len(taken) == 15
    assert [b - a for a, b in itertools.pairwise(taken)] == [5] * 14
    assert all(a.end_seconds == b.start_seconds for a, b in itertools.pairwise(cut))

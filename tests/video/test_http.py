"""Video over HTTP from a real server: whole, cut off, silent, refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.video.clips import make_video, number_of
from tests.video.servers import HttpFile, http_server

from longtake.errors import SourceError
from longtake.types import SegmentSpec
from longtake.video import open_source, probe, segments

FRAMES = 200
SPEC = SegmentSpec(num_frames=4, fps=5, height=48, width=64)


@pytest.fixture(scope="module")
def mp4(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An MP4 with its index in front."""
    path = tmp_path_factory.mktemp("http") / "a.mp4"
    options = {"x264-params": "qp=1:slices=4"}
    return make_video(
        path, frames=FRAMES, options=options, size=(256, 192), container_options={"movflags": "faststart"}
    ).read_bytes()


@pytest.fixture(scope="module")
def index_last(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An MP4 with its index at the end."""
    return make_video(tmp_path_factory.mktemp("http") / "a.mp4", frames=FRAMES).read_bytes()


@pytest.mark.parametrize("has_ranges", [True, False])
@pytest.mark.parametrize("has_length", [True, False])
def test_a_whole_answer_gives_every_frame(mp4: bytes, has_ranges: bool, has_length: bool) -> None:
    with http_server(HttpFile(mp4, has_ranges=has_ranges, has_length=has_length)) as url:
        with open_source(url) as source:
            assert not source.is_live
            assert [number_of(frame.rgb) for frame in source] == list(range(FRAMES))
        report = source.report
    assert (report.frames, report.warnings) == (FRAMES, ())


@pytest.mark.parametrize("has_ranges", [True, False])
def test_an_index_at_the_end_is_found(index_last: bytes, has_ranges: bool) -> None:
    with http_server(HttpFile(index_last, has_ranges=has_ranges)) as url:
        assert probe(url).frames == FRAMES


def test_segments_over_http_resume_like_those_of_a_file(mp4: bytes) -> None:
    with http_server(HttpFile(mp4)) as url, segments(url, SPEC, start_seconds=4.0) as stream:
        cut = list(stream)
    numbers = [number_of(pixels.permute(1, 2, 0).numpy()) for segment in cut for pixels in segment.pixels]
    assert numbers == list(range(100, 200, 5))


def test_a_cut_connection_goes_on_where_the_server_has_ranges(mp4: bytes) -> None:
    file = HttpFile(mp4, cut_after=len(mp4) * 2 // 3)
    with http_server(file) as url:
        report = probe(url)
    assert (report.frames, report.warnings) == (FRAMES, ())
    assert file.num_requests > 1


def test_a_cut_connection_gives_what_came_and_says_so(mp4: bytes) -> None:
    with http_server(HttpFile(mp4, has_ranges=False, cut_after=len(mp4) // 2)) as url:
        report = probe(url)
    assert 0 < report.frames < FRAMES
    assert report.lost_frames == FRAMES - report.frames
    assert any("cut off" in line for line in report.warnings)


@pytest.mark.parametrize("share", [0, 2])
def test_a_silent_server_is_an_error_within_the_timeout(mp4: bytes, share: int) -> None:
    file = HttpFile(mp4, has_ranges=False, hang_after=len(mp4) * share // 3 or 1)
    with http_server(file) as url, pytest.raises(SourceError, match=r"0\.5 s"):
        list(open_source(url, timeout_seconds=0.5))


@pytest.mark.parametrize(("status", "says"), [(404, "404"), (403, "403"), (503, "5XX|503")])
def test_a_refusal_is_an_error_with_the_reason(status: int, says: str) -> None:
    with http_server(HttpFile(b"", status=status)) as url, pytest.raises(SourceError, match=says):
        open_source(url)


def test_a_page_instead_of_a_video_is_an_error() -> None:
    file = HttpFile(b"<!doctype html><html><body>Please log in</body></html>", content_type="text/html")
    with http_server(file) as url, pytest.raises(SourceError, match="not a video"):
        open_source(url)


def test_nobody_there_is_an_error() -> None:
    with http_server(HttpFile(b"")) as url:
        pass
    with pytest.raises(SourceError, match="connection refused"):
        open_source(url)


def test_a_password_in_the_address_is_not_shown() -> None:
    with http_server(HttpFile(b"")) as url:
        pass
    with pytest.raises(SourceError) as caught:
        open_source(url.replace("//", "//user:secret@"))
    assert "secret" not in str(caught.value)


def test_encryption_is_seen_over_http(tmp_path: Path) -> None:
    path = make_video(
        tmp_path / "a.mp4",
        container_options={
            "encryption_scheme": "cenc-aes-ctr",
            "encryption_key": "0123456789abcdef0123456789abcdef",
            "encryption_kid": "fedcba9876543210fedcba9876543210",
        },
    )
    with http_server(HttpFile(path.read_bytes())) as url, pytest.raises(SourceError, match="encrypted"):
        list(open_source(url))
    with pytest.raises(SourceError, match="encrypted"):
        open_source(path)

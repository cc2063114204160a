"""Pictures come out upright, in the size asked for, with their proportions."""

from __future__ import annotations

import numpy as np
import pytest
from av.video.frame import VideoFrame
from hypothesis import given
from hypothesis import strategies as st

from longtake.video.picture import UPRIGHT, Orientation, PictureConverter, fit, orientation_of_matrix, upright

ONE = 1 << 16
CORNERS = np.array([[[1, 0, 0], [2, 0, 0], [3, 0, 0]], [[4, 0, 0], [5, 0, 0], [6, 0, 0]]], np.uint8)
"""Two rows of three pixels."""


def matrix(a: int, b: int, c: int, d: int) -> tuple[int, ...]:
    return (a * ONE, b * ONE, 0, c * ONE, d * ONE, 0, 0, 0, 1 << 30)


@pytest.mark.parametrize(
    ("entries", "degrees", "mirrored", "expected"),
    [
        ((1, 0, 0, 1), 0, False, [[1, 2, 3], [4, 5, 6]]),
        ((0, 1, -1, 0), 90, False, [[4, 1], [5, 2], [6, 3]]),
        ((-1, 0, 0, -1), 180, False, [[6, 5, 4], [3, 2, 1]]),
        ((0, -1, 1, 0), 270, False, [[3, 6], [2, 5], [1, 4]]),
        ((-1, 0, 0, 1), 0, True, [[3, 2, 1], [6, 5, 4]]),
        ((1, 0, 0, -1), 180, True, [[4, 5, 6], [1, 2, 3]]),
    ],
)
def test_display_matrix_turns_and_mirrors(
    entries: tuple[int, int, int, int], degrees: int, mirrored: bool, expected: list[list[int]]
) -> None:
    orientation = orientation_of_matrix(matrix(*entries))
    assert (orientation.degrees, orientation.mirrored, orientation.is_exact) == (degrees, mirrored, True)
    assert upright(CORNERS, orientation)[..., 0].tolist() == expected


def test_display_matrix_at_an_odd_angle_takes_the_nearest_right_one_and_says_so() -> None:
    half = round(ONE * 0.5)
    most = round(ONE * 0.866)
    orientation = orientation_of_matrix((half, most, 0, -most, half, 0, 0, 0, 1 << 30))
    assert (orientation.degrees, orientation.is_exact) == (90, False)


def test_display_matrix_of_zeros_changes_nothing() -> None:
    assert orientation_of_matrix((0,) * 9) == UPRIGHT


@given(*[st.integers(1, 5000)] * 4)
def test_fit_stays_in_the_box_and_touches_it(width: int, height: int, box_width: int, box_height: int) -> None:
    inner_width, inner_height = fit(width, height, box_width, box_height)
    assert 1 <= inner_width <= box_width
    assert 1 <= inner_height <= box_height
    assert inner_width == box_width or inner_height == box_height


def frame_of(rgb: np.ndarray, pixel_format: str = "rgb24") -> VideoFrame:
    return VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format=pixel_format)


@pytest.mark.parametrize("pixel_format", ["rgb24", "yuv444p", "rgba", "gbrp10le", "rgb48le"])
def test_convert_gives_eight_bit_rgb_from_any_pixel_format(pixel_format: str) -> None:
    rgb = np.zeros((16, 24, 3), np.uint8)
    rgb[:, :12] = (255, 0, 0)
    rgb[:, 12:] = (0, 0, 255)
    got = PictureConverter().convert(frame_of(rgb, pixel_format), UPRIGHT)
    assert got.dtype == np.uint8
    assert np.abs(got.astype(int) - rgb).max() <= 3


def test_convert_keeps_the_size_of_the_first_picture() -> None:
    converter = PictureConverter()
    shapes = [
        converter.convert(frame_of(np.full((*size, 3), 200, np.uint8)), UPRIGHT).shape
        for size in [(20, 30), (40, 60), (30, 30), (1, 1)]
    ]
    assert shapes == [(20, 30, 3)] * 4


def test_convert_sizes_by_what_is_upright() -> None:
    rgb = np.zeros((10, 20, 3), np.uint8)
    rgb[0, :] = 255
    turned = PictureConverter().convert(frame_of(rgb), Orientation(degrees=90))
    assert turned.shape == (20, 10, 3)
    assert (turned[:, -1] == 255).all(), "the top edge is now on the right"
    fitted = PictureConverter(height=40, width=40).convert(frame_of(rgb), Orientation(degrees=90))
    assert fitted[:, :10].max() == fitted[:, 30:].max() == 0
    assert fitted[:, 28].min() > 200


def test_convert_averages_when_it_shrinks() -> None:
    rgb = np.zeros((64, 64, 3), np.uint8)
    rgb[::2] = 255
    shrunk = PictureConverter(height=8, width=8).convert(frame_of(rgb), UPRIGHT)
    assert np.abs(shrunk.astype(int) - 127).max() < 12

"""Pictures: the same for the same script and time, clear in what they show."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.toybox.scripts import many_scripts

from longtake.data.toybox import ACTIONS, COLOURS, KINDS, Renderer, Script, frame_labels, make_script
from longtake.data.toybox.backdrop import HIGHEST, LOWEST
from longtake.data.toybox.draw import INK, LIGHT, PAINTS, paint
from longtake.data.toybox.render import LIGHT_LIMIT, NOISE_LIMIT
from longtake.data.toybox.world import BACKDROPS, RADIUS
from longtake.errors import ConfigError


def sprite(kind: str, colour: str = "red", *, size: int = 64, angle: float = 0.0) -> np.ndarray:
    canvas = np.full((20, 20, 3), 128.0, dtype=np.float32)
    paint(canvas, kind, colour, x=10.0, y=10.0, radius=RADIUS * size, angle=angle)
    return canvas


@given(st.integers(0, 2**48), st.sampled_from((64, 96, 128)), st.lists(st.integers(0, 160), min_size=1, max_size=6))
@settings(max_examples=8)
def test_frames_in_any_order_match_frames_in_a_row(seed: int, size: int, order: list[int]) -> None:
    script = make_script(seed, seconds=20)
    straight = Renderer(script, size)
    in_a_row = {index: straight.frame(index / 8) for index in range(max(order) + 1)}
    renderer = Renderer(make_script(seed, seconds=20), size)
    for index in order:
        frame = renderer.frame(index / 8)
        assert frame.shape == (size, size, 3)
        assert frame.dtype == np.uint8
        np.testing.assert_array_equal(frame, in_a_row[index])


def test_frame_is_not_changed_by_its_user() -> None:
    renderer = Renderer(make_script(1), 64)
    before = renderer.frame(1.0).copy()
    renderer.frame(1.0)[:] = 0
    np.testing.assert_array_equal(renderer.frame(1.0), before)


@pytest.mark.parametrize("size", [0, 15, 2000])
def test_size_out_of_range_is_refused(size: int) -> None:
    with pytest.raises(ConfigError, match="16 to 1024"):
        Renderer(make_script(0), size)


def first_events() -> dict[str, tuple[Script, int]]:
    found: dict[str, tuple[Script, int]] = {}
    for script in many_scripts():
        if len(found) == len(ACTIONS) - 2:
            break
        for index, event in enumerate(script.events):
            neighbours = script.events[max(0, index - 1) : index] + script.events[index + 1 : index + 2]
            if all(
                e.end_seconds < event.start_seconds or e.start_seconds > event.end_seconds + 0.5 for e in neighbours
            ):
                found.setdefault(event.action, (script, index))
    return found


def changed_pixels(renderer: Renderer, one: float, other: float) -> int:
    difference = renderer.frame(one).astype(int) - renderer.frame(other)
    return int((np.abs(difference).max(axis=-1) > 45).sum())


def test_every_action_shows_within_a_tick_and_stops_sharply() -> None:
    # a toy that comes in or goes out slowly takes up to three ticks to cross the edge of the frame or of the box;
    # the wobble of a toy that grows may pass through its middle in the last tick
    edge_ticks = dict.fromkeys(("enters", "leaves", "hides", "comes out", "grows", "shrinks"), 3)
    found = first_events()
    assert set(found) == set(ACTIONS) - {"idle", "is bumped"}
    for action, (script, index) in found.items():
        event = script.events[index]
        for size in (64, 128):
            renderer = Renderer(script, size)
            rest, edge = event.start_seconds - 0.125, edge_ticks.get(action, 1)
            begun = max(changed_pixels(renderer, rest, event.start_seconds + ticks * 0.25) for ticks in range(edge + 1))
            assert begun > 0.001 * size * size, (action, size, begun)
            moving = changed_pixels(renderer, event.end_seconds - 0.25 * edge, event.end_seconds)
            assert moving > 0.0004 * size * size, (action, size, moving)
            assert changed_pixels(renderer, event.end_seconds, event.end_seconds + 0.375) <= 2, action


def test_spin_turns_at_least_an_eighth_per_tick() -> None:
    for script in many_scripts():
        for event in script.events:
            if event.action == "spins":
                assert abs(event.beats) * 360 / ((event.end_seconds - event.start_seconds) / 0.25) >= 45


def test_kinds_are_told_apart_by_their_outlines_at_14_pixels() -> None:
    # the same paint everywhere: only the shape can differ
    sprites = {kind: np.abs(sprite(kind) - 128.0).max(axis=-1) > 40 for kind in KINDS}
    for one, other in combinations(KINDS, 2):
        different = (sprites[one] ^ sprites[other]).sum()
        assert different >= 16, (one, other, different)


@pytest.mark.parametrize("kind", KINDS)
def test_every_turn_of_a_toy_shows(kind: str) -> None:
    upright = sprite(kind)
    for degrees in range(45, 316, 15):
        turned = sprite(kind, angle=np.deg2rad(degrees))
        assert (np.abs(turned - upright).max(axis=-1) > 40).sum() >= 12, degrees


def test_colours_are_well_apart() -> None:
    for one, other in combinations(COLOURS, 2):
        assert np.linalg.norm(np.subtract(PAINTS[one], PAINTS[other])) > 75, (one, other)


def test_paint_leaves_room_for_light_and_noise() -> None:
    levels = [*INK, *LIGHT, *(level for paint in PAINTS.values() for level in paint), LOWEST, HIGHEST]
    assert max(levels) * (1 + LIGHT_LIMIT) + NOISE_LIMIT <= 255
    assert (min(levels) - 1) * (1 - LIGHT_LIMIT) - NOISE_LIMIT >= 0


def test_drawing_matches_between_sizes() -> None:
    script = make_script(9)
    seconds = script.events[0].end_seconds
    large, small = Renderer(script, 128).frame(seconds), Renderer(script, 64).frame(seconds)
    shrunk = large.reshape(64, 2, 64, 2, 3).mean(axis=(1, 3))
    assert np.abs(shrunk - small).mean() < 4.0


def test_toys_stand_out_where_labels_say() -> None:
    script = make_script(12)
    seconds = script.events[-1].end_seconds
    labels, frame = frame_labels(script, [seconds]), Renderer(script, 128).frame(seconds).astype(int)
    for kind in np.flatnonzero(labels.visible[0]):
        x, y = int(labels.x[0, kind] * 128), int(labels.y[0, kind] * 128)
        window = frame[max(0, y - 14) : y + 14, max(0, x - 14) : x + 14]
        paint_of = np.array(PAINTS[COLOURS[labels.colour[0, kind]]])
        assert (np.abs(window - paint_of).max(axis=-1) < 40).mean() > 0.05, KINDS[kind]


def test_all_backdrops_are_used_and_light_drifts() -> None:
    scripts = many_scripts(40)
    assert {script.look.backdrop for script in scripts} == set(BACKDROPS)
    renderer = Renderer(make_script(5, seconds=120), 64)
    means = [renderer.frame(seconds).mean() for seconds in range(0, 120, 5)]
    assert np.ptp(means) > 2.0

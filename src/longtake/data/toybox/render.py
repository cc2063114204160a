"""Pictures of a script. A frame depends only on the script, the size and the time: any order gives the same pixels."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Float32, UInt8

from longtake.data.toybox.backdrop import paint_backdrop
from longtake.data.toybox.dice import Dice, random_bytes
from longtake.data.toybox.draw import paint
from longtake.data.toybox.motion import Pose, Stretch, goes_through_mouth, hand_at, pose_at, tracks
from longtake.data.toybox.world import RADIUS, Script
from longtake.errors import ConfigError

NOISE_BANK = 64
"""How far a frame's noise may be shifted within the bank, in pixels and each way."""
NOISE_LIMIT = 9
LIGHT_LIMIT = 0.06
SCENES_KEPT = 4

Layer = Float32[np.ndarray, "height width 3"]


class Renderer:
    """Draws the frames of one script at one size.

    Args:
        script: What happens.
        size: Side of the square pictures in pixels, 16 to 1024.
    """

    def __init__(self, script: Script, size: int = 128) -> None:
        if not 16 <= size <= 1024:
            raise ConfigError(f"toybox pictures of {size} pixels were asked for; the size must be from 16 to 1024")
        self.script = script
        self.size = size
        self._tracks = tracks(script)
        self._backdrop, self._front = paint_backdrop(script.look, script.box, size)
        self._noise = _noise_bank(size, round(script.look.noise * size / 128, 2))
        self._shifts = random_bytes(script.look.seed, 4096).astype(int) % NOISE_BANK
        self._light = _light_waves(script.look.seed)
        self._scenes: OrderedDict[tuple[object, ...], Layer] = OrderedDict()

    def frame(self, seconds: float) -> UInt8[np.ndarray, "height width 3"]:
        """The picture at ``seconds``."""
        resting, moving = self._sorted_toys(seconds)
        canvas = self._scene(resting)
        if moving:
            canvas = canvas.copy()
            self._draw_moving(canvas, moving, seconds)
        picture = (canvas * self._gain(seconds)).astype(np.uint8)
        picture += self._noise_at(round(seconds * self.script.fps))
        return picture

    def _sorted_toys(self, seconds: float) -> tuple[list[tuple[int, Stretch]], list[tuple[int, Stretch]]]:
        resting, moving = [], []
        for toy, track in enumerate(self._tracks):
            stretch = track.at(seconds)
            if stretch.event is not None:
                moving.append((toy, stretch))
            elif stretch.where == "stage":
                resting.append((toy, stretch))
        return resting, moving

    def _scene(self, resting: list[tuple[int, Stretch]]) -> Layer:
        """The backdrop with the toys at rest; kept for a while, since it changes only when an event starts or ends."""
        key = tuple((toy, stretch.rest.x, stretch.rest.y, stretch.rest.scale) for toy, stretch in resting)
        scene = self._scenes.get(key)
        if scene is None:
            scene = self._backdrop.copy()
            for toy, stretch in sorted(resting, key=lambda pair: float(pair[1].rest.y)):
                self._draw_toy(scene, toy, stretch.rest)
            self._scenes[key] = scene
            if len(self._scenes) > SCENES_KEPT:
                self._scenes.popitem(last=False)
        return scene

    def _draw_moving(self, canvas: Layer, moving: list[tuple[int, Stretch]], seconds: float) -> None:
        poses = [(toy, stretch, pose_at(stretch, seconds, self.script.box)) for toy, stretch in moving]
        boxed = [item for item in poses if goes_through_mouth(item[1])]
        for toy, _, pose in boxed:
            self._draw_toy(canvas, toy, pose)
        if boxed:
            self._front.lay_over(canvas)
        for toy, stretch, pose in poses:
            if goes_through_mouth(stretch):
                continue
            self._draw_toy(canvas, toy, pose)
            if stretch.action == "is carried" and stretch.event is not None:
                x, y = hand_at(stretch.event, pose)
                self._draw(canvas, "hand", "glove", Pose(x=x, y=y, scale=0.95))

    def _draw_toy(self, canvas: Layer, toy: int, pose: Pose) -> None:
        member = self.script.cast[toy]
        self._draw(canvas, member.kind, member.colour, pose)

    def _draw(self, canvas: Layer, kind: str, colour: str, pose: Pose) -> None:
        paint(
            canvas,
            kind,
            colour,
            x=float(pose.x) * self.size,
            y=float(pose.y) * self.size,
            radius=float(pose.scale) * RADIUS * self.size,
            angle=float(pose.angle),
            alpha=float(pose.alpha),
        )

    def _gain(self, seconds: float) -> Float32[np.ndarray, " 3"]:
        waves = self._light
        angles = waves[0] * seconds + waves[1]
        return (1.0 + waves[2] * np.sin(angles)).sum(axis=1).astype(np.float32) - 1.0

    def _noise_at(self, frame: int) -> UInt8[np.ndarray, "height width 3"]:
        shifts = self._shifts
        down, right = shifts[2 * frame % 4096], shifts[(2 * frame + 1) % 4096]
        return self._noise[down : down + self.size, right : right + self.size]


@lru_cache(maxsize=8)
def _noise_bank(size: int, sigma: float) -> UInt8[np.ndarray, "height width 3"]:
    """Noise as bytes to be added modulo 256; pictures stay far enough from 0 and 255 for that."""
    side = size + NOISE_BANK
    raw = random_bytes(1, side * side * 3 * 4).reshape(side, side, 3, 4).astype(np.float32).sum(axis=-1)
    spread = np.rint((raw - raw.mean()) / raw.std() * sigma)
    return np.clip(spread, -NOISE_LIMIT, NOISE_LIMIT).astype(np.int8).view(np.uint8)


def _light_waves(seed: int) -> Float[np.ndarray, "3 3 2"]:
    """Angular speed, phase and height of two slow waves per colour channel: one shared, one its own."""
    dice = Dice("light", seed)
    shared = (2.0 * np.pi / dice.uniform(15, 50), dice.uniform(0, 6.28), 0.7 * LIGHT_LIMIT)
    own = [(2.0 * np.pi / dice.uniform(20, 60), dice.uniform(0, 6.28), 0.3 * LIGHT_LIMIT) for _ in range(3)]
    return np.array([[[shared[i], wave[i]] for wave in own] for i in range(3)])

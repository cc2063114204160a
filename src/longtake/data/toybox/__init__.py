"""Toybox: a procedural world with memory in it. Deterministic in (split, seed); see ``world.py`` for the nouns."""

from longtake.data.toybox.labels import FrameLabels as FrameLabels
from longtake.data.toybox.labels import frame_labels as frame_labels
from longtake.data.toybox.render import Renderer as Renderer
from longtake.data.toybox.script import make_script as make_script
from longtake.data.toybox.sentences import vocabulary as vocabulary
from longtake.data.toybox.world import ACTIONS as ACTIONS
from longtake.data.toybox.world import COLOURS as COLOURS
from longtake.data.toybox.world import COUNTED as COUNTED
from longtake.data.toybox.world import KINDS as KINDS
from longtake.data.toybox.world import TOYBOX_VERSION as TOYBOX_VERSION
from longtake.data.toybox.world import Script as Script
from longtake.data.toybox.world import Toy as Toy
from longtake.data.toybox.world import ToyEvent as ToyEvent

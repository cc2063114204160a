"""Text in and out: tokens, time tokens, the local decoder, and events as people and programs read them."""

from __future__ import annotations

from longtake.language.formats import FORMATS as FORMATS
from longtake.language.formats import Format as Format
from longtake.language.formats import format_of as format_of
from longtake.language.formats import render as render
from longtake.language.tracker import EventTracker as EventTracker
from longtake.language.tracker import TrackerState as TrackerState

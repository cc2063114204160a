"""Read, time, sample and cut video; the only place that imports av."""

from __future__ import annotations

from longtake.video.options import OnDamage as OnDamage
from longtake.video.probe import probe as probe
from longtake.video.sampling import sample as sample
from longtake.video.segments import OnLag as OnLag
from longtake.video.segments import SegmentStream as SegmentStream
from longtake.video.segments import segments as segments
from longtake.video.source import Source as Source
from longtake.video.source import open_source as open_source

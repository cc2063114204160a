"""Which videos of a public data set can be run: those that are here and can be opened."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from longtake.data.datasets import DataSet, find_videos
from longtake.data.datasets.samples import Video
from longtake.data.datasets.videos import Clip, Found
from longtake.errors import ConfigError, SourceError


def videos_of(
    dataset: DataSet,
    videos: Sequence[Video],
    folder: str | Path,
    *,
    limit: int | None,
    among: Collection[str] | None = None,
) -> Found:
    """Where the videos lie: the first ``limit`` that are here and can be opened, and all that are not here.

    Raises:
        ConfigError: None is here.
        SourceError: None can be opened.
    """
    from longtake.video import open_source

    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit}, expected at least 1 video")
    found = find_videos([video for video in videos if among is None or video.name in among], folder)
    if not found.clips:
        raise ConfigError(f"{folder}: {found.said()}; had at {dataset.videos_home}; give their folder with --videos")
    clips: dict[str, Clip] = {}
    unreadable: list[str] = []
    for name, clip in found.clips.items():
        if len(clips) == limit:
            break
        try:
            with open_source(clip.path):
                clips[name] = clip
        except SourceError as error:
            unreadable.append(" ".join(str(error).split()))
    if not clips:
        raise SourceError(f"none of {len(unreadable)} videos can be read; the first: {unreadable[0]}")
    return replace(found, clips=clips, unreadable=tuple(unreadable))

"""The data sets by name: what they are asked for, which splits they have, where they are had, how they are scored."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from longtake.config import suggest
from longtake.data.datasets import (
    activitynet,
    diving48,
    egoschema,
    mlvu,
    nextqa,
    ovo_bench,
    perception_test,
    video_mme,
    vitt,
    youcook2,
)
from longtake.data.datasets.annotations import Annotations
from longtake.data.datasets.samples import Samples
from longtake.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A public data set."""

    name: str
    title: str
    task: Literal["captions", "ask", "classify"]
    read: Callable[[Annotations, str], Samples]
    home: str
    """Where annotations are had."""
    videos_home: str
    splits: tuple[str, ...]
    """The first is the one that papers report."""
    mean_over: tuple[str, ...] = ()
    """Accuracies are averaged over these tags, the finest first; without any, over questions."""
    rule: str = ""
    """How the official script reads answers, in ``longtake.eval.question_answer``; empty: it is told the option."""

    def open(self, folder: str | Path, split: str | None = None) -> Samples:
        """Read the annotations.

        Raises:
            ConfigError: There is no such split, a file is missing, or holds something else than expected.
            SourceError: A file cannot be read.
        """
        split = split or self.splits[0]
        if split not in self.splits:
            raise ConfigError(f"{self.title} has no split {split!r}, expected {' or '.join(self.splits)}")
        return self.read(Annotations(folder, self.title, self.home), split)


DATASETS = {
    one.name: one
    for one in (
        DataSet(
            name="activitynet",
            title="ActivityNet Captions",
            task="captions",
            read=activitynet.read,
            home="cs.stanford.edu/people/ranjaykrishna/densevid (captions.zip)",
            videos_home="YouTube, by id, or activity-net.org on request",
            splits=("val", "train", "test"),
        ),
        DataSet(
            name="youcook2",
            title="YouCook2",
            task="captions",
            read=youcook2.read,
            home="youcook2.eecs.umich.edu",
            videos_home="YouTube, by id",
            splits=("val", "train", "test"),
        ),
        DataSet(
            name="vitt",
            title="ViTT",
            task="captions",
            read=vitt.read,
            home="storage.googleapis.com/video-timeline-tags",
            videos_home="YouTube, by YouTube-8M's id",
            splits=("test", "dev", "train", "all"),
        ),
        DataSet(
            name="diving48",
            title="Diving48 V2",
            task="classify",
            read=diving48.read,
            home="svcl.ucsd.edu/projects/resound",
            videos_home="the same place (Diving48_rgb.tar.gz)",
            splits=("test", "train"),
        ),
        DataSet(
            name="egoschema",
            title="EgoSchema",
            task="ask",
            read=egoschema.read,
            home="github.com/egoschema/EgoSchema",
            videos_home="Kaggle (egoschema-public), or Ego4D's own videos",
            splits=("subset", "full"),
        ),
        DataSet(
            name="next-qa",
            title="NExT-QA",
            task="ask",
            read=nextqa.read,
            home="github.com/doc-doc/NExT-QA",
            videos_home="the link in that repository (VidOR)",
            splits=("val", "test", "train"),
        ),
        DataSet(
            name="perception-test",
            title="Perception Test",
            task="ask",
            read=perception_test.read,
            home="github.com/google-deepmind/perception_test",
            videos_home="the same place (valid_videos.zip)",
            splits=("valid", "train", "test"),
            rule="first-letter",
        ),
        DataSet(
            name="video-mme",
            title="Video-MME",
            task="ask",
            read=video_mme.read,
            home="huggingface.co/datasets/lmms-lab/Video-MME",
            videos_home="the same place (videos_chunked_*.zip)",
            splits=("test",),
        ),
        DataSet(
            name="mlvu",
            title="MLVU",
            task="ask",
            read=mlvu.read,
            home="github.com/JUNJIE99/MLVU",
            videos_home="huggingface.co/datasets/MLVU/MVLU",
            splits=("dev", "test"),
            mean_over=("type",),
            rule="bracket",
        ),
        DataSet(
            name="ovo-bench",
            title="OVO-Bench",
            task="ask",
            read=ovo_bench.read,
            home="github.com/JoeLeelyf/OVO-Bench",
            videos_home="huggingface.co/datasets/JoeLeelyf/OVO-Bench (src_videos.tar.parta*)",
            splits=("test",),
            mean_over=("type", "group"),
            rule="anywhere",
        ),
    )
}
_ALSO = {"activitynetcaptions": "activitynet", "diving48v2": "diving48"}


def dataset_named(name: str, task: str, others: tuple[str, ...] = ()) -> DataSet:
    """A data set of a task, however its name is written (``NExT-QA``, ``next_qa``).

    Raises:
        ConfigError: There is none; ``others`` are further names that would have been right.
    """
    bare = _bare(name)
    for one in DATASETS.values():
        if _bare(one.name) == _ALSO.get(bare, bare):
            if one.task == task:
                return one
            raise ConfigError(f"{one.title} is for 'longtake eval {one.task}', not for 'eval {task}'; use that")
    known = [*others, *names_for(task)]
    raise ConfigError(f"unknown data set {name!r}, expected {' or '.join(known)}; {suggest(name, known)}")


def names_for(task: str) -> tuple[str, ...]:
    """Names of the data sets of a task."""
    return tuple(one.name for one in DATASETS.values() if one.task == task)


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())

"""``longtake bench score``: how long a whole evaluation of captions takes, METEOR and SODA included.

Made-up annotations of the size of ActivityNet Captions' validation set: two annotators, 20 predictions a video, and
sentences of the words that Toybox knows. Beside it, on a few of the same videos and scaled up, the way the public
evaluators go: the field's tools (pycocoevalcap), the tokeniser anew for each threshold and side, pair after pair to one
METEOR process, at each threshold and once more for SODA.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from longtake.data.toybox import vocabulary
from longtake.errors import ConfigError
from longtake.eval.annotations import Stories, TimedSentence
from longtake.eval.apart import measured_apart
from longtake.eval.captions import evaluate_captions
from longtake.eval.dense import caption_pairs, make_case
from longtake.eval.protocols import PROTOCOLS
from longtake.eval.report import CaptionReport

VIDEOS = 4917
PREDICTIONS = 20
ANNOTATORS = 2
LONG_STORY = 600
"""Events on either side of one video."""
SAMPLE = 24
"""Videos that are scored the public evaluators' way."""
BARS: dict[str, tuple[float | None, float | None]] = {"minutes": (None, 5.0), "public_over_ours": (1.0, None)}


def bench_score(videos: int = VIDEOS, *, tell: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Measure in a process of its own.

    Raises:
        ConfigError: Java or pycocoevalcap is missing.
    """
    if tell:
        tell(f"scoring {videos} videos of {PREDICTIONS} predictions, then {SAMPLE} of them the public way")
    return measured_apart(__name__, str(videos))


def measure_score(videos: int) -> dict[str, Any]:
    """Measure in this process."""
    dice = random.Random(5)
    references = [{name: story(dice, dice.randint(2, 5)) for name in names(videos)} for _ in range(ANNOTATORS)]
    predictions = {name: story(dice, PREDICTIONS) for name in names(videos)}
    long = [{"long": story(dice, LONG_STORY)} for _ in range(2)]
    seconds, report = timed(lambda: evaluate_captions(references, predictions, protocol="longtake"))
    if "meteor" in report.unavailable:
        raise ConfigError(f"bench score needs METEOR: {report.unavailable['meteor']}")
    long_seconds, long_report = timed(lambda: evaluate_captions(long[0], long[1], protocol="longtake"))
    few = names(min(SAMPLE, videos))
    public = public_seconds([{name: told[name] for name in few} for told in references], predictions)
    return {
        "name": "score",
        "ratios": {"minutes": seconds / 60, "public_over_ours": public / len(few) * videos / seconds},
        "raw": {
            "bars": BARS,
            "videos": videos,
            "predictions": PREDICTIONS,
            "annotators": ANNOTATORS,
            "seconds": seconds,
            "metrics": report.metrics,
            "long_story": {"events": LONG_STORY, "seconds": long_seconds, "soda_c": long_report.metrics["soda_c"]},
            "public_seconds_a_video": public / len(few),
            "public_videos": len(few),
            "cores": os.cpu_count() or 1,
        },
    }


def names(count: int) -> list[str]:
    return [f"v_{number:05d}" for number in range(count)]


def story(dice: random.Random, events: int) -> tuple[TimedSentence, ...]:
    """Events of made-up sentences in 120 s."""
    words = [word for word in vocabulary() if word.isalpha()]
    found: list[TimedSentence] = []
    for _ in range(events):
        start = dice.uniform(0, 110)
        text = " ".join(dice.choices(words, k=dice.randint(7, 18)))
        found.append(TimedSentence(start_seconds=start, end_seconds=start + dice.uniform(5, 60), text=f"{text}."))
    return tuple(found)


def timed(run: Callable[[], CaptionReport]) -> tuple[float, CaptionReport]:
    began = perf_counter()
    report = run()
    return perf_counter() - began, report


def public_seconds(reference_sets: Sequence[Stories], predictions: Stories) -> float:
    """METEOR alone, as the public evaluators have it computed; starting its process is left out."""
    from pycocoevalcap.meteor.meteor import Meteor  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    rules = PROTOCOLS["longtake"]
    videos = list(reference_sets[0])
    cases = [make_case(name, predictions[name], [told[name] for told in reference_sets], rules) for name in videos]
    meteor: Any = Meteor()
    meteor.compute_score({0: ["a cat"]}, {0: ["a cat"]})  # its tables are loaded now
    began = perf_counter()
    for threshold in rules.thresholds:
        pairs = [caption_pairs(case, threshold, rules) for case in cases]
        said, wanted = (tokenized([[pair[side] for pair in of_video] for of_video in pairs]) for side in (0, 1))
        for hypotheses, partners in zip(said, wanted, strict=True):
            if hypotheses:
                meteor.compute_score(dict(enumerate(partners)), dict(enumerate(hypotheses)))
    for case in cases:  # SODA: every pair of each annotator's story
        for told in case.references:
            for event in told:
                for prediction in case.predictions:
                    meteor.compute_score({0: [prediction.text]}, {0: [event.text]})
    spent = perf_counter() - began
    meteor.meteor_p.kill()  # which the package leaves to chance
    meteor.meteor_p.wait()
    for pipe in (meteor.meteor_p.stdin, meteor.meteor_p.stdout, meteor.meteor_p.stderr):
        pipe.close()
    return spent


def tokenized(lists: Sequence[Sequence[str]]) -> list[list[list[str]]]:
    """One run of the field's tokeniser, each sentence in a list of its own."""
    from pycocoevalcap.tokenizer.ptbtokenizer import (  # pyright: ignore[reportMissingTypeStubs]
        PTBTokenizer,  # pyright: ignore[reportUnknownVariableType]
    )

    flat = [text for some in lists for text in some]
    tokenizer: Any = PTBTokenizer()
    found = tokenizer.tokenize({number: [{"caption": text}] for number, text in enumerate(flat)})
    rows = iter(range(len(flat)))
    return [[found[next(rows)] for _ in some] for some in lists]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure_score(int(sys.argv[1]))))

"""How captions are judged: metrics, protocols, reports. Nothing here imports torch.

METEOR and the Stanford tokeniser run in Java where it is there; everything else is ours and needs nothing but numpy.
"""

from __future__ import annotations

from longtake.eval.annotations import read_predictions as read_predictions
from longtake.eval.annotations import read_references as read_references
from longtake.eval.captions import caption_scores as caption_scores
from longtake.eval.captions import evaluate_captions as evaluate_captions
from longtake.eval.protocols import PROTOCOLS as PROTOCOLS
from longtake.eval.report import CaptionReport as CaptionReport
from longtake.eval.text_tools import TextTools as TextTools

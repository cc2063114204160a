"""longtake's video models inside lmms-eval, so that its tasks (Video-MME, MLVU and others) run on them unchanged.

``lmms-eval --model longtake --model_args pretrained=FOLDER,budget=4096 --tasks videomme``: longtake's entry point in
the group ``lmms_eval.models`` tells the harness of this class; ``model_args`` other than ``pretrained`` are options of
``longtake.load``. Questions about one video that follow each other share one reading of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from lmms_eval.api.model import lmms
from lmms_eval.models.registry_v2 import ModelManifest
from lmms_eval.protocol import ChatMessages

from longtake.errors import ConfigError
from longtake.hub import load
from longtake.methods.statekv import StateKV, StateKVState
from longtake.session import Session
from longtake.vlm.decode import Sampling

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

MANIFEST = ModelManifest(model_id="longtake", chat_class_path=f"{__name__}.HarnessModel")


class HarnessModel(lmms):
    """A frozen video model that reads by StateKV, as lmms-eval sees it: one video and words in, words out.

    Args:
        pretrained: A bundled name, a folder or a hub id.
        device: As ``longtake.load`` has it.
        options: Others of ``longtake.load``: ``policy``, ``budget``, ``answer`` ...

    Raises:
        ConfigError: The model is none that answers in words.
    """

    is_simple = False

    def __init__(self, pretrained: str = "toybox-vlm", device: str | None = None, **options: Any) -> None:
        super().__init__()
        for name in ("batch_size", "max_batch_size"):  # the harness always gives them; a stream is read by itself
            options.pop(name, None)
        model = load(pretrained, device=device or "auto", **options)
        if not isinstance(model, StateKV):
            raise ConfigError(
                f"{pretrained} is a {type(model).__name__}; lmms-eval needs a model that answers in words"
            )
        self.model = model
        self._read: tuple[str, StateKVState] | None = None

    def generate_until(self, requests: Sequence[Instance]) -> list[str]:
        """Answers in the order of the requests, each by itself."""
        from tqdm import tqdm

        said: list[str] = []
        for request in tqdm(requests, desc="longtake"):
            _, to_messages, settings, number, task, split = cast("tuple[Any, ...]", request.args)
            messages = ChatMessages(messages=to_messages(self.task_dict[task][split][number]))
            video, question = asked(messages)
            with torch.inference_mode():
                talk = self.model.converse(self.watched(video), sampling_of(settings, self.model.config.max_new_tokens))
                said.append(talk.answer(question).text)
        return said

    def watched(self, video: str) -> StateKVState:
        """The state at the end of a video."""
        if self._read is None or self._read[0] != video:
            self._read = None  # one state at a time
            session: Session[StateKVState] = Session(self.model, source=video, tells_events=False)
            for _ in session.watch(Path(video) if "://" not in video else video):
                pass
            self._read = video, session.state
        return self._read[1]

    def loglikelihood(self, requests: Sequence[Instance]) -> list[tuple[float, bool]]:
        raise ConfigError("longtake answers lmms-eval's generate_until tasks; this task asks for loglikelihood")

    def generate_until_multi_round(self, requests: Sequence[Instance]) -> list[str]:
        raise ConfigError("longtake answers lmms-eval's generate_until tasks; this task has several rounds")


def asked(messages: ChatMessages) -> tuple[str, str]:
    """The video and the words of a request.

    Raises:
        ConfigError: It has not exactly one video given by its path, or pictures, sound or a part of a video.
    """
    parts = [part for message in messages.messages for part in message.content]
    videos = [part for part in parts if part.type == "video"]
    if len(videos) != 1 or any(part.type in ("image", "audio") for part in parts):
        raise ConfigError(
            f"a request has {', '.join(part.type for part in parts)}; longtake answers about one video in words"
        )
    (video,) = videos
    if not isinstance(video.url, str) or video.start_time is not None or video.end_time is not None:
        raise ConfigError(f"the video of a request is {str(video.url)[:80]!r}; expected the path of a whole video")
    return video.url, "\n".join(part.text for part in parts if part.type == "text")


def sampling_of(settings: dict[str, Any], max_new_tokens: int) -> Sampling:
    """The task's ``generation_kwargs``; what they leave out is greedy.

    Raises:
        ConfigError: Beam search is asked for.
    """
    if (settings.get("num_beams") or 1) > 1:
        raise ConfigError(f"num_beams is {settings['num_beams']}; longtake has no beam search")
    samples = bool(settings.get("do_sample"))
    until = settings.get("until") or ()
    return Sampling(
        max_new_tokens=settings.get("max_new_tokens") or max_new_tokens,
        temperature=float(settings.get("temperature") or 0.0) if samples else 0.0,
        top_p=float(settings.get("top_p") or 1.0) if samples else 1.0,
        stop=(until,) if isinstance(until, str) else tuple(until),
    )

"""A model asked about every video of a data set, through the same session as everybody's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from longtake.eval.ask import Marked, TextOnly
from longtake.eval.ask_data import AskData
from longtake.methods.mcvit import MCViT
from longtake.methods.mcvit_blind import without_video as blind_state
from longtake.protocol import StreamModel
from longtake.session import Session
from longtake.types import Answer, Choose


def ask_all(
    data: AskData,
    model: StreamModel[Any],
    *,
    choose: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> list[Marked]:
    """Read each video once, then ask all its questions, each by itself.

    Args:
        data: Videos and questions.
        model: Answers ``Ask``, and ``Choose`` if it is to choose.
        choose: Choose among a question's options, where it has any.
        on_progress: Called with the number of videos done.
    """
    marks: list[Marked] = []
    for done, (video, path) in enumerate(data.videos.items()):
        if on_progress is not None:
            on_progress(done)
        session: Session[Any] = Session(model, source=str(path))
        for _ in session.watch(path):
            pass
        for question in data.questions[video]:
            answer = session.ask(question.question, question.options if choose else ())
            marks.append(Marked(video=video, question=question, said=answer.text, flags=answer.flags))
    if on_progress is not None:
        on_progress(len(data.videos))
    return marks


def blind_all(data: AskData, model: MCViT) -> list[Marked]:
    """Every question that has options, chosen by the same model without its video."""
    state = blind_state(model)
    marks: list[Marked] = []
    for video, questions in data.questions.items():
        for question in questions:
            (answer,) = model.respond(state, Choose(question=question.question, options=question.options))
            assert isinstance(answer, Answer)
            marks.append(Marked(video=video, question=question, said=answer.text))
    return marks


def without_video(words: TextOnly, data: AskData) -> list[Marked]:
    """The same questions answered from their words alone."""
    return [
        Marked(video=video, question=question, said=words.answer(question))
        for video, questions in data.questions.items()
        for question in questions
    ]

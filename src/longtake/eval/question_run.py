"""A model asked the questions of a public data set: each at its moment, of which it sees no later frame.

A video is read once. Where a question is asked in the middle of a segment, a fork of the session takes in the part of
it that was there by then; the stream goes on with the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import torch

from longtake.data.datasets.samples import Question
from longtake.data.datasets.videos import Clip
from longtake.errors import HorizonReached, SourceError
from longtake.eval.question_answer import NO_ANSWER, option_said, word_said
from longtake.eval.question_data import QuestionData
from longtake.methods.statekv_choice import lettered
from longtake.protocol import StreamModel
from longtake.session import Session
from longtake.types import Ask, Segment, SegmentSpec
from longtake.video import segments

GREY = 128
"""Of 255: what is shown where nothing is to be seen."""
SLACK_SECONDS = 1e-6
YES_NO = ("Yes", "No")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedQuestion:
    """An answer beside its question, and what had been seen by then."""

    video: str
    question: Question
    said: str
    """The model's own words, or the option it chose."""
    answer: str
    """What that means: an option, a number, Yes or No; empty if nothing."""
    flags: tuple[str, ...] = ()
    frames: int = 0
    """How many had been seen."""
    last_frame_seconds: float | None = None
    """Time of the latest of them."""

    @property
    def right(self) -> bool:
        """Options of the same words are the same answer."""
        return bool(self.answer) and self.answer == self.question.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All answers, and videos that could not be read."""

    marks: tuple[MarkedQuestion, ...]
    unreadable: tuple[str, ...] = ()
    """Each with its reason."""


class Viewing:
    """A session that counts what it has seen."""

    def __init__(self, model: StreamModel[Any]) -> None:
        self.session: Session[Any] = Session(model, tells_events=False)
        self.frames, self.is_full = 0, False
        self.last_frame_seconds: float | None = None

    def take(self, segment: Segment | None) -> None:
        """Take in a segment, if there is any of it and the model can hold more."""
        if segment is None or self.is_full:
            return
        try:
            self.session.advance(segment)
        except HorizonReached:
            self.is_full = True
            return
        self.frames += len(segment.pts_seconds)
        self.last_frame_seconds = max(segment.pts_seconds)

    def fork(self) -> Viewing:
        """One that stands where this one does."""
        other = object.__new__(Viewing)
        other.__dict__.update(self.__dict__, session=self.session.fork())
        return other

    def ask(self, question: Question, *, choose: bool) -> MarkedQuestion:
        """Put a question, without letters to whoever can only choose."""
        said, answer, flags = "", "", ("nothing-seen",)
        if self.frames:
            said, answer, flags = _put(self.session, question, choose=choose)
        return MarkedQuestion(
            video=question.video,
            question=question,
            said=said,
            answer=answer,
            flags=(*flags, *(["length"] if self.is_full else [])),
            frames=self.frames,
            last_frame_seconds=self.last_frame_seconds,
        )


def ask_questions(
    data: QuestionData,
    model: StreamModel[Any],
    *,
    choose: bool = False,
    last_seconds: float | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Run:
    """Read each video once and ask all its questions, each by itself.

    Args:
        data: Videos and questions.
        model: Answers ``Ask`` or ``Choose``.
        choose: Take the likeliest option instead of reading one from the model's words; always so if it has none.
        last_seconds: For each question a stream of its own that begins only so long before its moment: a baseline
            without memory. Questions asked at a video's end are left out.
        on_progress: Called with the number of videos done.
    """
    marks: list[MarkedQuestion] = []
    unreadable: list[str] = []
    for done, (video, clip) in enumerate(data.clips.items()):
        if on_progress is not None:
            on_progress(done)
        try:
            if last_seconds is None:
                marks += _ask_along(model, clip, data.questions[video], choose=choose)
            else:
                marks += _ask_late(model, clip, data.questions[video], last_seconds, choose=choose)
        except SourceError as error:
            unreadable.append(f"{video}: {' '.join(str(error).split())}")
    if on_progress is not None:
        on_progress(len(data.clips))
    return Run(marks=tuple(marks), unreadable=tuple(unreadable))


def ask_blind(
    marks: Iterable[MarkedQuestion], model: StreamModel[Any], *, choose: bool = False
) -> list[MarkedQuestion]:
    """The same questions to the same model, which has seen one segment of even grey: what the words alone tell."""
    viewing = Viewing(model)
    viewing.take(grey_segment(viewing.session.spec))
    return [viewing.ask(mark.question, choose=choose) for mark in marks]


def grey_segment(spec: SegmentSpec) -> Segment:
    """A segment in which nothing is to be seen."""
    pixels = torch.full((spec.num_frames, 3, spec.height, spec.width), GREY, dtype=torch.uint8)
    times = tuple(number / spec.fps for number in range(spec.num_frames))
    return Segment(
        pixels=pixels,
        pts_seconds=times,
        index=0,
        start_seconds=0.0,
        end_seconds=spec.seconds,
        total_seconds=spec.seconds,
    )


def until(segment: Segment, seconds: float | None, fps: float) -> Segment | None:
    """The frames of a segment that were there by a moment; None if there are none.

    A frame must lie on the grid by then, and its picture must be no later.
    """
    if seconds is None:
        return segment
    grid = [segment.start_seconds + number / fps for number in range(len(segment.pts_seconds))]
    late = [max(pair) > seconds + SLACK_SECONDS for pair in zip(grid, segment.pts_seconds, strict=True)]
    count = late.index(True) if True in late else len(late)
    if count in (0, len(late)):
        return segment if count else None
    return replace(
        segment,
        pixels=segment.pixels[:count],
        pts_seconds=segment.pts_seconds[:count],
        end_seconds=segment.start_seconds + count / fps,
    )


def _ask_along(
    model: StreamModel[Any], clip: Clip, questions: Sequence[Question], *, choose: bool
) -> list[MarkedQuestion]:
    """Marks in the order of the questions; those without a moment come at the end."""
    viewing, fps = Viewing(model), model.segment_spec.fps
    moments = sorted({question.at_seconds for question in questions if question.at_seconds is not None})
    found: dict[str, MarkedQuestion] = {}
    with closing(_segments(clip, viewing.session.spec, is_live=bool(moments))) as stream:
        for segment in stream:
            while moments and until(segment, moments[0], fps) is not segment:
                seen = viewing.fork()
                seen.take(until(segment, moments[0], fps))
                now = moments.pop(0)
                found |= {one.key: seen.ask(one, choose=choose) for one in questions if one.at_seconds == now}
            if len(found) == len(questions):
                break
            viewing.take(segment)
    left = [question for question in questions if question.key not in found]
    found |= {question.key: viewing.ask(question, choose=choose) for question in left}
    return [found[question.key] for question in questions]


def _ask_late(
    model: StreamModel[Any], clip: Clip, questions: Sequence[Question], last_seconds: float, *, choose: bool
) -> list[MarkedQuestion]:
    marks: list[MarkedQuestion] = []
    for question in questions:
        if question.at_seconds is None:
            continue
        viewing = Viewing(model)
        part = replace(
            clip, start_seconds=max(0.0, question.at_seconds - last_seconds), end_seconds=question.at_seconds
        )
        with closing(_segments(part, viewing.session.spec, is_live=True)) as stream:
            for segment in stream:
                viewing.take(segment)
        marks.append(viewing.ask(question, choose=choose))
    return marks


def _segments(clip: Clip, spec: SegmentSpec, *, is_live: bool) -> Generator[Segment, None, None]:
    """The part of a file that is meant; ``is_live``: nobody knows how long it will be."""
    with segments(clip.path, spec, start_seconds=clip.start_seconds) as stream:
        for segment in stream:
            part = until(segment, clip.end_seconds, spec.fps)
            if part is None:
                return
            yield replace(part, total_seconds=None) if is_live or clip.end_seconds is not None else part
            if part is not segment:
                return


def _put(session: Session[Any], question: Question, *, choose: bool) -> tuple[str, str, tuple[str, ...]]:
    """The model's words, what they mean, and flags."""
    options = YES_NO if question.kind == "yes-no" else question.options
    in_words = Ask in session.model.supports
    if options and (choose or not in_words):
        answer = session.choose(question.question, options)
        return answer.text, answer.text, answer.flags
    if not in_words:
        return "", "", (NO_ANSWER,)
    if question.kind == "choice":
        answer = session.ask(lettered(question.question, options))
        index, how = option_said(answer.text, options)
        meant = "" if index is None else options[index]
    else:
        answer = session.ask(question.question)
        meant = word_said(answer.text, question.kind)
        how = "" if meant else NO_ANSWER
    return answer.text, meant, (*answer.flags, *([how] if how else []))

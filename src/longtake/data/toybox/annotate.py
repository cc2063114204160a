"""What is written beside the videos: plain dictionaries, ready for JSON."""

from __future__ import annotations

from longtake.data.toybox.questions import Question
from longtake.data.toybox.recall import RecallQuestion
from longtake.data.toybox.world import ACTIONS, COLOURS, COUNTED, KINDS, TOYBOX_VERSION, MemoryWord, Script

JSON = dict[str, object]


def captions_of(script: Script) -> JSON:
    """ActivityNet Captions' layout, with the marks of memory words beside the sentences."""
    return {
        "duration": script.seconds,
        "timestamps": [[event.start_seconds, event.end_seconds] for event in script.events],
        "sentences": [event.sentence for event in script.events],
        "memory": [
            [{"kind": mark.kind, "word": mark.word, "needs_memory": mark.needs_memory} for mark in event.memory]
            for event in script.events
        ],
    }


def memory_of(script: Script) -> JSON:
    """By index of the sentence: its memory words, where they stand and what they need."""
    return {str(i): [_mark(mark) for mark in event.memory] for i, event in enumerate(script.events) if event.memory}


def _mark(mark: MemoryWord) -> JSON:
    return {
        "kind": mark.kind,
        "word": mark.word,
        "span": [mark.start_char, mark.end_char],
        "needs_memory": mark.needs_memory,
        "reach_seconds": mark.reach_seconds,
        "evidence": [list(span) for span in mark.evidence],
    }


def question_entry(question: Question) -> JSON:
    """A short-answer question has no options and no index."""
    return {
        "type": question.type,
        "question": question.question,
        "options": list(question.options),
        "answer": question.answer,
        "answer_index": question.answer_index,
        "span": list(question.span),
    }


def recall_entry(question: RecallQuestion) -> JSON:
    """A question about one toy, asked at the end of the video; always with options."""
    return {
        "type": question.kind,
        "form": question.form,
        "question": question.question,
        "options": list(question.options),
        "answer": question.answer,
        "asked_seconds": question.asked_seconds,
        "ends": list(question.ends),
    }


def world_facts(*, split: str, seed: int, videos: int, seconds: float | None, size: int) -> JSON:
    """What it takes to make the same data again."""
    return {
        "toybox_version": TOYBOX_VERSION,
        "split": split,
        "seed": seed,
        "videos": videos,
        "seconds": seconds,
        "size": size,
        "kinds": list(KINDS),
        "colours": list(COLOURS),
        "actions": list(ACTIONS),
        "counted": list(COUNTED),
    }

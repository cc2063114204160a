"""Questions about one toy: their answers follow from the script, and their kinds keep their shares."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from longtake.data.toybox import make_script
from longtake.data.toybox.recall import FAR_SHARE, IMPLIED, PAST, PLAIN, Recall, RecallQuestion, recall_questions

SCRIPTS = [make_script(seed, seconds=105.0, split="test") for seed in range(40)]
ALL = [(script, question) for script in SCRIPTS for question in recall_questions(script)]


def anchored(question: RecallQuestion, recall: Recall) -> tuple[list[str], int | None]:
    """Actions of the toy that is asked about, in order, and which of them the question's last words name."""
    name = next(name for name in recall.story.names if f"the {name} " in question.question)
    deeds = [
        deed
        for deed in recall.deeds[recall.story.names.index(name)]
        if deed.end_seconds <= question.asked_seconds - 0.5
    ]
    actions = [deed.action for deed in deeds]
    words = re.search(r"it (first |last )?([a-z ]+)\?$", question.question)
    if words is None:
        return actions, None
    action = next(action for action, past in PAST.items() if past == words[2])
    places = [index for index, done in enumerate(actions) if done == action]
    assert words[1] or len(places) == 1, question
    return actions, places[-1] if words[1] == "last " else places[0]


def test_answers_follow_from_what_the_toy_does() -> None:
    for script, question in ALL:
        check_answer(question, Recall(script))


def check_answer(question: RecallQuestion, recall: Recall) -> None:
    actions, at = anchored(question, recall)
    if question.form == "before":
        assert at is not None
        assert question.answer == PAST[actions[at - 1]]
        assert actions[at] not in IMPLIED
    elif question.form == "whether":
        assert at is not None
        asked = re.search(r"did the \w+ \w+ ([a-z ]+) before", question.question)
        assert asked is not None
        action = next(action for action, plain in PLAIN.items() if plain == asked[1])
        assert question.answer == ("yes" if action in actions[:at] else "no")
        assert action in actions
    elif question.form == "count":
        asked = re.search(r"did the \w+ \w+ ([a-z ]+?)(?: before it .*)?\?$", question.question)
        assert asked is not None
        action = next(action for action, plain in PLAIN.items() if plain == asked[1])
        times = Counter(actions if at is None else actions[:at])[action]
        assert question.answer == ("zero", "one", "two", "three", "four", "five")[times]


def test_every_question_can_be_asked_and_chosen() -> None:
    for _, question in ALL:
        assert question.answer in question.options
        assert len(set(question.options)) == len(question.options) >= 2
        assert 0 <= question.ends[0] <= question.ends[1] <= question.asked_seconds
        if question.kind == "relational":
            assert question.ends[1] - question.ends[0] > FAR_SHARE * question.asked_seconds


def test_at_least_three_in_five_are_far_relations_and_no_answer_is_the_usual_one() -> None:
    kinds = Counter(question.kind for _, question in ALL)
    assert kinds["relational"] >= 0.6 * len(ALL)
    whether = Counter(question.answer for _, question in ALL if question.form == "whether")
    assert 0.4 < whether["yes"] / sum(whether.values()) < 0.6


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(30, 100))
def test_questions_depend_only_on_script_and_moment(seed: int, asked: float) -> None:
    script = make_script(seed, seconds=100.0, split="train")
    questions = recall_questions(script, asked_seconds=asked)
    assert questions == recall_questions(script, asked_seconds=asked)
    assert len({question.question for question in questions}) == len(questions)
    assert all(question.ends[1] <= asked for question in questions)

"""Written events are read back by strict parsers of our own: what is written is what was meant, whatever the words."""

from __future__ import annotations

import html
import json
import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longtake.errors import ConfigError
from longtake.language import formats
from longtake.types import Event

CUE_TIME = re.compile(r"(\d{2,}):([0-5]\d):([0-5]\d)([.,])(\d{3})")


def event(start: float, end: float, text: str = "the red car jumps", score: float = 1.0) -> Event:
    return Event(start_seconds=start, end_seconds=end, text=text, score=score)


def cue_milliseconds(text: str, mark: str) -> int:
    found = CUE_TIME.fullmatch(text)
    assert found is not None, text
    assert found[4] == mark
    return ((int(found[1]) * 60 + int(found[2])) * 60 + int(found[3])) * 1000 + int(found[5])


def parse_cues(blocks: list[str], mark: str, *, numbered: bool) -> list[tuple[int, int, str]]:
    cues = []
    for number, block in enumerate(blocks, 1):
        lines = block.split("\n")
        if numbered:
            assert lines.pop(0) == str(number)
        assert len(lines) == 2, block
        start, end = lines[0].split(" --> ")
        cues.append((cue_milliseconds(start, mark), cue_milliseconds(end, mark), lines[1]))
    return cues


def parse_srt(text: str) -> list[tuple[int, int, str]]:
    assert text == "" or text.endswith("\n\n")
    return parse_cues(text.split("\n\n")[:-1], ",", numbered=True)


def parse_vtt(text: str) -> list[tuple[int, int, str]]:
    head, *blocks, tail = text.split("\n\n")
    assert (head, tail) == ("WEBVTT", "")
    cues = parse_cues(blocks, ".", numbered=False)
    for *_, words in cues:
        assert "-->" not in words
        assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", words)
    return [(start, end, html.unescape(words)) for start, end, words in cues]


def words(text: str) -> str:
    """What a text must become on one line: worked out character by character."""
    text = "".join("?" if "\ud800" <= character <= "\udfff" else character for character in text)
    blank = [character.isspace() or ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in text]
    return " ".join(
        "".join(" " if is_blank else one for one, is_blank in zip(text, blank, strict=True)).split(" ")
    ).strip()


seconds = st.floats(0, 400_000)
any_text = st.text() | st.sampled_from(
    ["a --> b", "1\n\n2\n00:00:01,000 --> 00:00:02,000\nfake", "<b>&amp;", "\r\n\u2028\x85", "\ud800"]
)
events_strategy = st.lists(st.builds(event, seconds, seconds, any_text, st.floats(0, 1)), max_size=8)


def expected_cues(events: list[Event]) -> list[tuple[int, int, str]]:
    cues = []
    for one in events:
        start = round(one.start_seconds * 1000)
        text = re.sub(" +", " ", words(one.text))
        if text:
            cues.append((start, max(start + 1, round(one.end_seconds * 1000)), text))
    return sorted(cues, key=lambda cue: cue[:2])


@given(events_strategy)
@example([event(1.9996, 2.9999)])
@example([event(0.0, 0.0)])
def test_srt_reads_back_as_what_was_meant(events: list[Event]) -> None:
    expected = [(start, end, text.replace("-->", "→")) for start, end, text in expected_cues(events)]
    assert parse_srt(formats.to_srt(events)) == expected


@given(events_strategy)
def test_vtt_reads_back_as_what_was_meant(events: list[Event]) -> None:
    assert parse_vtt(formats.to_vtt(events)) == expected_cues(events)


@given(events_strategy)
def test_cues_never_overlap_when_monotone(events: list[Event]) -> None:
    cues = parse_srt(formats.to_srt(events, monotone=True))
    assert len(cues) == len(expected_cues(events))
    assert all(start < end for start, end, _ in cues)
    assert all(before[1] <= after[0] for before, after in pairwise(cues))


@given(st.dictionaries(any_text, events_strategy, max_size=3))
def test_json_reads_back_as_activitynet_results(results: dict[str, list[Event]]) -> None:
    text = formats.to_json(results)
    read = json.loads(text.encode())
    assert read["version"]
    assert set(read["results"]) == {formats.printable(video) for video in results}
    for video, events in results.items():
        entries = read["results"][formats.printable(video)]
        if len({formats.printable(name) for name in results}) == len(results):
            assert len(entries) == len(events)
        for entry in entries:
            start, end = entry["timestamp"]
            assert start < end
            assert (start, end) == (round(start, 3), round(end, 3))
            assert 0 <= entry["score"] <= 1
        assert entries == sorted(entries, key=lambda entry: entry["timestamp"])


@given(seconds, seconds, any_text, any_text)
def test_json_line_is_one_line_that_reads_back(start: float, end: float, text: str, video: str) -> None:
    line = formats.json_line(event(start, end, text, 0.98765), video)
    assert line.splitlines() == [line]
    read = json.loads(line.encode())
    assert list(read) == ["video", "start", "end", "sentence", "score"]
    assert (read["video"], read["sentence"], read["score"]) == (
        formats.printable(video),
        formats.printable(text),
        0.9877,
    )
    assert read["start"] < read["end"]


def test_json_line_says_when_a_start_is_clamped() -> None:
    clamped = Event(start_seconds=1.0, end_seconds=2.0, text="a", start_clamped=True)
    assert json.loads(formats.json_line(clamped, "v"))["start_clamped"] is True


@given(seconds, seconds, any_text)
def test_text_line_is_one_line_with_start_before_end(start: float, end: float, text: str) -> None:
    line = formats.text_line(event(start, end, text))
    assert len(line.splitlines()) == 1
    found = re.match(r"(?:(\d+):)?(\d+):(\d\d\.\d\d)-(?:(\d+):)?(\d+):(\d\d\.\d\d)  ", line)
    assert found is not None
    first, last = (
        int(hours or 0) * 360_000 + int(minutes) * 6000 + round(float(rest) * 100)
        for hours, minutes, rest in (found.group(1, 2, 3), found.group(4, 5, 6))
    )
    assert first < last
    assert abs(first / 100 - start) <= 0.0056


def test_text_line_reads_as_promised() -> None:
    assert formats.text_line(event(12.25, 15.0)) == "0:12.25-0:15.00  the red car jumps"
    assert formats.text_line(event(3599.996, 3723.5, "it ends")) == "1:00:00.00-1:02:03.50  it ends"


def test_milliseconds_are_rounded_before_they_are_written() -> None:
    assert "00:00:02,000 --> 00:01:00,000" in formats.to_srt([event(1.9996, 59.9995001)])


def test_hours_get_a_third_digit_when_they_need_it() -> None:
    assert formats.stamp(100 * 3_600_000 + 1, ".") == "100:00:00.001"


@pytest.mark.parametrize("to", ["srt", "vtt"])
def test_formats_of_one_video_refuse_two(to: formats.Format) -> None:
    with pytest.raises(ConfigError, match="one video, got 2"):
        formats.render({"a": [], "b": []}, to)


def test_text_of_several_videos_names_each() -> None:
    text = formats.render({"a": [event(0.0, 1.0)], "b\nc": []}, "text")
    assert text == "# a\n0:00.00-0:01.00  the red car jumps\n# b c\n"


@pytest.mark.parametrize(
    ("name", "to"), [("a.VTT", "vtt"), ("b.tar.srt", "srt"), ("c.jsonl", "jsonl"), ("d.txt", "text")]
)
def test_format_follows_the_suffix(name: str, to: formats.Format) -> None:
    assert formats.format_of(name) == to


@pytest.mark.parametrize("name", ["events", "events.csv", ".srt"])
def test_unknown_suffix_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match=r"\.vtt"):
        formats.format_of(name)

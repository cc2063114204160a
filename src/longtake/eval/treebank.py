"""A Penn Treebank tokeniser for captions without Java, close to the Stanford one that the public evaluators run.

Written from the Treebank's conventions and from what Stanford CoreNLP 3.4.1 answers, not from its grammar. Measured
against it: tests/eval/test_ptb.py holds the share of captions that come out identical.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from longtake.eval.ptb import clean, without_punctuation

_ABBREVIATIONS = (
    "mr|mrs|ms|dr|prof|jr|sr|st|ave|blvd|rd|mt|ft|co|corp|inc|ltd|etc|vs|cf|al|est|dept|messrs|gen|col|capt|lt|sgt|rev|hon|gov|sen|rep"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|mon|tues?|wed|thu|thurs|fri|ph\\.d|univ|bros"
)

_TOKEN = re.compile(
    r"""
    (?P<whole>                                   # never split any further
        (?:https?://|www\.)[^\s<>"]*[a-z0-9/]
      | [\w.+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+
      | @[a-z_]\w* | \#[a-z]\w*                  # user names and tags
      | </?[a-z][^<>]*>
      | [a-z0-9]+!@\#                            # the filler of the 2018 evaluator
      | \d+(?::\d+)+ | \d+(?:[.,]\d+)+ (?![a-z])
      | (?<!\w)[+-]?(?:\d+-)?\d+(?:/\d+)+[a-z]* | (?<!\w)[+-](?=\d)[\d,]*\d(?:\.\d+)? | \+\d+
      | (?:[a-z]\.){2,}[a-z]?(?!\w)
      | (?<![\w.])(?:[a-z]|ABBREVIATIONS)\.(?![\w.]) | (?<!\w)no\.(?=\s+\d)
      | '\d\ds?(?!\w) | '(?:n'(?!\w)|em(?!\w)|cause(?!\w))
      | [?!]+ | \*+ | _+ | \#+ | \d+(?=\.[a-z])
    )
    | (?P<smiley> [:;=]-?[()] | :[dp](?!\w) )
    | (?P<word> (?-i:[A-Z]{1,2}(?:&[A-Z])+)(?!\w) | n't(?!\w) | [a-z0-9]+(?:[-_/.'][a-z0-9]+)* \+{0,2} )
    | (?P<tis> '(?=(?:tis|twas)\b) t )
    | (?P<clitic> '(?:s|m|d|ll|re|ve)(?!\w) )
    | (?P<dropped> \.+ | -+ | ["'`]+ )
    | (?P<other> \S )
    """.replace("ABBREVIATIONS", _ABBREVIATIONS),
    re.VERBOSE | re.IGNORECASE,
)
_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_CLITIC = re.compile(r"(.*\w)(n't|'(?:s|m|d|ll|re|ve))$")
_CONTRACTIONS = {
    "cannot": "can not",
    "gonna": "gon na",
    "gotta": "got ta",
    "wanna": "wan na",
    "gimme": "gim me",
    "lemme": "lem me",
    "y'all": "y' all",
}
_KEPT_APOSTROPHE = re.compile(r"(?:[a-z]|ma)'[a-z]{2,}.*$")


def tokenize_in_python(captions: Sequence[str]) -> list[str]:
    """Tokenise captions without Java; the same output format as ``tokenize_with_java``."""
    return [without_punctuation(_tokens(clean(caption))) for caption in captions]


def _tokens(caption: str) -> Iterator[str]:
    for match in _TOKEN.finditer(caption):
        token = match.group().lower()
        if match.lastgroup == "word":
            yield from _split_word(token)
        elif match.lastgroup == "smiley":
            yield token[:-1] + _BRACKETS.get(token[-1], token[-1])
        elif match.lastgroup != "dropped":
            yield _BRACKETS.get(token, token)


def _split_word(word: str) -> Iterator[str]:
    """Split contractions and possessives off a word, and words that only an apostrophe joins."""
    if word in _CONTRACTIONS or word == "n't":
        yield from _CONTRACTIONS.get(word, word).split()
        return
    clitics: list[str] = []
    while found := _CLITIC.match(word):
        word, clitic = found.groups()
        clitics.insert(0, clitic)
    if "'n'" in word:
        yield from word.replace("'n'", " 'n' ").split()
    elif "'" in word and not _KEPT_APOSTROPHE.match(word):
        yield from word.split("'")
    else:
        yield word
    yield from clitics

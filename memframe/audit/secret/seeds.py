"""Seed phrases of wallets: a dozen words or more out of the 2,048 of BIP 39, one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from memframe.audit.rules import prefilter_of
from memframe.audit.text import Span

MIN_WORDS, MIN_TOLD = 12, 10
"""Words of the list in a row that are a seed phrase; some may be left out where the text says that it is one."""

MIN_DIFFERENT = 7
"""Different words of a phrase; drawn ones hardly ever repeat."""

MIN_LISTED = 0.6
"""Share of words of the list, where the text says that what follows is a seed phrase; people mistype."""

_SAID = re.compile(
    r"\b(?:seed|recovery|mnemonic|wallet|backup)\s(?:(?:seed|recovery|backup)\s)?(?:phrase|words?|mnemonic"
    r"|seed)\b"
    r"|\bmnemonic\b|\bseed\b|\b(?:frase|phrase|palabras)\s(?:semilla|de\sr[ée]cup[ée]ration"
    r"|de\srecuperaci[oó]n|mn[ée]mo\w+)\b"
    r"|\b(?:wiederherstellungs|seed-?)(?:phrase|wörter)\b",
    re.IGNORECASE,
)
_LINK = re.compile(r"[^.:=\n]{0,60}?(?::|=|\bis\b|\bare\b|\bwas\b)\s*(?:[0-9]{1,2}[.):]\s*)?[\"'“]?")
_SAME_BREATH = 120
_WORD = re.compile(r"[A-Za-z]+")
_BETWEEN = re.compile(r"[\s,;|]*(?:[0-9]{1,2}[.):]?\s*)?")
_MAX_BETWEEN, _LONGEST = 8, 400

MARKS = r"(?i)(?:\b[a-z]{3,8}\b[\s,;|0-9.):]{1,8}){9}[a-z]{3,8}"
"""A pattern of RE2 that every text with a seed phrase matches."""


SIEVE = prefilter_of(_SAID)
"""The same, and finer, for phrases that are announced."""


def find_listed(text: str) -> Iterator[Span]:
    """Seed phrases by their words, which are in the list; numbers and commas between them do not matter."""
    if _has_run(text):
        yield from _listed_phrases(text)


def find_announced(text: str) -> Iterator[Span]:
    """What is called a seed phrase."""
    for said in _SAID.finditer(text):
        yield from _told_phrase(text, said.end())


def _has_run(text: str) -> bool:
    """Whether as many words of the list as make a phrase follow each other; nearly no prose has so many."""
    are_listed = bytes(map(_list().__contains__, _WORD.findall(text.lower())))
    return bytes([True] * MIN_TOLD) in are_listed


def _listed_phrases(text: str) -> Iterator[Span]:
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(text):
        if not _is_listed(word) or not _is_next(text, run, word):
            yield from _listed_phrase(text, run)
            run = []
        if _is_listed(word):
            run.append(word)
    yield from _listed_phrase(text, run)


@cache
def _list() -> frozenset[str]:
    """The English list, part of BIP 39 and free to use (MIT, Pavol Rusnak); hardly anybody uses another."""
    return frozenset(files("memframe.audit").joinpath("rules", "seed_words.txt").read_text("ascii").split())


def _is_listed(word: re.Match[str]) -> bool:
    return word[0].lower() in _list()


def _is_next(text: str, run: list[re.Match[str]], word: re.Match[str]) -> bool:
    """Whether nothing but signs and the number of a place stands between a word and the run before it."""
    if not run:
        return True
    end = run[-1].end()
    return word.start() - end <= _MAX_BETWEEN and _BETWEEN.fullmatch(text, end, word.start()) is not None


def _listed_phrase(text: str, run: list[re.Match[str]]) -> Iterator[Span]:
    if len(run) >= MIN_TOLD and len({word[0] for word in run}) >= MIN_DIFFERENT:
        start, end = run[0].start(), run[-1].end()
        is_told = _SAID.search(text, max(0, start - _SAME_BREATH), start) is not None
        if is_told or len(run) >= MIN_WORDS:
            yield Span("seed_phrase", start, end, 1.0 if is_told else 0.9)


def _told_phrase(text: str, begin: int) -> Iterator[Span]:
    """What follows "my seed phrase is", if it is a row of words of which most are in the list."""
    link = _LINK.match(text, begin)
    if link is None:
        return
    words: list[re.Match[str]] = []
    for word in _WORD.finditer(text, link.end(), link.end() + _LONGEST):
        is_next = _is_next(text, words, word) if words else word.start() == link.end()
        if not is_next or not 3 <= len(word[0]) <= 10:
            break
        words.append(word)
    if len(words) >= MIN_TOLD and sum(map(_is_listed, words)) >= MIN_LISTED * len(words):
        yield Span("seed_phrase", words[0].start(), words[-1].end(), 0.95)

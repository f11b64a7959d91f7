"""Statements: the sentences of a memory, and what each of them is about."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import chain

from memframe.audit.language.known_words import is_place
from memframe.audit.language.lexicon import CALENDAR, CHANGING, LIGHT, NEGATIONS
from memframe.audit.language.resemblance import class_of
from memframe.audit.language.words import without_accents

_TOPICS = {
    "home": "live living lives lived move moved moving relocate relocated flat apartment house home address rent "
    "rents renting reside based room lease landlord",
    "work": "work job works worked working employ employed employer position role joined resigned hired promoted boss "
    "manager career director company head chief executive promotion",
    "couple": "married marry dating partner divorced engaged girlfriend boyfriend husband wife single separated "
    "together broke breakup split wedding",
    "eating": "vegetarian vegan meat diet pescatarian steak",
    "drinking": "coffee alcohol wine beer espresso",
    "smoking": "smoke smokes smoking smoker cigarette cigarettes",
    "transport": "car bike bicycle drive drives tram train bus commute commutes subway scooter",
    "telephone": "phone mobile smartphone iphone android",
    "pet": "dog cat pet puppy kitten",
    "study": "study studies studying major degree university college",
    "sleep": "bed sleep sleeps bedtime",
    "editor": "editor ide vim emacs vscode",
    "doctor": "doctor dentist therapist physician gp",
}
"""What people have one of at a time, and words that speak of it: who moved to Ghent lives there."""

TOPICS = {class_of(word): f"@{topic}" for topic, words in _TOPICS.items() for word in words.split()}

_BESIDE_CUES = (
    "push back forward new old rather up down away last previous latest given gave went gone week month year"
)
_LITTLE = "s t one ones thing things way ways time times lot bit kind sort"
_IN_LY = "family italy assembly anomaly butterfly monopoly supply reply daily weekly monthly yearly"

_OF_CUES = frozenset(map(class_of, [*CHANGING, *_BESIDE_CUES.split()]))
"""What a cue itself says is not what its statement is about."""

_SAYING_LITTLE = frozenset(_LITTLE.split())
_NO_ADVERBS = frozenset(_IN_LY.split())
_ADVERB = re.compile(r".{4}ly$")
_CALENDAR = frozenset(map(class_of, CALENDAR))
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_WORD = re.compile(r"[^\W_]+(?:[.,:]\d+)*")


class Statement:
    """One sentence, and its words by class, with the topics that they speak of."""

    __slots__ = "_common", "_values", "said", "text"

    def __init__(self, text: str) -> None:
        self.text, self.said = text, said_in(text)
        self._common: frozenset[str] | None = None
        self._values: frozenset[str] = frozenset()

    def values(self, common: frozenset[str]) -> frozenset[str]:
        """Numbers, dates and names among its words: what another memory may have otherwise.

        Parameters
        ----------
        common
            Classes of words that the store writes in lower case, and that are therefore no names.
        """
        if self._common is not common:  # most statements are never asked, the others many times
            names = filter(None, map(_name_in, _WORD.findall(self.text)))
            dated = frozenset(name for name in self.said if name[0].isdigit() or name in _CALENDAR)
            self._common, self._values = (
                common,
                dated | (self.said & frozenset(map(class_of, names)) - common),
            )
        return self._values


def statements_of(text: str) -> list[Statement]:
    """The sentences of a text that have any words.

    >>> [sorted(statement.said) for statement in statements_of("Ada moved. She likes tea.")]
    [['@home', 'ada'], ['=like', 'tea']]
    """
    return list(map(Statement, sentences_of(text)))


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, as they are written."""
    return [part for part in _SENTENCE.split(text) if part.strip()]


def names_in(text: str) -> list[str]:
    """Capitalised words in their order, but for places; the first one of a sentence may be any word."""
    return [name for name in map(_name_in, _WORD.findall(text)) if name and not is_place(name)]


def said_in(text: str) -> frozenset[str]:
    """The words of a text that carry a value, by class, and the topics that they speak of."""
    return _said(_WORD.findall(text))


def _said(words: Iterable[str]) -> frozenset[str]:
    return frozenset(chain.from_iterable(map(_classes_of, words)))


@lru_cache(maxsize=1 << 16)
def _classes_of(word: str) -> tuple[str, ...]:
    """The class of a word as it is written, and its topic; nothing for words that carry no value."""
    plain = without_accents(word.lower()).replace(",", "").replace(".", "")
    if plain in _SAYING_LITTLE or plain in LIGHT or plain in NEGATIONS:
        return ()
    if plain not in _NO_ADVERBS and _ADVERB.match(plain):
        return ()
    name = class_of(plain)
    topic = (TOPICS[name],) if name in TOPICS else ()
    return topic if name in _OF_CUES else (name, *topic)


@lru_cache(maxsize=1 << 16)
def _name_in(word: str) -> str:
    """A word that may be a name, in lower case; nothing for others."""
    plain = without_accents(word.lower())
    return plain if word[0].isupper() and plain not in LIGHT and plain not in CALENDAR else ""


def common_words(texts: Iterable[str]) -> set[str]:
    """Words that texts write in lower case, and that are therefore no names."""
    words: set[str] = set()
    for text in texts:
        words.update(_WORD.findall(text))
    return {without_accents(word) for word in words if word[0].islower()}


def words_said(text: str, said: Collection[str], most: int = 3) -> list[str]:
    """The first few words of a text, as they are written, that are of some classes."""
    words = {word: None for word in _WORD.findall(text) if not set(_classes_of(word)).isdisjoint(said)}
    return list(words)[:most]

"""Values: what a memory says that nothing else may say any more once it is gone.

Names, numbers, dates and every other word that carries a value, as the audit has them. A word is held by other
texts if it stands there in any form of its class (km is kilometres), with a typing error, or as the whole of a
word that broke off. A name has to stand there as it is: of two names that differ in a letter nobody knows whether
one is a slip.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from rapidfuzz.distance import OSA

from memframe.audit.lexicon import CALENDAR, CLASSES, LIGHT, class_of, is_number, is_slip, without_accents
from memframe.audit.text import text_column
from memframe.audit.tokenize import words_of

Key = Hashable

_LETTERS = re.compile(r"[^\W\d_]+")
_CAPITALISED = re.compile(r"(?<![^\W\d_])[^\W\d_a-z][^\W\d_]*")
"""Words of letters that do not begin with one of the small ones that are most frequent."""
_STARTS_SENTENCE = re.compile(r"(?:^|[.!?:;\n\u2026\u2013\u2014-]\s*|[\"'\u201c\u00ab(\[*#>]\s*)$")

_NAMES_TOO = frozenset({"will", "ella", "elle", "per", "das", "ai", "dal", "my"})
"""Words that mostly carry no value, and are names of people besides."""


class Said(NamedTuple):
    """What a text says, or some texts taken together."""

    words: tuple[str, ...]
    """In their order, without case and accents."""
    classes: frozenset[str]
    """Of the words that carry a value."""
    written: frozenset[str]
    """Words of letters alone, as they are written but for case and accents."""
    names: frozenset[str]
    """Those that are written like names."""
    first: frozenset[str]
    """Those with a capital that a sentence begins with, so that they may be names."""
    signs: frozenset[str]
    """Pictures and signs of mathematics."""
    last: frozenset[str]
    """The last word of each text."""

    @classmethod
    def of(cls, texts: Iterable[Said]) -> Said:
        """What some texts say, taken together."""
        texts = [said for said in texts if said.words or said.signs]
        if len(texts) == 1:
            return texts[0]
        words = tuple(word for said in texts for word in said.words)
        sets = (frozenset().union(*(said[place] for said in texts)) for place in range(1, len(cls._fields)))
        return cls(words, *sets)


class Store:
    """How often words stand in all memories, and which ones are written in lower case; looked up when needed."""

    def __init__(self, memories: pd.DataFrame) -> None:
        self._memories = memories

    @cached_property
    def n_times(self) -> dict[str, int]:
        """How often each word stands in the contents."""
        words = words_of(text_column(self._memories, "content"))
        counts = np.bincount(words.tokens, minlength=len(words.vocabulary)).tolist()
        return dict(zip(words.vocabulary, counts, strict=True))

    @cached_property
    def common(self) -> frozenset[str]:
        """Words that some memory writes in lower case within a sentence, and that are therefore no names."""
        words = set(_LETTERS.findall("\n".join(self._memories["content"].dropna())))
        return frozenset(_plain(word) for word in words if word[0].islower())


class Texts:
    """What texts say, by keys of one's own; each is looked at closely only when it is asked for."""

    def __init__(self, texts: Mapping[Key, str]) -> None:
        self._texts = texts
        self._place = {key: place for place, key in enumerate(texts)}
        self._words = words_of(pa.array(list(texts.values()), pa.large_string()))
        self._n_heavy = self._words.n_of(self._words.heavy_classes())
        self._said: dict[Key, Said] = {}

    def n_values(self, key: Key) -> int:
        """How many words of a text carry a value."""
        return int(self._n_heavy[self._place[key]])

    def said(self, key: Key) -> Said:
        """What a text says."""
        if key not in self._said:
            self._said[key] = _said(self._texts[key], self._words.of(self._place[key]))
        return self._said[key]


def _said(text: str, words: Sequence[str]) -> Said:
    names: set[str] = set()
    first: set[str] = set()
    known = set(words)  # what wraps a text, such as "User said that", is not known
    for match in _CAPITALISED.finditer(text):
        word = _plain(match[0])
        if match[0][0].isupper() and word in known:
            is_first = _STARTS_SENTENCE.search(text[max(0, match.start() - 4) : match.start()])
            (first if is_first else names).add(word)
    letters = [_plain(word) for word in _LETTERS.findall(text)]
    return Said(
        words=tuple(words),
        classes=frozenset([class_of(word) for word in known - LIGHT]),
        written=frozenset(known.union(letters)),
        names=frozenset([name for name in names if len(name) > 1 and name not in CLASSES]),
        first=frozenset([name for name in first if name not in CLASSES and name not in LIGHT - _NAMES_TOO]),
        signs=frozenset() if text.isascii() else frozenset(filter(_is_sign, text)),
        last=frozenset(letters[-1:]),
    )


def _is_sign(character: str) -> bool:
    return character > "\x7f" and unicodedata.category(character) in {"So", "Sm"}


@lru_cache(maxsize=1 << 16)
def _plain(word: str) -> str:
    return without_accents(unicodedata.normalize("NFKC", word).lower())


def lost(doomed: Said, kept: Said, store: Store, *, breaks_off: bool = False) -> list[str]:
    """What one memory says that the others would not hold; for no eyes, as it may be a secret.

    Parameters
    ----------
    doomed, kept : Said
    store : Store
    breaks_off : bool
        Whether the doomed text is the beginning of one that is kept, so that its last word may be half a word.

    Examples
    --------
    >>> texts = Texts({"m1": "Ada likes tea", "m2": "Ada from Leeds has liked tea since 2019."})
    >>> tea, more = texts.said("m1"), texts.said("m2")
    >>> store = Store(pd.DataFrame({"content": ["Ada likes tea", "Ada from Leeds likes tea"]}))
    >>> lost(tea, more, store), lost(more, tea, store)
    ([], ['leeds', '2019'])
    """
    capitals = (doomed.names | doomed.first) - kept.written
    values = [word for word in doomed.words if word not in LIGHT and class_of(word) not in kept.classes]
    signs = doomed.signs - kept.signs if kept.signs - doomed.signs else frozenset[str]()
    if not (capitals or values or signs):
        return []
    held = _joined(doomed.words, kept.words) | (_halves(doomed, kept) if breaks_off else set())
    names = (word for word in capitals - held if word in doomed.names or _may_be_name(word, store))
    others = dict.fromkeys(kept.words).keys() - doomed.words
    words = (word for word in values if word not in held and not _is_slip(word, others, store))
    return list(dict.fromkeys([*sorted(names), *words, *sorted(signs)]))


def _may_be_name(word: str, store: Store) -> bool:
    """Whether a word that begins a sentence may be a name: hardly if it stands in lower case elsewhere."""
    return word in _NAMES_TOO or word not in store.common


def _halves(doomed: Said, kept: Said) -> set[str]:
    """Last words that break off in the middle of one that is kept."""
    return {word for word in doomed.last if any(whole.startswith(word) for whole in kept.written)}


def _is_slip(word: str, others: Iterable[str], store: Store) -> bool:
    """Whether a word is one of others with a typing error; a number never is."""
    if is_number(word) or word in CALENDAR:
        return False
    near = (other for other in others if OSA.distance(word, other, score_cutoff=2) <= 2)
    return any(
        is_slip(word, store.n_times.get(word, 1), other, store.n_times.get(other, 1)) for other in near
    )


def _joined(doomed: Sequence[str], kept: Sequence[str]) -> set[str]:
    """Words that are written as several there, and words of which several are written as one there.

    >>> sorted(_joined(["iban", "de89", "3704", "overnight"], ["iban", "de893704", "over", "night"]))
    ['3704', 'de89', 'overnight']
    """
    own, others = set(doomed) - set(kept), set(kept) - set(doomed)
    return {word for word in own if _run(kept, word)} | {
        part for whole in others for part in _run(doomed, whole)
    }


def _run(words: Sequence[str], whole: str) -> Sequence[str]:
    """Consecutive words that are the whole once written together; none where there are no such."""
    for start, first in enumerate(words):
        end, joined = start + 1, first
        while whole.startswith(joined) and joined != whole and end < len(words):
            joined += words[end]
            end += 1
        if joined == whole:
            return words[start:end]
    return ()

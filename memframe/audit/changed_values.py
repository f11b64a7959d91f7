"""Changed values: memories of one person that are the same statement with another number, date, name or polarity.

``rules/changed_value.toml`` lists texts that state nothing that may change, and slots: things of which a person has
one at a time.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from memframe.audit.evidence import SensitiveTexts, quote_words
from memframe.audit.findings import Severity
from memframe.audit.keeper import age_order
from memframe.audit.lexicon import (
    CALENDAR,
    DECIMAL,
    MINUTES,
    MONTHS,
    class_of,
    is_common,
    is_name,
    without_accents,
)
from memframe.audit.rules import load_rules
from memframe.audit.similarity.cluster import Link, Pairs, SimilarPairs
from memframe.audit.similarity.compare import Difference
from memframe.audit.similarity.minhash import distinct
from memframe.audit.text import Memories, MemoryTexts
from memframe.audit.tokenize import SPLIT_WORD

_SLOTS, _NO_STATEMENT, _NAMES = map(load_rules("changed_value").only, ("slot", "no_statement", "names"))
_MAX_PARTNERS = 3
"""Changes in which one memory takes part at most."""
_MAX_FILLING = 2
"""Most clusters with one sentence and different values; more are a list, a log or a template."""
_MIN_SHARED = 4
"""Fewest words with a value that two texts have in common if another value is a change of one fact."""
_MAX_VALUE_DIGITS = 6
"""Most digits of a number that is a value; a longer one identifies something."""


def find_value_changes(chosen: Memories, pairs: SimilarPairs) -> Iterator[Link]:
    """Yield pairs of texts that are the same statement with another number, date, name or polarity.

    It finds one exchanged value in statements that share all other words, apart from typing errors and spellings, and
    at least four words with a value. Fewer words are enough for a slot («My name is»), of which a person has one;
    there, any other word counts as a change. Of two clusters of near-duplicates it yields the closest pair, and each
    memory with at most three others. A sentence that several memories of the user complete differently is a list or a
    log and is skipped. Exchanged words in lower case (things, colours, places) are skipped as well, because in real
    memories these are different facts and not changes.
    """
    texts = MemoryTexts.of(chosen)
    column, age = texts.column("content"), age_order(texts)
    contents, sensitive = column.to_pylist(), SensitiveTexts(column)
    values = {
        place: [match.found.span("value") for match in matches] for place, matches in _SLOTS.search(column)
    }
    closest, templates = _choose_closest(pairs, values).each(), _Templates(pairs)
    n_partners: Counter[int] = Counter()
    for left, right, difference in sorted(closest, key=lambda pair: (-pair.difference.score, *pair[:2])):
        kind, have_slots = difference.kind, left in values and right in values
        is_change = kind == "polarity" or (
            difference.n_shared >= _MIN_SHARED and not templates.is_filled(left, right)
        )
        if not (have_slots or is_change) or max(n_partners[left], n_partners[right]) >= _MAX_PARTNERS:
            continue
        written = _Written(contents[left], contents[right], pairs.comparer.compare(left, right))
        is_slot_value = have_slots and written.fills(values[left], values[right])
        if not is_slot_value and (not is_change or (kind == "word" and not written.are_names())):
            continue
        if not written.is_statement(kind):
            continue
        n_partners.update((left, right))
        is_newer = bool(age[left] > age[right])
        older, newer = (right, left) if is_newer else (left, right)
        before, after = (
            " … ".join(quote_words(words, sensitive=sensitive.any_of(older, newer)) for words in places)
            for places in written.written_places()[:: -1 if is_newer else 1]
        )
        if kind == "word":
            kind = "name"
        elif kind == "number" and written.is_of_month():
            kind = "date"
        evidence = f"{before} → {after}"
        if kind == "polarity":
            exchanged = f" ({before or '-'} → {after or '-'})" if before or after else ""
            evidence = f"one says the opposite of the other{exchanged}"
        severity: Severity = "medium" if kind == "polarity" else "low"
        yield Link(older, newer, "value", difference.score, evidence, written.span(is_newer), severity)


def _choose_closest(pairs: SimilarPairs, slots: Mapping[int, object]) -> Pairs:
    """Choose pairs with enough words in common, or with a slot in both; for each two clusters the closest pair.

    With few words in common the values may be different facts: Ada likes tea, and jazz, and Graz.
    """
    changed, with_slot = pairs.pairs.select_relation("changed"), np.array([*slots], np.int64)
    is_slot = np.isin(changed.left, with_slot) & np.isin(changed.right, with_slot)
    changed = changed.select((changed.n_shared >= _MIN_SHARED) | is_slot)
    sides = [np.array([*map(pairs.clusters.of, side.tolist())], np.int64) for side in changed[:2]]
    one, other = np.minimum(*sides), np.maximum(*sides)
    order = np.lexsort((changed.right, changed.left, -changed.score, other, one))
    one, other = one[order], other[order]
    is_first = (np.diff(one, prepend=-1) != 0) | (np.diff(other, prepend=-1) != 0)
    return changed.select(order[is_first & (one != other)])


class _Templates:
    """Index of the texts by word, to count the texts that have all the words that two of them share."""

    def __init__(self, pairs: SimilarPairs) -> None:
        self._pairs, self._words = pairs, pairs.comparer.words
        self._n_rows, n_classes = max(len(self._words), 1), len(self._words.classes)
        heavy = self._words.heavy()
        self._codes = distinct(
            self._words.class_ids[heavy].astype(np.int64) * self._n_rows + self._words.rows()[heavy]
        )
        self._starts = np.searchsorted(self._codes, np.arange(n_classes + 1) * self._n_rows)
        self._n_texts = np.diff(self._starts)
        is_value = [name[:1].isdigit() or name in _DAYS for name in self._words.classes]
        self._is_fixed = (self._n_texts > 0) & ~np.array(is_value, bool)
        # a text is in several pairs that follow each other
        self._fixed_words = lru_cache(maxsize=1024)(self._find_fixed)
        self._n_filling: dict[tuple[int, ...], int] = {}

    def is_filled(self, left: int, right: int) -> bool:
        """Return True if many clusters of the user have all words that both texts have, numbers and days aside."""
        shared = sorted(self._fixed_words(left) & self._fixed_words(right))
        template = int(self._pairs.owners[left]), *shared
        if template not in self._n_filling:
            rows = self._rows_with_all(shared)
            own = rows[self._pairs.owners[rows] == self._pairs.owners[left]].tolist()
            self._n_filling[template] = len(set(map(self._pairs.clusters.of, (left, right, *own))))
        return self._n_filling[template] > _MAX_FILLING

    def _rows_with_all(self, class_ids: Sequence[int]) -> NDArray[np.int64]:
        rows = np.zeros(0, np.int64)
        for n, class_id in enumerate(sorted(class_ids, key=self._n_texts.__getitem__)):
            having = (
                self._codes[self._starts[class_id] : self._starts[class_id + 1]] - class_id * self._n_rows
            )
            if n:
                places = np.minimum(np.searchsorted(having, rows), len(having) - 1)
                having = rows[having[places] == rows]
            rows = having
        return rows

    def _find_fixed(self, row: int) -> frozenset[int]:
        """Return the words of a text that carry a value, by class, without numbers and days."""
        class_ids = self._words.class_ids_of(row)
        return frozenset(class_ids[self._is_fixed[class_ids]].tolist())


_DAYS = frozenset(map(class_of, CALENDAR))


class _Written:
    """Two texts as they are written, with the places of the exchanged words."""

    def __init__(self, left: str, right: str, difference: Difference) -> None:
        matches = [list(SPLIT_WORD.finditer(text)) for text in (left, right)]
        plain = [[_plain(match[0]) for match in side] for side in matches]
        self._texts, self._words = (left, right), (difference.left, difference.right)
        self._found: tuple[list[re.Match[str]], list[re.Match[str]]] = [], []
        for op in Levenshtein.opcodes(*plain):
            if op.tag != "equal":
                spans = (op.src_start, op.src_end), (op.dest_start, op.dest_end)
                for found, side, names, (start, end), words in zip(
                    self._found, matches, plain, spans, self._words, strict=True
                ):
                    found += [side[at] for at in range(start, end) if names[at].startswith(words)]

    def fills(self, *values: Sequence[tuple[int, int]]) -> bool:
        """Return True if in both texts all exchanged words are within the value of a slot."""
        return all(
            found and any(start <= found[0].start() and found[-1].end() <= end for start, end in spans)
            for found, spans in zip(self._found, values, strict=True)
        )

    def is_statement(self, kind: str) -> bool:
        """Return True if both texts state a fact that may change: no request, code, event or item of a list."""
        if any(any(_NO_STATEMENT.find(text)) for text in self._texts):
            return False
        for found in self._found if kind != "polarity" else ():
            if found and any(map(str.isdecimal, found[0][0])):
                start, text = found[0].start(), found[0].string
                names = (rule.regex.search(text, max(0, start - 40), start) for rule in _NAMES.rules)
                if any(names) or any(sum(map(str.isdecimal, one[0])) > _MAX_VALUE_DIGITS for one in found):
                    return False
        return True

    def is_of_month(self) -> bool:
        """Return True if the exchanged number is next to a month: «3 May»."""
        if not self._found[0]:
            return False
        text, (start, end) = self._texts[0], self._found[0][0].span()
        before, after = (
            SPLIT_WORD.findall(text[max(0, start - 20) : start]),
            SPLIT_WORD.findall(text[end : end + 20]),
        )
        return any(_plain(word) in MONTHS for word in (*before[-1:], *after[:1]))

    def are_names(self) -> bool:
        """Return True if all exchanged words are written like names, and none is a common word."""
        is_shouted = any(text.isupper() or text.istitle() for text in self._texts)
        return all(self._found) and not is_shouted and all(map(_is_name, (*self._found[0], *self._found[1])))

    def written_places(self) -> tuple[list[list[str]], list[list[str]]]:
        """Return the exchanged words of both texts as they are written, consecutive ones as one list.

        Words that are not found in a text are returned as they were compared.
        """
        left, right = (
            _split_at_gaps(found) or [[*words]] * bool(words)
            for found, words in zip(self._found, self._words, strict=True)
        )
        return left, right

    def span(self, side: int) -> tuple[int, int] | None:
        """Return the span of the exchanged words in one text; if other words are between them, that of the first."""
        found = self._found[side]
        if not found:
            return None
        first, last = found[0], found[-1]
        between = SPLIT_WORD.findall(first.string[first.start() : last.end()])
        return (first.start(), last.end()) if len(between) <= len(found) + 1 else first.span()


def _split_at_gaps(found: Sequence[re.Match[str]]) -> list[list[str]]:
    """Split found words into lists of consecutive ones."""
    places: list[list[str]] = []
    end = -1
    for match in found:
        if end < 0 or SPLIT_WORD.search(match.string, end, match.start()):
            places.append([])
        places[-1].append(match[0])
        end = match.end()
    return places


def _is_name(match: re.Match[str]) -> bool:
    word, before = _plain(match[0]), match.string[: match.start()].rstrip(" ")
    if not match[0][0].isupper() or word in CALENDAR or match.string[match.end() : match.end() + 1] == ":":
        return False
    is_first = (
        not before.strip() or before[-1] in ".!?:;\n-"
    )  # of its sentence, where all words have a capital
    return is_name(word) or (not is_first and not is_common(word))


def _plain(word: str) -> str:
    """Normalize a word as `memframe.audit.tokenize` does."""
    plain = without_accents(unicodedata.normalize("NFKC", word).lower())
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", plain)
    return plain.replace(":", MINUTES).replace(".", DECIMAL).replace(",", DECIMAL)

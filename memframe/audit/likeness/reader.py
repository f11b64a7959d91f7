"""Reader: compares the texts of one store, two at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from memframe.audit.language.known_words import is_known
from memframe.audit.language.letters import Letters
from memframe.audit.language.lexicon import LIGHT
from memframe.audit.language.punctuation import ends_sentence, is_enumerated
from memframe.audit.language.words import Words
from memframe.audit.likeness.closeness import Comparison
from memframe.audit.likeness.difference import APART, LIGHT_WEIGHT, PARTIAL, Difference
from memframe.audit.likeness.layout import denies_another, exchanged_values, in_both, lay_out
from memframe.audit.likeness.subjects import OWNING, speaks_of_another, speaks_of_what_another_has
from memframe.audit.likeness.voice import is_past_in_one

_MOST_OF_IT = 0.6


class Reader:
    """Compares the texts of one store, two at a time.

    For speed a text is a string with one character for each class of words; so it is C that lays them side by side.
    """

    def __init__(self, words: Words, texts: pa.Array) -> None:
        self.words, self._texts = words, texts
        self._letters = Letters((part.said for part in words.parts()), np.diff(words.starts))
        counts = np.bincount(words.tokens, minlength=len(words.vocabulary))
        self.n_times: dict[str, int] = dict(zip(words.vocabulary, counts.tolist(), strict=True))
        self._once = counts == 1
        self._weights = words.sums(np.where(words.heavy_classes(), 1.0, LIGHT_WEIGHT)).tolist()
        heavy = np.fromiter((word not in LIGHT for word in words.vocabulary), bool, len(words.vocabulary))
        kept = heavy, heavy & (counts > 1)
        self._owns = pc.match_substring_regex(texts, OWNING).to_pylist()
        self._fullness = np.column_stack([words.n_of(some, by="tokens") for some in kept])

    def difference(self, row: int, other: int) -> Difference:
        """What two texts differ in."""
        difference = self._compared(row, other)
        if difference.verdict != "near" or not is_past_in_one(self.words.of(row), self.words.of(other)):
            return difference
        return self._in_another_tense(row, other) or APART

    def _compared(self, row: int, other: int) -> Difference:
        """What two texts differ in, whatever their tenses."""
        a, b = self._letters.of(row), self._letters.of(other)
        if a == b:
            return Difference("near", "spelling", 1.0)
        layout = lay_out(a, b, self.words.tokens_of(row), self.words.tokens_of(other), self.words.vocabulary)
        if not layout.left and not layout.right:
            return self._in_another_order(row, other) or Difference("near", "order", 0.99)
        difference = Comparison(layout, self._weights[row], self.n_times).judged()
        if difference.verdict == "near" and layout.n_moved:
            difference = self._in_another_order(row, other) or difference
        is_other = self._is_sentence(difference, row, other) or self._is_of_another(difference, row, other)
        return APART if is_other else difference

    def _in_another_tense(self, row: int, other: int) -> Difference | None:
        """What two texts are whose words differ in their forms alone."""
        if self._letters.of(row) != self._letters.of(other):
            return None
        pairs = zip(self.words.of(row), self.words.of(other), strict=True)
        left, right = zip(*((word, there) for word, there in pairs if word != there), strict=True)
        return Difference("changed", "word", 0.9, 1, left, right)

    def _in_another_order(self, row: int, other: int) -> Difference | None:
        """What two texts are if the order of the words that both have turns around what they say."""
        words, others = in_both(self.words.of(row), self.words.of(other))
        if denies_another(words, others):
            return Difference("changed", "polarity", 0.99, 1)
        exchanged = exchanged_values(words, others)
        if exchanged and not is_enumerated(exchanged[0], self._written(row), self._written(other)):
            return Difference("changed", "order", 0.99, 1, *exchanged)
        return None

    def _is_sentence(self, difference: Difference, row: int, other: int) -> bool:
        """Whether the one is a sentence of the other, which says much more, rather than what is left of it."""
        if difference.kind != "truncated" or difference.score >= _MOST_OF_IT:
            return False
        part, whole = sorted((row, other), key=lambda place: len(self._letters.of(place)))
        return ends_sentence(self._written(part), self._written(whole))

    def _is_of_another(self, difference: Difference, row: int, other: int) -> bool:
        """Whether one text says of what is somebody's what the other one says, or denies, of him."""
        if difference.kind in PARTIAL:
            part, whole = sorted((row, other), key=self.fullness)
            is_extended = difference.kind == "extended"
            return self._speaks(speaks_of_another, part, whole) or (
                is_extended and self._speaks(speaks_of_what_another_has, part, whole)
            )
        return difference.verdict == "changed" and (
            self._speaks(speaks_of_another, row, other) or self._speaks(speaks_of_another, other, row)
        )

    def _speaks(self, of_another: Callable[[str, str], bool], part: int, whole: int) -> bool:
        return self._owns[whole] and of_another(self._written(part), self._written(whole))

    def _written(self, row: int) -> str:
        """A text as it stands in the store."""
        return str(self._texts[row])

    def fullness(self, row: int) -> tuple[int, int]:
        """How much a text says: its words that carry a value, and how many of them other texts have too."""
        n_said, n_known = self._fullness[row].tolist()
        return n_said, n_known

    def n_slips(self, row: int) -> int:
        """How many words of a text may be typing errors: no other text has them, and nobody else knows them."""
        tokens = self.words.tokens_of(row)
        once = tokens[self._once[tokens]].tolist()
        return sum(not is_known(self.words.vocabulary[token]) for token in once)

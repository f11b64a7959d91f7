"""Voice and tense: whether two texts tell of one thing as done and as suffered, as it is, was, will or should be."""

from __future__ import annotations

from collections.abc import Sequence

from memframe.audit.language.lexicon import CONDITIONS, PASTS
from memframe.audit.language.resemblance import class_of
from memframe.audit.likeness.difference import heavy
from memframe.audit.likeness.layout import Layout, Places

_MODALS = frozenset({"should", "could", "might", "ought", "will", "shall"})
_AUXILIARIES = frozenset({"is", "are", "was", "were", "been", "be", "got"})
_NOW, _THEN = frozenset({"am", "is", "are", "has", "have"}), frozenset({"was", "were", "had"})
_PAST_OF = {
    now: then
    for verb in ("do does did", "go goes went", "make makes made", "get gets got")
    for *forms, then in (verb.split(),)
    for now in forms
}
"""Of light verbs."""
_BEFORE_PARTICIPLES = _AUXILIARIES | {"am", "being", "has", "have", "having", "had", "get", "gets"}
_REACH = 3
"""Words before a participle in which its auxiliary stands: «has not yet moved»."""


def is_other_voice(left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether one text says what should be, or what was done by somebody rather than by whom it names.

    Parameters
    ----------
    left, right
        The words of the one text, and of the other one, that are not in both.

    Examples
    --------
    >>> is_other_voice(["was", "by"], []), is_other_voice(["the"], [])
    (True, False)
    """
    return any(
        not _MODALS.isdisjoint(side) or ("by" in side and not _AUXILIARIES.isdisjoint(side))
        for side in (left, right)
    ) and not any(map(heavy, (left, right)))


def is_over_in_one(places: Places) -> bool:
    """Whether one text says of what is, what the other one says of what was; it has been moved as it was moved.

    >>> is_over_in_one([(["is"], ["was"])]), is_over_in_one([(["has", "been"], ["was"])])
    (True, False)
    """
    return any(
        (not _NOW.isdisjoint(one) and "been" not in one and not _THEN.isdisjoint(other))
        or any(_PAST_OF.get(word) in other for word in one)
        for place in places
        for one, other in (place, place[::-1])
    )


def is_on_terms(layout: Layout) -> bool:
    """Whether one of two texts says on what terms holds what both say: «if it rains»; not where both are cut."""
    places = layout.places[:-1] if all(layout.ends) else layout.places
    return any(CONDITIONS.isdisjoint(before) != CONDITIONS.isdisjoint(after) for before, after in places)


def is_past_in_one(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether one text tells of a deed as done that the other one tells of as done still, or yet to do.

    A participle is no past: «has worked», «is called».

    >>> is_past_in_one("ada worked at acme".split(), "ada works at acme".split())
    True
    >>> is_past_in_one("ada has worked at acme".split(), "ada works at acme".split())
    False
    """
    return _is_done_again(words, others) or _is_done_again(others, words)


def _is_done_again(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether a text tells of something as done that another one has in another form alone."""
    if set(words) <= set(others):
        return False
    said = set(map(class_of, others))
    return any(
        (_is_past(word) or (word.endswith("te") and word[:-1] in others))  # «wohnte», «wohnt»
        and word not in others
        and class_of(word) in said
        and _BEFORE_PARTICIPLES.isdisjoint(words[max(0, place - _REACH) : place])
        and not any(_is_past(other) and class_of(other) == class_of(word) for other in others)
        for place, word in enumerate(words)
    )


def _is_past(word: str) -> bool:
    return word in PASTS or (word.endswith("ed") and class_of(word) != word)

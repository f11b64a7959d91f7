"""Duplicates: memories of one person with the same text, with nearly the same, and with the same but for one value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from memframe.audit.evidence import Delicate, shown
from memframe.audit.findings import Proposal, findings_frame
from memframe.audit.keeper import FILLED, age_order, copies_of, oddness, precedence
from memframe.audit.lexicon import CALENDAR, DECIMAL, MINUTES, MONTHS, is_common, is_name, without_accents
from memframe.audit.similarity.cluster import Clusters, Pair, SimilarPairs, similar_pairs
from memframe.audit.similarity.compare import Difference
from memframe.audit.text import text_column
from memframe.audit.tokenize import SPLIT_WORD

# ---- the same text


def find_exact_duplicates(memories: pd.DataFrame) -> pd.DataFrame:
    """Find memories of one user with the same content, character for character, each group with the one to keep.

    One row a memory. The keeper, which has most fields and tags filled (then: was updated last, has the smallest id),
    has the kind ``keeper``, the action ``none`` and no ``related_id``; the others have the kind ``copy``, the keeper as
    ``related_id`` and the action ``delete``; or ``merge``, if they have a tag, or a title, summary, source or score
    where the keeper has none.

    It finds all of them, and nothing else. Titles, tags and scores are not compared, and a blank more makes another
    text, for which there is `find_near_duplicates`.

    Parameters
    ----------
    memories : DataFrame
        Columns as `load_memories` has them; rows without content are left out.

    Examples
    --------
    >>> from memframe.frames import MEMORY_KINDS
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "content": "Ada likes tea."}, columns=list(MEMORY_KINDS))
    >>> find_exact_duplicates(memories)[["kind", "id", "related_id", "action"]]
         kind  id related_id  action
    0  keeper  m1        NaN    none
    1    copy  m2         m1  delete
    """
    copies = copies_of(memories)
    rows = np.flatnonzero(copies >= 0)
    keepers = copies[rows]
    n_copies = np.bincount(keepers, minlength=len(memories))
    rows, keepers = rows[n_copies[keepers] > 1], keepers[n_copies[keepers] > 1]
    ids = memories["id"].to_numpy(object)
    order = np.lexsort((rows, rows != keepers, keepers))
    rows, keepers = rows[order], keepers[order]
    kept = rows == keepers
    return findings_frame(
        check="exact_duplicate",
        kind=["keeper" if keep else "copy" for keep in kept],
        severity=["info" if keep else "low" for keep in kept],
        id=ids[rows].tolist(),
        field="content",
        related_id=[None if keep else ids[keeper] for keep, keeper in zip(kept, keepers, strict=True)],
        group=(np.cumsum(kept) - 1).tolist(),
        score=1.0,
        evidence=[
            f"kept: {n} memories have this text" if keep else f"one of {n} with the same text"
            for keep, n in zip(kept, n_copies[keepers].tolist(), strict=True)
        ],
        action=_actions(memories, rows, keepers),
    )


def _actions(memories: pd.DataFrame, rows: NDArray[np.int64], keepers: NDArray[np.int64]) -> list[Proposal]:
    """Return what a cleanup does with each row, given the row that is kept of its text."""
    cells = memories[[*FILLED, "tags"]]
    own, kept = (cells.iloc[places].itertuples(index=False, name=None) for places in (rows, keepers))
    return [
        "none" if row == keeper else "merge" if _holds_more(copy, other) else "delete"
        for row, keeper, copy, other in zip(rows, keepers, own, kept, strict=True)
    ]


def _holds_more(copy: tuple[Any, ...], keeper: tuple[Any, ...]) -> bool:
    """Tell whether a copy fills a field that its keeper leaves empty, or has another tag."""
    (*cells, tags), (*kept, kept_tags) = copy, keeper
    fills = any(_is_filled(cell) and not _is_filled(other) for cell, other in zip(cells, kept, strict=True))
    return fills or not _names(tags) <= _names(kept_tags)


def _is_filled(cell: Any) -> bool:
    return bool(cell.strip()) if isinstance(cell, str) else pd.notna(cell)


def _names(tags: object) -> frozenset[str]:
    return frozenset(tags) if isinstance(tags, Iterable) else frozenset()


# ---- nearly the same text

_SAME = {
    "keeper": "kept: it says most of {n} that say the same",
    "spelling": "the same words but for case, punctuation or spelling",
    "order": "the same words in another order",
    "typing": "the same words but for typing errors",
    "truncated": "the beginning of the kept text, which goes on",
}


class _Member(NamedTuple):
    """One text of a cluster, and what it is to the one to keep."""

    place: int
    keeper: int
    n_members: int
    kind: str
    score: float


def find_near_duplicates(memories: pd.DataFrame, *, pairs: SimilarPairs | None = None) -> pd.DataFrame:
    """Find memories of one user that say the same as another one, in clusters, each with the one to keep.

    One row a memory. The keeper, which says most (then: is a plain text, neither wrapped nor mistyped, has most fields
    and tags filled, is the plainest, was updated last, has the smallest id), has the kind ``keeper``, the action
    ``none`` and no ``related_id``; the others have the keeper as ``related_id`` and the action ``merge``. Their kinds
    are ``spelling``, ``order``, ``typing`` and ``truncated`` (the keeper goes on). Of memories with the very same text
    only the keeper of `find_exact_duplicates` takes part. ``score`` is the share of words that both have, by weight.

    It finds copies that differ in case, punctuation, accents, spelling, common abbreviations and synonyms, typing
    errors, wrappers («The user said that»), order of clauses or words, fillers, and copies that break off. Two texts
    of which one has a word more that may be a value, also in its middle, are never merged; nor are «he» and «she»,
    «and» and «or», «starts», «started» and «may start». It is better to leave two copies than to merge two facts.

    It misses the same said in other words, for which `memframe.audit.candidates` ranks candidates; a synonym that is
    not in its short list; a typing error that makes another word («house», «hose») or falls on a name; a copy that is
    cut to less than 0.6 just where a sentence ends, since that is a text of its own.

    Parameters
    ----------
    memories : DataFrame
        Columns as `load_memories` has them; rows without content are left out.
    pairs : SimilarPairs, optional
        Of the same frame, where other checks have them already.

    Examples
    --------
    >>> from memframe.frames import MEMORY_KINDS
    >>> texts = ["Ada is allergic to penicillin.", "Note: Ada is alergic to penicillin", "Ada likes tea."]
    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "content": texts}, columns=list(MEMORY_KINDS))
    >>> find_near_duplicates(memories)[["kind", "id", "related_id", "action"]]
         kind  id related_id action
    0  keeper  m1        NaN   none
    1  typing  m2         m1  merge
    """
    pairs = similar_pairs(memories) if pairs is None else pairs
    ids, rows = memories["id"].iloc[pairs.rows].tolist(), pairs.rows.tolist()
    members = sorted(
        _members(memories, pairs),
        key=lambda one: (rows[one.keeper], one.kind != "keeper", -one.score, rows[one.place]),
    )
    kinds = [member.kind for member in members]
    return findings_frame(
        check="near_duplicate",
        kind=kinds,
        severity=["info" if kind == "keeper" else "low" for kind in kinds],
        id=[ids[member.place] for member in members],
        field="content",
        related_id=[None if member.kind == "keeper" else ids[member.keeper] for member in members],
        group=[n - 1 for n in accumulate(kind == "keeper" for kind in kinds)],
        score=[member.score for member in members],
        evidence=[_SAME[member.kind].format(n=member.n_members) for member in members],
        action=["none" if kind == "keeper" else "merge" for kind in kinds],
    )


def _members(memories: pd.DataFrame, pairs: SimilarPairs) -> Iterator[_Member]:
    """Yield the texts of all clusters of more than one."""
    groups = [sorted(group) for group in pairs.clusters.groups()]
    fullest = [max(group, key=lambda place: (pairs.comparer.fullness(place), -place)) for group in groups]
    first = _preferred(memories, pairs, groups, fullest)
    linked = _best_links(pairs)
    for group in groups:
        keeper = min((place for place in group if place in first), key=first.__getitem__)
        yield _Member(keeper, keeper, len(group), "keeper", 1.0)
        for place in group:
            if place != keeper:
                difference = pairs.comparer.compare(*sorted((place, keeper)))
                if difference.verdict != "near":
                    difference = linked.get(place, difference)
                kind = difference.kind if difference.verdict == "near" else "spelling"
                yield _Member(place, keeper, len(group), kind, difference.score)


def _preferred(
    memories: pd.DataFrame, pairs: SimilarPairs, groups: Sequence[Sequence[int]], fullest: Sequence[int]
) -> dict[int, int]:
    """Rank the texts of each cluster that say as much as any of it, odd ones last."""
    as_full = [
        place
        for group, most in zip(groups, fullest, strict=True)
        for place in group
        if place == most or _says_as_much(pairs.comparer.compare(*sorted((place, most))))
    ]
    rows = memories.iloc[pairs.rows[as_full]]
    odd = oddness(rows["content"].tolist()) + [pairs.comparer.n_slips(place) for place in as_full]
    return dict(zip(as_full, precedence(rows, -np.floor(odd), odd).tolist(), strict=True))


def _says_as_much(difference: Difference) -> bool:
    return difference.verdict == "near" and difference.kind != "truncated"


def _best_links(pairs: SimilarPairs) -> dict[int, Difference]:
    """Map each text to what it is to the most similar one of its cluster."""
    best: dict[int, Difference] = {}
    for left, right, difference in pairs.pairs.that_are("near").each():
        for place in (left, right):
            if place not in best or difference.score > best[place].score:
                best[place] = difference
    return best


# ---- the same text with another value

_NO_STATEMENT = re.compile(
    r"\A\W{0,5}(?:please|can you|could you|would you|bitte|por favor)\b|[{}<>\\|`]|;\s*$|\$[A-Za-z{(]|\(\)|://|\s--?\w|\w=\S|:\s*\Z"
    r"|(?:/[\w.-]+){2}|\dT\d\d:|\w\.(?:md|py|sh|[jt]sx?|json|ya?ml|toml|txt|docx?|pdf)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Requests, code, commands, addresses, names of files, headings, rows of tables."""

_NAMED_BY_NUMBER = re.compile(
    r"(?:\d{4}-\d\d-\d\d[ T]*|\A\W*|[#v@]|\b(?:line|part|phase|step|version|sprint|session|round|no\.?|nr\.?|pr|issue"
    r"|ticket|task|test|page|section|chapter|search|query|run|day|week|attempt|batch|iteration|option|level|item|row"
    r"|release|build|copyright(?: \(c\))?)\W{0,2})\Z",
    re.IGNORECASE,
)
"""Text before a number that is the name of one of several things, or the time in a log."""

_LONGEST_VALUE = 6
"""Digits of a number that is a value; what is longer identifies something."""
_BEGUN_DATE = re.compile(rf"(?:\d{{4}}-(?:\d\d-)?|\b(?:{'|'.join(MONTHS)})\.? )\Z", re.IGNORECASE)
_SET_APART = re.compile(r"(?:\A\W*|[—–(:,-]\s*)\Z")
"""Text before a date that dates a report, an entry or a heading, and is no part of what a sentence says."""


class _ValueChange(NamedTuple):
    """An older and a newer text, and where and how the older one was written otherwise."""

    older: int
    newer: int
    group: int
    kind: str
    score: float
    span: tuple[int, int] | None
    evidence: str


def find_changed_values(memories: pd.DataFrame, *, pairs: SimilarPairs | None = None) -> pd.DataFrame:
    """Find memories of one user that are the same statement with another value.

    One row a pair: ``id`` is the older memory, ``related_id`` the newer one, ``start`` and ``end`` where in the older
    one the value stands, ``group`` all that differ from each other in values. Kinds are ``number``, ``date``, ``name``
    and ``polarity`` (one denies what the other says). Nothing is proposed but to look: the newer one may replace the
    older, or both are true.

    It finds one exchanged value in statements that have at least four words in common which carry a value, and all
    else, but for typing errors and spellings. Of two clusters of near-duplicates it names the closest pair, and each
    memory with at most three others. A sentence that more than six memories of the user fill in their own way is a
    list or a log, and left alone. It does not look for another thing, colour or place in small letters: on real
    memories that is another fact, and no change.

    Parameters
    ----------
    memories : DataFrame
        Columns as `load_memories` has them; rows without content are left out.
    pairs : SimilarPairs, optional
        Of the same frame, where other checks have them already.

    Examples
    --------
    >>> from memframe.frames import MEMORY_KINDS
    >>> texts = ["The monthly rent of Ada's flat is 640 pounds.", "The monthly rent of Ada's flat is 665 pounds."]
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "content": texts}, columns=list(MEMORY_KINDS))
    >>> find_changed_values(memories)[["kind", "id", "related_id", "evidence"]]
         kind  id related_id   evidence
    0  number  m1         m2  640 → 665
    """
    pairs = similar_pairs(memories) if pairs is None else pairs
    changes = list(_changes(memories, pairs))
    ids, rows = memories["id"].iloc[pairs.rows].tolist(), pairs.rows.tolist()
    changes.sort(key=lambda one: (one.group, -one.score, rows[one.older], rows[one.newer]))
    spans = [change.span for change in changes]
    return findings_frame(
        check="changed_value",
        kind=[change.kind for change in changes],
        severity=["medium" if change.kind == "polarity" else "low" for change in changes],
        id=[ids[change.older] for change in changes],
        field="content",
        start=[None if span is None else span[0] for span in spans],
        end=[None if span is None else span[1] for span in spans],
        related_id=[ids[change.newer] for change in changes],
        group=[change.group for change in changes],
        score=[change.score for change in changes],
        evidence=[change.evidence for change in changes],
        action="review",
    )


def _changes(memories: pd.DataFrame, pairs: SimilarPairs) -> Iterator[_ValueChange]:
    chosen = memories.iloc[pairs.rows]
    contents, age = chosen["content"].tolist(), age_order(chosen)
    found = [
        (pair, written)
        for pair in pairs.changed
        for written in (_Written(contents[pair.left], contents[pair.right], pair.difference),)
        if written.is_statement(pair.difference.kind)
        and (pair.difference.kind != "word" or written.are_names())
    ]
    delicate = Delicate(text_column(chosen, "content"))
    number = _group_numbers([pair for pair, _ in found], pairs.rows.tolist())
    for (left, right, difference), written in found:
        is_newer = bool(age[left] > age[right])
        older, newer = (right, left) if is_newer else (left, right)
        before, after = (
            shown(words, delicate=delicate.any_of(older, newer))
            for words in written.shown()[:: -1 if is_newer else 1]
        )
        kind = "name" if difference.kind == "word" else difference.kind
        kind = "date" if kind == "number" and written.is_of_month() else kind
        evidence = f"{before} → {after}"
        if kind == "polarity":
            values = f" ({before or '-'} → {after or '-'})" if before or after else ""
            evidence = f"one says the opposite of the other{values}"
        yield _ValueChange(
            older, newer, number[left], kind, difference.score, written.span(is_newer), evidence
        )


def _group_numbers(found: Sequence[Pair], rows: Sequence[int]) -> dict[int, int]:
    """Number the groups of texts that are linked by changes, in the order of their first rows."""
    groups = Clusters(len(rows))
    for left, right, _ in found:
        groups.join(left, right)
    places = {place for left, right, _ in found for place in (left, right)}
    least = {groups.of(place): min(rows[member] for member in groups.members(place)) for place in places}
    number = {group: n for n, group in enumerate(sorted(least, key=least.__getitem__))}
    return {place: number[groups.of(place)] for place in places}


class _Written:
    """Two texts as they are written, and where in them the exchanged words stand."""

    def __init__(self, left: str, right: str, difference: Difference) -> None:
        matches = [list(SPLIT_WORD.finditer(text)) for text in (left, right)]
        plain = [[_plain(match[0]) for match in side] for side in matches]
        self._words = difference.left, difference.right
        self._found: tuple[list[re.Match[str]], list[re.Match[str]]] = [], []
        for op in Levenshtein.opcodes(*plain):
            if op.tag != "equal":
                self._found[0].extend(_those(matches[0][op.src_start : op.src_end], difference.left))
                self._found[1].extend(_those(matches[1][op.dest_start : op.dest_end], difference.right))
        self._texts = left, right
        self._is_shouted = any(text.isupper() or text.istitle() for text in (left, right))

    def is_statement(self, kind: str) -> bool:
        """Tell whether both texts state something that may change: no request, code, part of a list or event."""
        if any(map(_NO_STATEMENT.search, self._texts)):
            return False
        if kind == "polarity":
            return True
        return all(map(self._may_change, self._found))

    def _may_change(self, found: Sequence[re.Match[str]]) -> bool:
        if not found or sum(map(str.isdecimal, found[0][0])) == 0:
            return True
        before = found[0].string[: found[0].start()]
        return not (
            any(sum(map(str.isdecimal, one[0])) > _LONGEST_VALUE for one in found)
            or _NAMED_BY_NUMBER.search(before[-40:])
            or (_BEGUN_DATE.search(before) and _SET_APART.search(_BEGUN_DATE.sub("", before)))
        )

    def is_of_month(self) -> bool:
        """Tell whether a month stands beside what was exchanged: «3 May»."""
        if not self._found[0]:
            return False
        text, (start, end) = self._texts[0], self._found[0][0].span()
        beside = (
            SPLIT_WORD.findall(text[max(0, start - 20) : start])[-1:]
            + SPLIT_WORD.findall(text[end : end + 20])[:1]
        )
        return any(_plain(word) in MONTHS for word in beside)

    def are_names(self) -> bool:
        """Tell whether all exchanged words are written like names, and none is a common word."""
        return (
            all(self._found)
            and not self._is_shouted
            and all(map(_is_name, (*self._found[0], *self._found[1])))
        )

    def shown(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return the exchanged words of both texts as they are written, as far as they were found."""
        left, right = ([match[0] for match in side] for side in self._found)
        return left or self._words[0], right or self._words[1]

    def span(self, side: int) -> tuple[int, int] | None:
        """Return where the exchanged words of one text stand, if hardly anything lies between, else the first."""
        found = self._found[side]
        if not found:
            return None
        first, last = found[0], found[-1]
        between = SPLIT_WORD.findall(first.string[first.start() : last.end()])
        return (first.start(), last.end()) if len(between) <= len(found) + 1 else first.span()


def _is_name(match: re.Match[str]) -> bool:
    word = _plain(match[0])
    if not match[0][0].isupper() or word in CALENDAR or match.string[match.end() : match.end() + 1] == ":":
        return False
    begins = (
        not match.string[: match.start()].strip() or match.string[: match.start()].rstrip()[-1] in ".!?:;\n-"
    )
    return is_name(word) or (not begins and not is_common(word))


def _those(matches: Iterable[re.Match[str]], words: Sequence[str]) -> list[re.Match[str]]:
    return [match for match in matches if any(_plain(match[0]).startswith(word) for word in words)]


def _plain(word: str) -> str:
    """Return a word as `memframe.audit.tokenize` has it."""
    plain = without_accents(unicodedata.normalize("NFKC", word).lower())
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", plain)
    return plain.replace(":", MINUTES).replace(".", DECIMAL).replace(",", DECIMAL)

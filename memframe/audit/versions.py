"""Versions: older wordings and states of one memory, in groups with the newest one.

Two memories are versions of each other for one of four reasons. The newer one states a change («switched from tea to
coffee», `memframe.audit.superseded`); both are the same statement with different values
(`memframe.audit.changed_values`); both begin with the same label («SIP server: ...»); or they share most words. Shared
words do not distinguish a version from a second fact about the same thing, so versions are for a person to decide: no
rule deletes or merges one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.candidates import Reach, nearest_older
from memframe.audit.changed_values import find_value_changes
from memframe.audit.evidence import SensitiveTexts, describe_difference
from memframe.audit.findings import Finding, list_findings
from memframe.audit.keeper import age_order
from memframe.audit.similarity.cluster import Clusters, Link, SimilarPairs, similar_pairs
from memframe.audit.similarity.minhash import distinct
from memframe.audit.superseded import find_names, find_replacements
from memframe.audit.text import Memories, MemoryTexts, Rows
from memframe.audit.tokenize import Words, words_of

_MIN_SIMILARITY = 0.6
"""Least cosine similarity of an older wording. With .5, a twentieth more are found, but no further rewrite that a
commit declares."""

_MIN_HEAVY = 6
"""Fewest words with a value of either text; shorter ones («I like to read») are similar without being one memory. With
4, histories of 28 stores have 73 older texts more, of which owners removed 62 %, and no further declared rewrite."""

_MIN_SHARED = 0.5
"""Least share of the words of two texts that both have. Similarity depends on rare words, so that two facts about one
long name are as similar as two wordings of one fact. This bound costs 3 of 111 declared rewrites."""

_MIN_APART = np.timedelta64(60, "s")
"""Least time between two wordings; texts of one moment are items of a list, however similar they are."""

_MAX_MEMBERS = 8
"""Most wordings of one memory, and most texts with one label; more are a log or a template.

With up to 64 texts of twelve or more words, and with labels behind the box of a task, 32 more of 1,097 declared
rewrites are named in the histories of 124 stores, but 65 entries of logs of sessions in real stores as well.
"""

_MAX_SHORT = 3
"""Most texts with one label if one of them has fewer than six words with a value; more are a list («Done: ...»)."""

_MIN_LABELLED = 0.3
"""Least share of the words of two texts with the same label that both have. On histories of 28 stores, labels find 11
declared rewrites more, and owners removed 74 % of 66 older texts. With 0, there are 106 texts more, of which they
removed 57 %."""

_MIN_SAME_HEADING = 0.15
"""The same share for texts under one heading, where a label is a field («Model: ...»). On histories of 28 stores, this
finds 10 of 131 declared rewrites more, and owners removed 35 of 36 older texts. With 0, it finds 2 more, and entries of
daily notes («Deliverable: ...»), of which a third are about other things."""

_MIN_HEADINGS_APART = 0.7
"""Least cosine similarity of an older wording under a heading that names something else. On histories of 28 stores,
owners removed 7 of 13 less similar ones, and 41 of 52 of all others."""

_LABEL = re.compile(
    r"\A[\s|>-]*+(?:\*\*(?P<bold>[^*\n]{2,80}?)\s*\*\*"
    "|[*_`]*(?P<plain>[^:\N{FULLWIDTH COLON}|*\N{EM DASH}\N{RIGHTWARDS ARROW}\n]{2,80}?)"
    r"\s*(?::(?=[\s*])|[\N{FULLWIDTH COLON}|\N{EM DASH}\N{RIGHTWARDS ARROW}]))"
)
"""Label of a text: its beginning before a colon, dash or arrow, in bold, or the first cell of a table row.

Blanks before it are matched possessively, because a text of thousands of blanks took minutes with backtracking.
"""

_MIN_UNDER_HEADING = 3
"""Fewest texts with one heading for which the heading is not compared, because it distinguishes none of them."""

_REACH = Reach(n_words=8, n_postings=40, n_scored=10)
"""Bounds of the search, at a third of the cost of that for a judge, because similar texts share their rarest words.

On the histories of 37 stores this finds 178 of the 180 rewrites that the unbounded search finds.
"""


def find_versions(
    memories: Memories, *, pairs: SimilarPairs | None = None, now: pd.Timestamp | None = None
) -> pd.DataFrame:
    """Find older wordings and states of a memory, in groups; each older one is for review.

    There is one row per memory. The newest of a group has the kind ``newest``, the action ``none`` and no
    ``related_id``; the others have its id as ``related_id``. Their kinds are ``replaced`` (a newer one states that it
    no longer holds), ``value`` (the same statement with another number, date, name or polarity, or another text behind
    the same label; ``start`` and ``end`` are the span of the value) and ``rewritten`` (most of its words are in a newer
    one). ``score`` is the similarity of the memory to the one that makes it a version.

    Two kinds of versions are not found: changes in other words («vegetarian», «eats steak»), and wordings of fewer than
    six words with a value. For these, `memframe.audit.candidates` ranks the nearest older memories. Copies are found by
    the checks on duplicates.

    Parameters
    ----------
    memories : DataFrame
        Frame with the columns of `load_memories`; rows without content are left out. Memories without a time have no
        order, so that none of them is ``rewritten``.
    pairs : SimilarPairs, optional
        Similar pairs of the same frame, if other checks have computed them.
    now : Timestamp, optional
        Moment after which memories replace nothing.

    Examples
    --------
    >>> from memframe.frames import MEMORY_KINDS
    >>> texts = ["Ada lives in Leeds.", "Ada no longer lives in Leeds.", "Ada likes tea."]
    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "content": texts}, columns=list(MEMORY_KINDS))
    >>> find_versions(memories)[["kind", "id", "related_id", "action"]]
           kind  id related_id  action
    0    newest  m2        NaN    none
    1  replaced  m1         m2  review
    """
    texts = MemoryTexts.of(memories)
    pairs = similar_pairs(texts) if pairs is None else pairs
    if len(pairs.rows) < 2:
        return list_findings(())
    chosen = texts.take(pairs.rows)
    age, n_texts = age_order(chosen), len(chosen)
    values = [*find_value_changes(chosen, pairs), *_find_labelled(chosen, pairs)]
    links = [
        *find_replacements(chosen, pairs),
        *_of_one_subject(values, chosen),
        *_find_rewritten(chosen, pairs),
    ]
    if now is not None and links:
        created = chosen.memories["created_at"]
        is_known = (created.isna() | (created <= now)).to_numpy()
        links = [link for link in links if is_known[link.newer]]
    groups = Clusters(n_texts)
    for link in links:
        groups.join(link.older, link.newer)
    best = _best_by_text(links)
    ids = chosen.ids
    found = []
    for number, group in enumerate(sorted(groups.groups(), key=lambda group: min(pairs.rows[group]))):
        newest = max(group, key=age.__getitem__)
        evidence = f"the newest of {len(group)} versions"
        found.append(
            Finding(
                "version",
                "newest",
                "info",
                ids[newest],
                "content",
                group=number,
                score=1.0,
                evidence=evidence,
                action="none",
            )
        )
        for place in sorted(set(group) - {newest}, key=age.__getitem__, reverse=True):
            link = best[place]
            start, end = link.span if link.span and link.older == place else (None, None)
            found.append(
                Finding(
                    check="version",
                    kind=link.kind,
                    severity=link.severity,
                    id=ids[place],
                    field="content",
                    start=start,
                    end=end,
                    related_id=ids[newest],
                    group=number,
                    score=link.score,
                    evidence=link.evidence,
                    action="review",
                )
            )
    return list_findings(found)


def _best_by_text(links: Sequence[Link]) -> dict[int, Link]:
    """Choose for each text the link that explains it: first as an older text, then as a newer one.

    Links are in the order of their kinds, the surest first.
    """
    best: dict[int, Link] = {}
    for link in links:
        best.setdefault(link.older, link)
    for link in links:  # for a text without a newer one that is not the newest of its group
        best.setdefault(link.newer, link)
    return best


def _find_labelled(chosen: MemoryTexts, pairs: SimilarPairs) -> Iterator[Link]:
    """Yield pairs of consecutive texts with the same label and some words in common, except items of lists."""
    created, titles = _times_of(chosen), _titles_of(chosen)
    contents, ends = chosen.column("content").to_pylist(), dict[int, int]()
    under_heading: dict[tuple[int, str, str], list[int]] = defaultdict(list)
    labelled: dict[tuple[int, str], list[int]] = defaultdict(list)
    for place, (text, owner) in enumerate(zip(contents, pairs.owners.tolist(), strict=True)):
        if found := _LABEL.match(text):
            label = (found["bold"] or found["plain"]).strip("`_: \N{FULLWIDTH COLON}").lower()
            labelled[owner, label].append(place)
            title = titles[place]
            if isinstance(title, str):
                under_heading[owner, title.casefold(), label].append(place)
            ends[place] = found.end()
    words = pairs.comparer.words
    heavy, n_heavy, linked = words.heavy_classes(), _count_heavy(words), set[int]()
    groups = [(_MIN_SAME_HEADING, places) for places in under_heading.values()]
    groups += [(_MIN_LABELLED, places) for places in labelled.values()]
    for min_share, places in groups:
        is_long = bool((n_heavy[places] >= _MIN_HEAVY).all())
        if not 1 < len(places) <= (_MAX_MEMBERS if is_long else _MAX_SHORT):
            continue
        places.sort(key=created.__getitem__)
        if not (np.diff(created[places]) >= _MIN_APART).all():  # False if a time is missing
            continue
        for older, newer in pairwise(places):
            share = _share_of_words(words, heavy, newer, older)
            is_new = (
                older not in linked and not pairs.is_repeated(newer, older) and older not in pairs.repeats
            )
            if share >= min_share and is_new:
                linked.add(older)
                yield Link(
                    older,
                    newer,
                    "value",
                    share,
                    "a newer memory begins the same and says something else",
                    (ends[older], len(contents[older])),
                )


def _of_one_subject(links: Iterable[Link], chosen: MemoryTexts) -> Iterator[Link]:
    """Yield links, without those between texts with a label under titles that name different things.

    «Name: ...» may be about a user and about an agent. On histories of 47 stores, owners removed all of 76 older values
    under one heading, 22 of 31 under headings that share a word, and 16 of 44 under other headings; commits declare 21,
    4 and none of these as rewritten.
    """
    contents, titles = chosen.column("content").to_pylist(), _titles_of(chosen)
    for link in links:
        if not (_LABEL.match(contents[link.older]) and _are_apart(titles[link.older], titles[link.newer])):
            yield link


_TITLE_WORD = re.compile(r"[^\W\d_]{3,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""A word of a title; in Chinese, Japanese and Korean, a character."""


def _are_apart(title: object, other: object) -> bool:
    """Return True if both titles have words, and none in common.

    >>> _are_apart("Synology NAS", "Kim (agent)"), _are_apart("NAS at home", "The NAS"), _are_apart(None, "The NAS")
    (True, False, False)
    """
    if not (isinstance(title, str) and isinstance(other, str)):
        return False
    one, two = ({*_TITLE_WORD.findall(text.casefold())} for text in (title, other))
    return bool(one and two) and not one & two


def _titles_of(chosen: MemoryTexts) -> Sequence[object]:
    return chosen.column("title").to_pylist() if "title" in chosen.memories.columns else [None] * len(chosen)


def _times_of(chosen: MemoryTexts) -> NDArray[np.datetime64]:
    return pd.to_datetime(chosen.memories["created_at"], utc=True).to_numpy("datetime64[us]")


def _find_rewritten(chosen: MemoryTexts, pairs: SimilarPairs) -> Iterator[Link]:
    """Yield texts with their nearest older one, if they share most words and are no copies, log or template."""
    words = _without_headings(chosen, pairs)
    near = nearest_older(
        words,
        pairs.owners,
        age_order(chosen),
        n=1,
        min_score=_MIN_SIMILARITY,
        reach=_REACH,
    )
    if not len(near.newer):
        return
    created = _times_of(chosen)
    n_heavy = _count_heavy(words)
    is_long = np.minimum(n_heavy[near.newer], n_heavy[near.older]) >= _MIN_HEAVY
    is_later = created[near.newer] - created[near.older] >= _MIN_APART  # False if a time is missing
    heavy, contents, titles = words.heavy_classes(), chosen.column("content").to_pylist(), _titles_of(chosen)

    def may_be_versions(newer: int, older: int, score: float) -> bool:
        return (
            not pairs.is_repeated(newer, older)
            and older not in pairs.repeats
            and _share_of_words(words, heavy, newer, older) >= _MIN_SHARED
            and not _name_different_people(contents[newer], contents[older])
            and (score >= _MIN_HEADINGS_APART or not _are_apart(titles[newer], titles[older]))
        )

    columns = (column.tolist() for column in (near.newer, near.older, near.score))
    is_version = [
        is_candidate and may_be_versions(newer, older, score)
        for is_candidate, newer, older, score in zip(is_long & is_later, *columns, strict=True)
    ]
    kept = np.flatnonzero(is_version)
    kept = kept[
        _have_enough_words(contents, near.newer[kept]) & _have_enough_words(contents, near.older[kept])
    ]
    groups, sensitive = Clusters(len(chosen)), SensitiveTexts(chosen.column("content"))
    for newer, older in zip(near.newer[kept].tolist(), near.older[kept].tolist(), strict=True):
        groups.join(newer, older)
    for place in kept.tolist():
        newer, older, score = int(near.newer[place]), int(near.older[place]), float(near.score[place])
        if len(groups.members(newer)) <= _MAX_MEMBERS:
            evidence = f"{100 * score:.0f} % like a newer memory, by the words that both have"
            if not sensitive.any_of(older, newer):
                evidence += describe_difference(*map(pairs.comparer.words.of, (older, newer)))
            yield Link(older, newer, "rewritten", score, evidence)


_ADDRESS = r"""(?:\b[a-z]+://|\bgit@|~?/|\b[A-Z]:\\|\b[\w-]+\.[a-z]{2,10}\b)[\w.%@-]*(?:[/\\:][\w.%@-]+)+"""
"""An address or a path, for RE2."""


def _have_enough_words(contents: Sequence[str], rows: Rows) -> NDArray[np.bool_]:
    """Return True for texts with enough words if an address counts as one: addresses of one owner share many words."""
    texts = pa.array([contents[row] for row in rows.tolist()], pa.large_string())
    return _count_heavy(words_of(pc.replace_substring_regex(texts, _ADDRESS, " address "))) >= _MIN_HEAVY


def _share_of_words(words: Words, heavy: NDArray[np.bool_], row: int, other: int) -> float:
    """Return the share of the distinct words with a value of two texts that both have."""
    one, two = (set(ids[heavy[ids]].tolist()) for ids in map(words.class_ids_of, (row, other)))
    return len(one & two) / max(1, len(one | two))


def _name_different_people(text: str, other: str) -> bool:
    """Return True if both texts name people, and none in common.

    >>> _name_different_people("Ada no longer likes long letters", "Tom no longer likes long letters")
    True
    """
    one, two = find_names(text), find_names(other)
    return bool(one and two) and not one & two


def _without_headings(chosen: MemoryTexts, pairs: SimilarPairs) -> Words:
    """Return the words of texts, without headings that several texts of one user have."""
    texts = chosen.column("content")
    if len(texts) < _MIN_UNDER_HEADING:
        return pairs.comparer.words
    heading = pc.struct_field(pc.extract_regex(texts, r"^(?P<heading>[^:\n]{1,80}[:\n])"), "heading")
    if heading.null_count == len(heading):
        return pairs.comparer.words
    keys = pd.Series(heading.to_pylist()) + "\0" + pd.Series(pairs.owners).astype(str)
    is_shared = (keys.groupby(keys).transform("size") >= _MIN_UNDER_HEADING).fillna(False).astype(bool)
    if not is_shared.any():
        return pairs.comparer.words
    words, rows = pairs.comparer.words, np.flatnonzero(is_shared)
    with_heading = texts.take(pa.array(rows))
    bare = pc.replace_substring_regex(with_heading, r"^[^:\n]{1,80}[:\n]", "", max_replacements=1)
    places = np.arange(len(words))
    places[rows] = len(words) + np.arange(len(rows))
    return words.join(words_of(bare)).take(places).compact()


def _count_heavy(words: Words) -> Rows:
    """Count the distinct words of each text that carry a value; words of one character count half."""
    is_character = (len(name) == 1 and not name.isascii() for name in words.classes)
    n_halves = np.fromiter((2 - is_half for is_half in is_character), np.int64, len(words.classes))
    heavy = words.heavy()
    keys = distinct(words.rows()[heavy] * len(words.classes) + words.class_ids[heavy])
    rows, class_ids = np.divmod(keys, max(1, len(words.classes)))
    return np.bincount(rows, weights=n_halves[class_ids], minlength=len(words)).astype(np.int64) // 2

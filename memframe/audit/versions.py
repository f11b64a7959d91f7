"""Versions: older wordings and states of one memory, with the newest of them named.

Four things make two memories versions of each other. The newer one says so («switched from tea to coffee»,
`memframe.audit.superseded`); it is the same statement with another value (`memframe.audit.changed_values`); it begins
with the same label («SIP server: ...»); or most of its words are those of the older one, which no rule can tell from a
second fact about the same thing. Such pairs are joined to groups, for a person to read: no version is deleted or merged
by rule.
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
"""Cosine similarity of an older wording. At .5 a twentieth more are named and no rewrite that a commit declares."""

_MIN_HEAVY = 6
"""Words with a value of either text: shorter ones («I like to read») are alike without being one memory. At 4 it were
73 older texts more on histories of 28 stores, of which owners removed 62 %, and no declared rewrite."""

_MIN_SHARED = 0.5
"""Share of the words of two texts that both have. Similarity weighs rare words, so that two facts about one long name
are as similar as two wordings of one fact; this costs 3 of 111 declared rewrites."""

_MIN_APART = np.timedelta64(60, "s")
"""Shortest time between two wordings: texts of one moment are items of a list, however alike they are."""

_MAX_MEMBERS = 8
"""Most wordings of one memory, and most texts with one label: more are a log or a template, and replace nothing.

With up to 64 texts of twelve or more words, and with labels behind the box of a task, 32 more of 1,097 declared
rewrites are named in the histories of 124 stores, but 65 entries of logs of sessions in real stores as well.
"""

_MAX_SHORT = 3
"""Most texts with one label where some have fewer than six words with a value: «Done: ...» begins a list."""

_MIN_LABELLED = 0.3
"""Share of the words of two texts with the same label that both have. On histories of 28 stores this finds 11 declared
rewrites more, and of 66 older texts owners removed 74 %; at 0 it were 106 texts more, of which they removed 57 %."""

_MIN_SAME_HEADING = 0.15
"""The same for texts under one heading, where a label is a field («Model: ...»). On histories of 28 stores this finds
10 of 131 declared rewrites more, and owners removed 35 of 36 older texts; at 0 it were 2 more, and entries of daily
notes («Deliverable: ...»), of which a third are about other things."""

_MIN_HEADINGS_APART = 0.7
"""Cosine similarity of an older wording under a heading that names something else: of 13 less similar ones on histories
of 28 stores owners removed 7, of all others 41 of 52."""

_LABEL = re.compile(
    r"\A[\s|>-]*+(?:\*\*(?P<bold>[^*\n]{2,80}?)\s*\*\*"
    "|[*_`]*(?P<plain>[^:\N{FULLWIDTH COLON}|*\N{EM DASH}\N{RIGHTWARDS ARROW}\n]{2,80}?)"
    r"\s*(?::(?=[\s*])|[\N{FULLWIDTH COLON}|\N{EM DASH}\N{RIGHTWARDS ARROW}]))"
)
"""Beginning of a text that says what it is about: before a colon, dash or arrow, in bold, or first in a row.

Its blanks are taken once, as a text of thousands of them took minutes when each was tried as part of the label.
"""

_MIN_UNDER_HEADING = 3
"""Texts under one heading from which on it is left out, because it says nothing about any single one."""

_REACH = Reach(n_words=8, n_postings=40, n_scored=10)
"""Bounds of the search, at a third of the cost of one for a judge: a text as similar as this shares its rarest words.

On the histories of 37 stores this finds 178 of the 180 rewrites that the whole search finds.
"""


def find_versions(
    memories: Memories, *, pairs: SimilarPairs | None = None, now: pd.Timestamp | None = None
) -> pd.DataFrame:
    """Find older wordings and states of a memory, in groups; each is proposed for review.

    One row a memory. The newest of a group has the kind ``newest``, the action ``none`` and no ``related_id``; the
    others have it as ``related_id``. Their kinds are ``replaced`` (a newer one says that it no longer holds), ``value``
    (the same statement with another number, date, name or polarity, or another text behind the same label; ``start``
    and ``end`` are its place) and ``rewritten`` (most of its words are in a newer one). ``score`` is how alike the two
    are that make it a version.

    It misses what a newer memory says in other words («vegetarian», «eats steak»), and wordings of fewer than six
    words with a value; for these `memframe.audit.candidates` ranks the nearest older memories. Copies are left to the
    checks on duplicates.

    Parameters
    ----------
    memories : DataFrame
        Columns as `load_memories` has them; rows without content are left out. Memories without a time have no order,
        so that none of them is called rewritten.
    pairs : SimilarPairs, optional
        Of the same frame, where other checks have them already.
    now : Timestamp, optional
        Leaves out what memories created later would replace.

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
    """Choose for each text the link that says most about it: one to a newer text first, then the surest kind."""
    best: dict[int, Link] = {}
    for link in links:  # from the surest kind to the least sure
        best.setdefault(link.older, link)
    for link in links:  # a text that is no older one of any, in a group of which another is the newest
        best.setdefault(link.newer, link)
    return best


def _find_labelled(chosen: MemoryTexts, pairs: SimilarPairs) -> Iterator[Link]:
    """Yield texts with the next newer one that begins with the same label and has some of its words; not of lists."""
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
        if not (np.diff(created[places]) >= _MIN_APART).all():  # no time is never later
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
    """Yield links but those of a label under titles that name different things.

    «Name: ...» is said of a user and of an agent. On histories of 47 stores owners removed all of 76 older values under
    one heading, 22 of 31 under headings that share a word and 16 of 44 under others; commits declare 21, 4 and none of
    these as rewritten.
    """
    contents, titles = chosen.column("content").to_pylist(), _titles_of(chosen)
    for link in links:
        if not (_LABEL.match(contents[link.older]) and _are_apart(titles[link.older], titles[link.newer])):
            yield link


_TITLE_WORD = re.compile(r"[^\W\d_]{3,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""A word of a title, or a character where a character is a word."""


def _are_apart(title: object, other: object) -> bool:
    """Return True if both titles name something, and nothing in common.

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
    """Yield texts with the nearest older one, where most words are the same; not of copies, logs and templates."""
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
    is_later = created[near.newer] - created[near.older] >= _MIN_APART  # no time is never later
    heavy, contents, titles = words.heavy_classes(), chosen.column("content").to_pylist(), _titles_of(chosen)
    is_close = near.score >= _MIN_HEADINGS_APART
    kept = np.array(
        [
            place
            for place in np.flatnonzero(is_long & is_later).tolist()
            if not pairs.is_repeated(int(near.newer[place]), int(near.older[place]))
            and int(near.older[place]) not in pairs.repeats
            and _share_of_words(words, heavy, near.newer[place], near.older[place]) >= _MIN_SHARED
            and not _name_others(contents[near.newer[place]], contents[near.older[place]])
            and (is_close[place] or not _are_apart(titles[near.newer[place]], titles[near.older[place]]))
        ],
        np.int64,
    )
    kept = kept[_say_enough(contents, near.newer[kept]) & _say_enough(contents, near.older[kept])]
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


def _say_enough(contents: Sequence[str], rows: Rows) -> NDArray[np.bool_]:
    """Return True for texts that say enough if an address is one word: addresses of one owner share many."""
    texts = pa.array([contents[row] for row in rows.tolist()], pa.large_string())
    return _count_heavy(words_of(pc.replace_substring_regex(texts, _ADDRESS, " address "))) >= _MIN_HEAVY


def _share_of_words(words: Words, heavy: NDArray[np.bool_], row: int, other: int) -> float:
    """Return the share of the different words with a value of two texts that both have."""
    one, two = (set(ids[heavy[ids]].tolist()) for ids in map(words.class_ids_of, (row, other)))
    return len(one & two) / max(1, len(one | two))


def _name_others(text: str, other: str) -> bool:
    """Return True if both texts name people, and not the same ones: what is alike in them is said of different people.

    >>> _name_others("Ada no longer likes long letters", "Tom no longer likes long letters")
    True
    """
    one, two = find_names(text), find_names(other)
    return bool(one and two) and not one & two


def _without_headings(chosen: MemoryTexts, pairs: SimilarPairs) -> Words:
    """Return the words of texts without the headings that several texts of one user stand under."""
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
    under_it = texts.take(pa.array(rows))
    bare = pc.replace_substring_regex(under_it, r"^[^:\n]{1,80}[:\n]", "", max_replacements=1)
    places = np.arange(len(words))
    places[rows] = len(words) + np.arange(len(rows))
    return words.join(words_of(bare)).take(places).compact()


def _count_heavy(words: Words) -> Rows:
    """Count the different words of each text that carry a value; where a character is a word, two count as one."""
    is_character = (len(name) == 1 and not name.isascii() for name in words.classes)
    half = np.fromiter((2 - alone for alone in is_character), np.int64, len(words.classes))
    heavy = words.heavy()
    keys = distinct(words.rows()[heavy] * len(words.classes) + words.class_ids[heavy])
    rows, class_ids = np.divmod(keys, max(1, len(words.classes)))
    return np.bincount(rows, weights=half[class_ids], minlength=len(words)).astype(np.int64) // 2

"""Fields: empty fields, scores on several scales, tags with the same meaning, content that could not be opened."""

from __future__ import annotations

import re
from ast import literal_eval
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, permutations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from memframe.audit.findings import Finding, Proposal, Severity, findings_frame, join_findings, list_findings
from memframe.audit.lexicon import without_accents
from memframe.audit.secrets.keys import is_token_alone
from memframe.audit.text import Memories, MemoryTexts, mask_text
from memframe.display import number_of
from memframe.envelope.detect import looks_sealed
from memframe.errors import FrameError, check_kind
from memframe.fields import MEMORY_FIELDS, NAMES_FIELDS
from memframe.frames import read_names, read_numbers, read_texts, require_column

ScoreCells = NDArray[np.float64]

_MISSING_SEVERITIES: dict[str, Severity] = {
    field.name: field.if_missing for field in MEMORY_FIELDS if field.if_missing
}
"""Severity of a missing field, by the name of the field."""


def find_missing(memories: Memories) -> pd.DataFrame:
    """Find fields that are empty or hold only white space.

    Content that could not be opened is not missing; `find_sealed` finds it. Fields without a column in the frame are
    not missing either.

    Parameters
    ----------
    memories : DataFrame
        Frame with ``id``.

    Returns
    -------
    DataFrame
        Findings, one per memory and field; ``kind`` and ``field`` are the name of the field. An audit counts them in
        one finding for each field.

    Examples
    --------
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "title": ["Tea", None], "tags": [(), ("home",)]})
    >>> find_missing(memories)[["kind", "id", "severity"]]
        kind  id severity
    0  title  m2      low
    1   tags  m1      low
    """
    memories = MemoryTexts.of(memories).memories
    ids, fields = list[str](), list[str]()
    for field in _MISSING_SEVERITIES:
        if field not in memories.columns:
            continue
        if field in NAMES_FIELDS:
            is_empty = np.array([len(cell) == 0 for cell in read_names(memories, field)], bool)
        else:
            column = read_texts(memories, field)
            is_empty = (column.isna() | (column.str.strip() == "")).to_numpy(bool)
        if field == "content" and "content_error" in memories.columns:
            is_empty = is_empty & memories["content_error"].isna().to_numpy()
        ids += memories["id"][is_empty].tolist()
        fields += [field] * int(is_empty.sum())
    evidence = {field: f"no {field}" for field in _MISSING_SEVERITIES}
    return findings_frame(
        check="missing",
        kind=fields,
        severity=[_MISSING_SEVERITIES[field] for field in fields],
        id=ids,
        field=fields,
        score=1.0,
        evidence=[evidence[field] for field in fields],
        action=["review" if field == "content" else "none" for field in fields],
    )


_Row = tuple[int, str, Severity, float, str, Proposal]
"""One finding: row of its memory, kind, severity, score, evidence and action."""


def _make_findings(memories: pd.DataFrame, check: str, field: str, rows: Iterable[_Row]) -> pd.DataFrame:
    ids = memories["id"].tolist()
    return list_findings(
        Finding(check, kind, severity, ids[row], field, score=score, evidence=evidence, action=action)
        for row, kind, severity, score, evidence, action in rows
    )


HIGHEST = 5.0
"""Top of the scale from 1 to 5; the specification allows 0 to 1 as well."""

MIN_ROWS = 10
"""Fewest memories of a source for which a constant confidence is found; in fewer it may be a coincidence."""

_NO_SOURCE = "(no source)"


def find_scores(memories: Memories) -> pd.DataFrame:
    """Find importance above 1 among importance of 0 to 1, impossible scores, and confidence that never changes.

    An importance of exactly 1 may be the top of one scale or the bottom of the other. It is for review if the scores of
    its source directly before and after it are above 1. If a store has scores above 1 and none below, all are on the
    scale from 1 to 5, which is one finding of severity "info" for each memory.

    Parameters
    ----------
    memories : DataFrame
        Frame with ``id``; the check reads ``importance`` and ``confidence``, by ``source`` and ``created_at``.

    Returns
    -------
    DataFrame
        Findings of the kinds ``mixed_scale`` and ``scale_1_to_5`` (rescale to `rescaled`), ``ambiguous_scale``,
        ``out_of_range`` and ``constant_confidence`` (a ``group`` for each source).

    Examples
    --------
    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "importance": [0.4, 4.0, 7.0]})
    >>> find_scores(memories)[["kind", "id", "evidence", "action"]]
               kind  id                                         evidence   action
    0  out_of_range  m3             importance is 7, beyond both scales   review
    1   mixed_scale  m2  importance is 4, where others are at most 1: 0.8  rescale
    """
    memories = MemoryTexts.of(memories).memories
    found = []
    if "importance" in memories.columns:
        importance = read_numbers(memories, "importance")
        rows = [
            *_find_out_of_range("importance", importance, HIGHEST),
            *_find_other_scale(importance),
            *_find_ambiguous(memories, importance),
        ]
        found.append(_make_findings(memories, "scores", "importance", rows))
    if "confidence" in memories.columns:
        confidence = read_numbers(memories, "confidence")
        rows = [*_find_out_of_range("confidence", confidence, 1.0)]
        found += [
            _make_findings(memories, "scores", "confidence", rows),
            _find_constant(memories, confidence),
        ]
    return join_findings(found)


def rescale_importance(importance: float) -> float:
    """Convert importance from the scale up to 5 to that from 0 to 1.

    >>> rescale_importance(4.0)
    0.8
    """
    return round(importance / HIGHEST, 4)


def _find_out_of_range(field: str, values: ScoreCells, highest: float) -> Iterator[_Row]:
    words = "beyond both scales" if highest > 1 else "not within 0 to 1"
    for row in np.flatnonzero((values < 0) | (values > highest)).tolist():
        yield row, "out_of_range", "medium", 1.0, f"{field} is {values[row]:g}, {words}", "review"


def _find_other_scale(importance: ScoreCells) -> Iterator[_Row]:
    is_above = (importance > 1) & (importance <= HIGHEST)
    is_mixed = bool((importance < 1).any())
    is_least = (importance == 1) & (not is_mixed and bool(is_above.any()))
    where = "where others are at most 1" if is_mixed else "as all of them are from 1 up"
    for row in np.flatnonzero(is_above | is_least).tolist():
        words = f"importance is {importance[row]:g}, {where}: {rescale_importance(importance[row]):g}"
        if is_mixed:
            yield row, "mixed_scale", "medium", 1.0, words, "rescale"
        else:
            yield row, "scale_1_to_5", "info", 1.0, words, "rescale"


def _sources(memories: pd.DataFrame) -> NDArray[Any]:
    if "source" not in memories.columns:
        return np.full(len(memories), _NO_SOURCE)
    return read_texts(memories, "source").fillna(_NO_SOURCE).to_numpy()


def _find_ambiguous(memories: pd.DataFrame, importance: ScoreCells) -> Iterator[_Row]:
    """Yield an importance of 1 between two of the same source that are above 1, in the order of time."""
    if not {"source", "created_at"} <= set(memories.columns):
        return
    if not ((importance < 1).any() and (importance == 1).any()):
        return
    times = memories["created_at"].to_numpy()
    scored = pd.DataFrame({"source": _sources(memories), "created_at": times, "importance": importance})
    by_source = (
        scored.dropna(subset=["importance"]).sort_values("created_at", kind="stable").groupby("source")
    )
    before, after = (by_source["importance"].shift(by).reindex(scored.index) for by in (1, -1))
    words = "importance is 1 between scores of 1 to 5: the least of one scale, or the most of the other"
    for row in scored.index[(scored["importance"] == 1) & (before > 1) & (after > 1)]:
        yield row, "ambiguous_scale", "low", 0.5, words, "review"


def mask_source(name: str) -> str:
    """Return the name of a source for evidence; a long name, or one with unusual characters, is masked.

    >>> mask_source("chat"), mask_source("password: 83kd-2jd8-aa")
    ("'chat'", 'pa… (22 characters)')
    """
    is_name = len(name) <= _LONGEST_NAME and not _NO_NAME.search(name)
    return repr(name) if is_name else mask_text(name)


_LONGEST_NAME = 24
"""Most characters of a name that is shown; a longer one may be a sentence with a secret."""
_NO_NAME = re.compile(r"\d{4}|[^\w. ()-]")
"""Characters that names of programs do not have, so that a text with one of them may hold a secret."""


def _find_constant(memories: pd.DataFrame, confidence: ScoreCells) -> pd.DataFrame:
    """Find memories of sources whose confidence has no information, because it is always the same."""
    if len(memories) < MIN_ROWS:
        return list_findings(())
    source = _sources(memories)
    scored = pd.DataFrame({"source": source, "confidence": confidence}).dropna()
    by_source = scored.groupby("source")["confidence"].agg(["nunique", "size", "first"])
    constant = by_source[(by_source["nunique"] == 1) & (by_source["size"] >= MIN_ROWS)]
    group = {name: place for place, name in enumerate(constant.index)}
    words = {
        name: f"confidence is {row['first']:g} in all memories of the source {mask_source(str(name))}"
        for name, row in constant.iterrows()
    }
    rows = scored.index[scored["source"].isin(constant.index)]
    cells = [(row, "constant_confidence", "info", 1.0, words[source[row]], "none") for row in rows]
    found = _make_findings(memories, "scores", "confidence", cells)  # type: ignore[arg-type]  # as the names are words
    return found.assign(group=pd.array([group[source[row]] for row in rows], "Int64"))


_CAUSES = (
    ("key_version", re.compile(r"key_version")),
    ("surrogate", re.compile(r"lone surrogate")),
    ("layout", re.compile(r"^sealed as|does not show changes|in no known layout|not UTF-8")),
)
"""Kinds of findings by words of ``content_error``; any other error is ``undecryptable``."""

_DENSE = r"^\s*(?:\S{38}|\{)"
"""Prefilter for content that looks sealed: a beginning without a blank, or JSON."""


def find_sealed(memories: Memories) -> pd.DataFrame:
    """Find content that could not be opened or still looks sealed, and unsealed content among sealed.

    Parameters
    ----------
    memories : DataFrame
        Frame with ``id``; the check reads ``content_error``, ``content`` and ``attrs["memframe"]`` of the load.

    Returns
    -------
    DataFrame
        Findings of the kinds ``key_version`` (sealed with another version of the key), ``layout`` (sealed in a
        layout that is not read), ``undecryptable`` (wrong key or damage), ``surrogate`` (text that had to be mended),
        ``ciphertext`` (plain text that looks sealed), and ``plain`` (unsealed content among sealed content; it has no
        ``id``, because a load only counts such memories).

    Examples
    --------
    >>> error = "sealed with key_version 1, these credentials hold 2"
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "content": [None, "tea"], "content_error": [error, None]})
    >>> find_sealed(memories)[["kind", "id", "severity", "action"]]
              kind  id severity  action
    0  key_version  m1     high  review
    """
    texts = MemoryTexts.of(memories)
    memories = texts.memories
    rows: list[_Row] = []
    if "content_error" in memories.columns:
        errors = read_texts(memories, "content_error")
        for row in np.flatnonzero(errors.notna()).tolist():
            error = errors.iloc[row]
            kind = next((kind for kind, words in _CAUSES if words.search(error)), "undecryptable")
            rows.append((row, kind, "low" if kind == "surrogate" else "high", 1.0, error, "review"))
    rows += [
        (text.row, "ciphertext", "medium", 0.8, f"looks sealed: {mask_text(text.text)}", "review")
        for text in texts.search(["content"]).find(_DENSE)
        if looks_sealed(text.text, among_sealed=False) and not is_token_alone(text.text)
    ]
    parts = [_make_findings(memories, "sealed", "content", rows)]
    report = memories.attrs.get("memframe", {})
    n_plain, n_rows = report.get("n_plain", 0), report.get("n_rows", 0)
    if 0 < n_plain < n_rows:
        words = f"{n_plain:,} of {n_rows:,} memories stored unsealed among sealed ones"
        plain = Finding(
            "sealed", "plain", "medium", None, "content", score=1.0, evidence=words, action="review"
        )
        parts.append(list_findings([plain]))
    return join_findings(parts)


MIN_LETTERS = 6
"""Fewest letters of a name in which another letter may be a typing error; in a shorter one it makes another word."""

MAX_SLIP_SHARE = 0.25
"""Most memories of a mistyped name, as a share of those of the frequent name."""

_SEPARATORS = re.compile(r"[\W_]+")

_QUOTED = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_EVIDENCE = re.compile(rf"\A{_QUOTED}(?: \([\d,]+ memor(?:y|ies)\) and {_QUOTED})?")
"""Evidence with one tag, or with two of which the second one is proposed in place of the first."""

_SINGULAR = (
    ("ies", "y"),
    ("sses", "ss"),
    ("xes", "x"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("ss", "ss"),
    ("us", "us"),
)
"""Endings of plurals with those of the singular; of other words a final "s" is dropped."""


def find_tags(memories: Memories, tags: pd.DataFrame | None = None) -> pd.DataFrame:
    """Find tags with the same meaning; given the user's tags, also disabled, unknown and unused ones.

    Names have the same meaning if they differ in case, accents, signs or a plural; they may have it if they differ in
    one letter and one of them is far rarer. The more frequent name is proposed. Names with different digits never have
    the same meaning. Synonyms ("car", "automobile") are not found.

    Parameters
    ----------
    memories : DataFrame
        Frame with ``id``; without a column ``tags`` there are no findings.
    tags : DataFrame, optional
        The user's tags, from `memframe.load_tags`.

    Returns
    -------
    DataFrame
        Findings of the kinds ``near_identical``, ``disabled`` and ``unknown``, one for each memory with the tag, and
        ``unused``, which has no ``id``. The names are in ``evidence``.

    Examples
    --------
    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "tags": [("recipe",), ("recipe",), ("Recipes",)]})
    >>> find_tags(memories)[["kind", "id", "evidence", "action"]]
                 kind  id                                         evidence action
    0  near_identical  m3  'Recipes' (1 memory) and 'recipe' (2 memories)  retag
    """
    memories = MemoryTexts.of(memories).memories
    if tags is not None:
        check_kind("tags", tags, pd.DataFrame, error=FrameError)
        for column in ("name", "is_enabled"):
            require_column(tags, column, of="pass tags as load_tags returns them")
    if "tags" not in memories.columns:
        return list_findings([])
    cells = [tuple(dict.fromkeys(cell)) for cell in read_names(memories, "tags")]
    counts = Counter(chain.from_iterable(cells))
    disabled = [] if tags is None else tags["name"][~tags["is_enabled"].astype(bool)].tolist()
    n_of = {name: f"{name!r} ({number_of(n, 'memory', 'memories')})" for name, n in counts.items()}
    parts = []

    def add(kind: str, severity: Severity, action: Proposal, tagged: Mapping[str, tuple[float, str]]) -> None:
        """Add one finding for each memory with one of some tags, given their scores and evidence."""
        places = [(row, name) for row, cell in enumerate(cells) for name in cell if name in tagged]
        rows: list[_Row] = [(row, kind, severity, *tagged[name], action) for row, name in places]
        parts.append(_make_findings(memories, "tags", "tags", rows))

    pairs = [*_find_same_forms(counts), *_find_slips(counts)]
    similar = {name: (score, f"{n_of[name]} and {n_of[other]}") for name, other, score in pairs}
    better = {name: other for name, other, _ in pairs}
    # an enabled name is not replaced by a disabled one
    kept = {name for name in similar if better[name] in disabled and name not in disabled}
    add("near_identical", "low", "retag", {name: similar[name] for name in similar.keys() - kept})
    add("near_identical", "low", "review", {name: similar[name] for name in kept})
    if tags is None:
        findings = join_findings(parts)
        findings.attrs["not_checked"] = (
            "Disabled, unknown and unused tags: they need the user's list of tags, which was not given.",
        )
        return findings
    on = {
        name: f"{name!r} is disabled, and still on {number_of(counts[name], 'memory', 'memories')}"
        for name in disabled
    }
    add("disabled", "low", "retag", {name: (1.0, evidence) for name, evidence in on.items()})
    unknown = {name: f"{name!r} is not among the user's tags" for name in counts.keys() - {*tags["name"]}}
    add("unknown", "medium", "review", {name: (1.0, evidence) for name, evidence in unknown.items()})
    unused = Finding("tags", "unused", "info", None, "tags", score=1.0, action="none")
    parts.append(
        list_findings(
            unused._replace(evidence=f"no memory carries {name!r}")
            for name in tags["name"].tolist()
            if name not in counts
        )
    )
    return join_findings(parts)


@lru_cache(maxsize=1 << 12)
def names_in(evidence: str) -> tuple[str, ...]:
    """Return the tag that a finding is about and, if there is one, the tag that is proposed in its place.

    >>> names_in("'Recipes' (1 memory) and 'recipe' (2 memories)"), names_in("'stamps' is disabled")
    (('Recipes', 'recipe'), ('stamps',))
    """
    quoted = _EVIDENCE.match(evidence)
    return tuple(literal_eval(name) for name in quoted.groups() if name) if quoted else ()


def _find_same_forms(counts: Counter[str]) -> Iterator[tuple[str, str, float]]:
    """Yield names that are equal without case, accents, signs and plural, each with the most frequent of them."""
    forms = defaultdict(list)
    for name in counts:
        forms[_form(name)].append(name)
    for names in forms.values():
        best = max(names, key=lambda name: (counts[name], -len(name), name))
        yield from ((name, best, 0.95) for name in names if name != best)


def _find_slips(counts: Counter[str]) -> Iterator[tuple[str, str, float]]:
    """Yield rare names that differ from a frequent one by one letter.

    Names are indexed by their forms without one letter each, so that not all pairs are compared.
    """
    meeting = defaultdict(set)
    for name in counts:
        form = _form(name)
        if len(form) >= MIN_LETTERS:
            for place in range(len(form)):
                meeting[form[:place] + form[place + 1 :]].add(name)
            meeting[form].add(name)
    for names in meeting.values():
        for rare, other in permutations(sorted(names), 2):
            forms = _form(rare), _form(other)
            digits = [[letter for letter in form if letter.isdecimal()] for form in forms]
            is_slip = (
                len(set(forms)) == 2 and digits[0] == digits[1] and abs(len(forms[0]) - len(forms[1])) <= 1
            )
            if is_slip and counts[rare] <= MAX_SLIP_SHARE * counts[other]:
                yield rare, other, 0.6


def _form(name: str) -> str:
    """Return a name without case, accents, signs and plural.

    >>> _form("Side-Projects"), _form("side project"), _form("Galerías")
    ('sideproject', 'sideproject', 'galeria')
    """
    bare = without_accents(name.casefold())
    bare = _SEPARATORS.sub("", bare) or bare
    for end, one in _SINGULAR:
        if bare.endswith(end) and len(bare) > len(end) + 2:
            return bare.removesuffix(end) + one
    return bare[:-1] if bare.endswith("s") and len(bare) > 3 else bare

"""Identify findings: match those of two audits, and those of the same value in several memories.

A finding is identified by its check, kind, memory, field and the text that it judges: the value that was found, the
name of a tag, or the whole field. Sentences, scores, counts, offsets and groups are left out, because they change with
every memory that is added or deleted. Texts are stored as keyed digests, because a plain digest of a PIN could be
guessed; the key is stored elsewhere.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from memframe.audit.fields import names_in
from memframe.audit.findings import join_findings, plain_columns
from memframe.decisions import Decisions

RELATIVE_CHECKS = frozenset({"exact_duplicate", "near_duplicate", "version"})
"""Checks whose kind depends on the other memories of the group, so that it does not identify a finding."""

_DIGEST_CHARACTERS = 32
"""Hexadecimal characters of a digest: 128 bits."""


def digest_text(key: bytes, text: str) -> str:
    """Return the keyed digest of a text, for files that must not hold the text.

    >>> digest_text(b"key", "4711")
    '3f64db98781294e86878d407d31f2fc7'
    """
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256").hex()[:_DIGEST_CHARACTERS]


VALUES = frozenset({"secret", "personal_data"})
"""Checks that find values, which are the same in any text."""


def texts_judged(
    findings: pd.DataFrame,
    memories: pd.DataFrame,
    counted: pd.DataFrame,
    *,
    is_span: pd.Series[bool] | None = None,
) -> list[str]:
    """Return the text that each finding judges; for a figure about a source, the name of the source.

    `is_span` is True for findings that judge their span rather than the whole field; by default, all that have a span.

    >>> memories = pd.DataFrame({"id": ["m1"], "content": ["Door code: 2580#"]})
    >>> from memframe.audit.secrets import find_secrets
    >>> texts_judged(find_secrets(memories), memories, memories.head(0))
    ['2580#']
    """
    first = ~memories["id"].duplicated().to_numpy()
    place_of = dict(zip(memories["id"][first].tolist(), np.flatnonzero(first).tolist(), strict=True))
    fields = [name for name in findings["field"].dropna().unique() if name in memories.columns]
    columns = {name: memories[name].tolist() for name in {"content", *fields} if name in memories.columns}
    source_of = _sources_of(counted, memories)
    texts = []
    names = ("check", "kind", "id", "field", "start", "end", "group", "evidence")
    plain = plain_columns(findings, *names)
    spans = [True] * len(findings) if is_span is None else is_span.tolist()
    for check, kind, memory_id, field, start, end, group, evidence, has_span in zip(
        *plain, spans, strict=True
    ):
        if check == "tags" and (tags := names_in(str(evidence))):
            texts.append(tags[0])
        elif memory_id is None:
            texts.append(source_of.get((check, kind, group), ""))
        else:
            column, place = columns.get(field or "content"), place_of.get(memory_id)
            cell = None if column is None or place is None else column[place]
            if not isinstance(cell, str):
                texts.append(repr(cell))
            else:
                texts.append(cell[start:end] if has_span else cell)
    return texts


def _sources_of(counted: pd.DataFrame, memories: pd.DataFrame) -> dict[tuple[Any, ...], str]:
    """Return the source of each figure with a group."""
    if "source" not in memories.columns:
        return {}
    grouped = counted[counted["group"].notna()]
    figures = grouped.drop_duplicates(["check", "kind", "group"])
    sources = dict(zip(memories["id"], memories["source"], strict=True))
    keys = zip(figures["check"], figures["kind"], figures["group"].tolist(), strict=True)
    return {key: str(sources.get(memory_id)) for key, memory_id in zip(keys, figures["id"], strict=True)}


def keys_of(findings: pd.DataFrame, texts: Sequence[str] | None) -> list[tuple[Any, ...]]:
    """Return one key for each finding; equal findings are numbered, so that each has a key of its own.

    Without texts, which audits of earlier versions did not store, the key is check, kind, memory and field.

    >>> found = pd.DataFrame({"check": "secret", "kind": "pin", "id": ["m1", "m1"], "field": "content"})
    >>> keys_of(found, ["4711", "4711"])[1]
    ('secret', 'pin', 'm1', 'content', '4711', 1)
    """
    plain = plain_columns(findings, "check", "kind", "id", "field")
    n_before: Counter[tuple[Any, ...]] = Counter()
    keys = []
    for check, kind, memory_id, field, text in zip(*plain, texts or [""] * len(findings), strict=True):
        key = (check, "" if check in RELATIVE_CHECKS else kind, memory_id, field, text)
        keys.append((*key, n_before[key]))
        n_before[key] += 1
    return keys


def split_by_keys(
    later: pd.DataFrame,
    keys: Sequence[Any],
    earlier: pd.DataFrame,
    earlier_keys: Sequence[Any],
    rejected_keys: Iterable[Any] = (),
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Split the findings of two audits into new, gone, remaining and settled ones.

    Settled are those of the earlier audit that the later one does not list because a person has rejected them.
    """
    known, found, rejected = set(earlier_keys), set(keys), set(rejected_keys)
    is_old = np.array([key in known for key in keys], bool)
    is_absent = np.array([key not in found for key in earlier_keys], bool)
    is_settled = is_absent & np.array([key in rejected for key in earlier_keys], bool)
    return (
        join_findings([later[~is_old]]),
        join_findings([earlier[is_absent & ~is_settled]]),
        join_findings([later[is_old]]),
        join_findings([earlier[is_settled]]),
    )


def list_once(findings: pd.DataFrame, memories: pd.DataFrame) -> pd.DataFrame:
    """Return findings with one row for each value or text, however many memories hold it, in their order.

    Members of a group of junk are one row as well, because they are decided together. The row is that of the first
    finding, with two more columns: ``ids``, a tuple, and ``n_times``.
    """
    is_value = findings["check"].isin(VALUES)
    texts = texts_judged(findings, memories, findings.head(0), is_span=is_value)
    is_group = (findings["check"] == "junk") & findings["group"].notna()
    # the evidence of one value, or within one group, quotes different words
    evidence = findings["evidence"].mask(is_value | is_group)
    groups = findings["group"].where(is_group)
    columns = (findings[name] for name in ("check", "kind", "severity", "action"))
    places: dict[tuple[Any, ...], list[int]] = {}
    for place, (text, in_group, *cells) in enumerate(
        zip(texts, is_group, groups, evidence, *columns, strict=True)
    ):
        # a finding about no memory has no text, and a row of its own
        shared = "" if in_group else text
        places.setdefault((*map(str, cells), shared, None if text else place), []).append(place)
    ids = findings["id"].tolist()
    ids_of = [
        dict.fromkeys(ids[row] for row in rows if isinstance(ids[row], str)) for rows in places.values()
    ]
    return findings.iloc[[rows[0] for rows in places.values()]].assign(
        ids=pd.Series([*map(tuple, ids_of)], dtype=object).to_numpy(), n_times=[*map(len, places.values())]
    )


def decision_keys(
    findings: pd.DataFrame,
    memories: pd.DataFrame,
    counted: pd.DataFrame,
    decisions: Decisions,
    *,
    is_stored: bool,
) -> tuple[list[str], list[str]]:
    """Return the keys of decisions about findings, and the texts that the findings judge.

    Unlike the key of a comparison, this one includes the whole field, so that a person is asked again once the memory
    was edited. Ids of memories from a file do not last, so their keys have no id.
    """
    whole = texts_judged(findings, memories, counted, is_span=pd.Series(False, index=findings.index))
    texts = [*whole]
    values = np.flatnonzero(findings["check"].isin(VALUES))
    spans = texts_judged(findings.iloc[values], memories, counted) if len(values) else []
    for place, span in zip(values.tolist(), spans, strict=True):
        texts[place] = span
    columns = plain_columns(findings, "check", "kind", "field", "id")
    keys = [
        decisions.key(
            check,
            "" if check in RELATIVE_CHECKS else kind or "",
            field or "",
            memory_id if is_stored else None,
            text if text == value else f"{value}\0{text}",
        )
        for check, kind, field, memory_id, text, value in zip(*columns, whole, texts, strict=True)
    ]
    return keys, texts

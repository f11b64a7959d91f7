"""Run the checks in their order, and combine their findings into an audit."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from memframe.audit.candidates import Embed, find_candidates
from memframe.audit.duplicates import find_exact_duplicates, find_near_duplicates
from memframe.audit.evidence import FINDERS, withhold
from memframe.audit.fields import find_missing, find_scores, find_sealed, find_tags
from memframe.audit.findings import (
    CHECKS,
    DTYPES,
    SEVERITIES,
    Check,
    findings_frame,
    join_findings,
    plain_columns,
    split_figures,
)
from memframe.audit.identity import decision_keys
from memframe.audit.judge import JUDGE_LIMIT, JudgeFunction, Judgement, apply_judgement, ask_judge
from memframe.audit.junk import find_junk
from memframe.audit.languages import describe_languages
from memframe.audit.merge import settle_proposals
from memframe.audit.personal_data import find_personal_data
from memframe.audit.planted import find_planted, without_hidden
from memframe.audit.policy import PolicyOption, read_policy
from memframe.audit.result import Audit
from memframe.audit.secrets import find_secrets
from memframe.audit.similarity.cluster import similar_pairs
from memframe.audit.stale import find_stale
from memframe.audit.text import MAX_CHARACTERS, Memories, MemoryTexts, are_too_long
from memframe.audit.versions import find_versions
from memframe.decisions import Decisions, DecisionsOption, Settled, count_settled, read_decisions
from memframe.display import number_of, printable
from memframe.errors import ConfigError, FrameError, check_kind
from memframe.fields import TEXT_FIELDS
from memframe.frames import (
    MEMORY_KINDS,
    NAMES,
    NUMBER,
    READ,
    TEXT,
    TIME,
    gc_paused,
    read_names,
    read_numbers,
    read_times,
    require_column,
    to_encodable,
)

LOADED = "memframe"
"""Key of ``frame.attrs`` for the counts of a load."""

OwnCheck = Callable[[pd.DataFrame], pd.DataFrame]
"""Check of your own: a function from memories to rows with the ``id`` of a memory."""

CheckFunction = Callable[[MemoryTexts], pd.DataFrame]
"""Check of this package: a function from prepared texts to findings."""

Checks = Iterable[Check | OwnCheck] | Mapping[Check, OwnCheck] | None


def audit_memories(
    memories: pd.DataFrame,
    *,
    tags: pd.DataFrame | None = None,
    checks: Checks = None,
    now: datetime | None = None,
    judge: JudgeFunction | None = None,
    judge_limit: int = JUDGE_LIMIT,
    embed: Embed | None = None,
    decisions: DecisionsOption = None,
    policy: PolicyOption = None,
) -> Audit:
    """Find problems in memories. Nothing is changed, and nothing leaves this machine except through a
    ``judge``.

    Parameters
    ----------
    memories : DataFrame
        From `memframe.load_memories`, `memframe.load_archive` or `memframe.read_memories`. If no row has an
        ``id``, findings identify rows by ``origin_id`` or by label, and so does ``Audit.memories``.
    tags : DataFrame, optional
        The user's tags from `memframe.load_tags`, to find unknown, disabled and unused ones.
    checks : iterable of str or callable, optional
        Names from `memframe.audit.CHECKS`; by default all. Your own function is a check with its name: it
        receives the memories and returns a frame with ``id`` and optionally other columns of findings, for
        review. For checks with options, pass a mapping of names to functions: ``{"personal_data":
        partial(find_personal_data, names=...)}``.
    now : datetime, optional
        Moment before which times are past for `stale`; by default the present.
    judge : callable, optional
        Answers questions that rules cannot decide: a function from a list of `memframe.audit.judge.Question` to
        a list of `memframe.audit.judge.Answer`, or a `memframe.ChatJudge`. It receives masked texts and causes
        no deletions.
    judge_limit : int
        Maximum number of questions, the most promising first.
    embed : callable, optional
        Function from texts to vectors, for finding more candidates; it receives unmasked texts.
    decisions : str, Path or Decisions, optional
        File of decisions that a `memframe.review` wrote. Rejected findings are counted in ``settled`` instead of
        being listed, until their text changes or the decision ends. Accepted ones are listed until they are applied.
    policy : Policy, Path or None
        A file such as ``memframe.toml``, whose rules run as the check ``policy``, in addition to chosen ``checks``.

    Returns
    -------
    Audit

    Raises
    ------
    FrameError
        The argument is not a frame of memories.
    ConfigError
        A check does not exist, your own check did not return findings, or the policy cannot be read.
    JournalError
        The file of decisions cannot be read, or one of its lines is damaged.

    Examples
    --------
    >>> from memframe import load_memories, load_tags
    >>> audit = audit_memories(load_memories(access), tags=load_tags(access))
    >>> audit.findings.loc[audit.findings.severity == "high", "check"].unique().tolist()
    ['secret', ...]
    """
    # first, so that a damaged file is refused before the work
    decided, rules = read_decisions(decisions), read_policy(policy)
    memories, is_stored = ensure_ids(memories)
    texts = _check_columns(memories)
    memories = texts.memories
    given: tuple[Any, Any] = now, judge_limit
    if given[0] is not None and not (isinstance(given[0], datetime) and pd.notna(given[0])):
        raise ConfigError(f"now={now!r:.60}: give a datetime, such as datetime(2026, 1, 31, tzinfo=UTC)")
    moment = now or datetime.now(UTC)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    functions = _choose_checks(texts, checks, tags=tags, now=moment)
    if rules is not None and rules.rule:
        functions |= {_name_of(rules.check): _on_frame(partial(_run_own_check, rules.check))}
    with gc_paused():
        parts = {check: find(texts) for check, find in functions.items()}
        findings = join_findings(parts.values())
        if "content_error" in memories.columns:
            # a cleanup leaves memories that could not be opened as they are
            is_closed = findings["id"].isin(memories["id"][memories["content_error"].notna()])
            findings["action"] = findings["action"].mask(is_closed & (findings["action"] != "none"), "review")
        findings = _leave_out_decoded(_strip_unless_repeated(findings, texts))
        findings = settle_proposals(findings, texts)
    judgement = Judgement()
    if not isinstance(given[1], int) or judge_limit < 0:
        raise ConfigError(f"judge_limit={judge_limit!r:.60}: give a whole number from 0")
    if judge is not None:
        candidates = find_candidates(texts, embed=embed)
        judgement = ask_judge(judge, texts.whole.memories, findings, candidates, limit=judge_limit)
        findings = settle_proposals(apply_judgement(findings, judgement), texts)
    known = [check for check, find in FINDERS.items() if functions.get(check) is find]
    findings, counted = split_figures(withhold(findings, memories, known=known), len(memories))
    keys = [""] * len(findings)  # without decisions no key is needed
    if decided.last:
        keys, _ = decision_keys(findings, memories, counted, decided, is_stored=is_stored)
    findings, answered, settled = _leave_out_settled(findings, keys, decided, functions)
    return Audit(
        memories=memories,
        findings=_sort_worst_first(findings),
        checks=tuple(functions),
        not_checked=(*_describe_unchecked(texts, parts), *_describe_languages(memories, parts)),
        counted=counted,
        made_at=moment,
        judgement=judgement,
        embed=embed,
        is_stored=is_stored,
        settled=settled,
        answered=answered,
    )


def _sort_worst_first(findings: pd.DataFrame) -> pd.DataFrame:
    by_check = findings["check"].map({name: place for place, name in enumerate(CHECKS)}).fillna(len(CHECKS))
    by_severity = findings["severity"].map({name: place for place, name in enumerate(reversed(SEVERITIES))})
    return findings.iloc[np.lexsort((by_check, by_severity))].reset_index(drop=True)


def _leave_out_settled(
    findings: pd.DataFrame, keys: list[str], decided: Decisions, checks: Iterable[str]
) -> tuple[pd.DataFrame, pd.DataFrame, Settled]:
    """Leave out rejected findings; return the others, all findings with a decision that holds, and the counts."""
    at = datetime.now(UTC)  # decisions end by the present time, and not by the `now` of the checks
    holding = (decided.find(key, at) for key in keys)
    decision = np.array([found.decision if found else "" for found in holding], dtype=object)
    is_rejected = decision == "rejected"
    answered = findings.assign(decision=pd.array(decision, "str"))[decision != ""].reset_index(drop=True)
    return findings[~is_rejected], answered, count_settled(decided, keys, checks=checks, now=at)


def all_checks(
    memories: Memories, *, tags: pd.DataFrame | None = None, now: datetime | None = None
) -> dict[str, CheckFunction]:
    """Return every check with its function; those that relate memories share one search for similar pairs.

    Memories that the check on junk deletes are left out of that search, because a store may have thousands of
    heartbeats.
    """
    moment = pd.Timestamp(now or datetime.now(UTC))
    texts = MemoryTexts.of(memories)
    junk = cache(lambda: find_junk(texts))

    @cache
    def related() -> MemoryTexts:
        deleted = junk()["id"][junk()["action"] == "delete"]
        if deleted.empty:
            return texts.whole
        is_deleted = texts.memories["id"].isin(deleted).to_numpy(bool)
        return texts.whole.take(np.flatnonzero(~is_deleted))

    pairs = cache(lambda: similar_pairs(related()))

    def versions(_: MemoryTexts) -> pd.DataFrame:
        found = find_versions(related(), pairs=pairs(), now=moment)
        pairs.cache_clear()  # a kilobyte for each memory, which no later check uses
        return found

    return {
        "exact_duplicate": lambda _: find_exact_duplicates(texts.whole),
        "near_duplicate": lambda _: find_near_duplicates(related(), pairs=pairs()),
        "version": versions,
        "stale": lambda _: find_stale(texts.whole, now=moment),
        "secret": find_secrets,
        "personal_data": find_personal_data,
        "planted": find_planted,
        "junk": lambda _: junk(),
        "missing": find_missing,
        "scores": find_scores,
        "tags": partial(find_tags, tags=tags),
        "sealed": find_sealed,
    }


def _strip_unless_repeated(findings: pd.DataFrame, texts: MemoryTexts) -> pd.DataFrame:
    """Leave a memory for review if it would repeat another one without its hidden characters; a person chooses one."""
    is_strip = findings["action"] == "strip"
    if not is_strip.any():
        return findings
    whole = texts.whole.memories
    is_planted = whole["id"].isin(findings["id"][is_strip])
    seen = {
        name: [
            without_hidden(text) if planted and isinstance(text, str) else text
            for text, planted in zip(whole[name], is_planted, strict=True)
        ]
        for name in TEXT_FIELDS
    }
    whole = whole.assign(**{name: pd.array(texts, "str") for name, texts in seen.items()})
    is_deleted = whole["id"].isin(
        findings["id"][(findings["check"] == "junk") & (findings["action"] == "delete")]
    )
    whole = whole[~is_deleted]  # a memory that is deleted anyway does not count as repeated
    repeated = {*find_exact_duplicates(whole)["id"], *find_near_duplicates(whole)["id"]}
    is_repeated = is_strip & findings["id"].isin(repeated)
    why = "; without them it repeats another memory"
    return findings.assign(
        action=findings["action"].mask(is_repeated, "review"),
        evidence=findings["evidence"].mask(is_repeated, findings["evidence"] + why),
    )


def _leave_out_decoded(findings: pd.DataFrame) -> pd.DataFrame:
    """Leave out findings about encoded text that another finding has decoded to words.

    It looks like a key, or like sealed content, but one text is one finding.
    """
    decoded = findings[(findings["check"] == "planted") & (findings["kind"] == "encoded")]
    if decoded.empty:
        return findings
    places = "id", "field", "start", "end"
    spans = {
        (memory_id, field): range(start, end + 1)
        for memory_id, field, start, end in zip(*plain_columns(decoded, *places), strict=True)
    }
    is_left_out = [
        check in ("secret", "sealed")
        and (memory_id, field) in spans
        and (start is None or (start in spans[memory_id, field] and end in spans[memory_id, field]))
        for check, memory_id, field, start, end in zip(
            *plain_columns(findings, "check", *places), strict=True
        )
    ]
    return findings[~np.array(is_left_out, bool)].reset_index(drop=True)


def ensure_ids(memories: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """Return the memories with ids that distinguish rows, and True if the ids are from a service."""
    check_kind("memories", memories, pd.DataFrame, error=FrameError)
    absent = [name for name in ("id", "content") if name not in memories.columns]
    if absent:
        raise FrameError(
            f"the frame has no column {absent[0]!r}, which an audit needs; "
            "pass memories as load_memories returns them, with that column kept"
        )
    if not isinstance(memories.attrs.get(LOADED, {}), Mapping):
        raise FrameError(f"frame.attrs[{LOADED!r}] is not what a load writes: delete it, or load again")
    for name in ("id", "content"):
        require_column(memories, name)
    if pd.api.types.is_integer_dtype(memories["id"].dtype):
        return memories.assign(id=memories["id"].astype("str")), True
    if memories["id"].notna().any() or (memories.empty and READ not in memories.attrs):
        return memories, True
    origin = memories.get("origin_id")
    if origin is not None and origin.notna().all() and origin.is_unique:
        return memories.assign(id=origin.astype("str")), False
    if not memories.index.is_unique:
        raise FrameError(
            "the frame has neither ids nor distinct labels: give it some with reset_index(drop=True)"
        )
    names = pd.Series([f"row {label}" for label in memories.index], memories.index, dtype="str")
    return memories.assign(id=names), False


def _check_columns(memories: pd.DataFrame) -> MemoryTexts:
    """Prepare memories without lone surrogates, which Arrow cannot hold; refuse columns of another kind.

    A frame of objects may hold any values. They are refused here once, and not by the check that meets them first.
    """
    texts = MemoryTexts(memories)
    mended: dict[str, pd.Series[Any]] = {}
    for name, kind in MEMORY_KINDS.items():
        if name not in memories.columns:
            continue
        column = require_column(memories, name)
        if name in TEXT_FIELDS:
            texts.column(name)
        elif kind in _READERS:
            _READERS[kind](memories, name)
        if kind is NAMES or column.dtype == object:
            cells = column.tolist()
            if kind is TEXT and any(map(pd.api.types.is_list_like, cells)):
                raise FrameError(
                    f"column {name!r} holds lists or mappings, not text; pass memories as load_memories returns them"
                )
            whole = [to_encodable(tuple(cell) if isinstance(cell, list) else cell) for cell in cells]
            if any(to_encodable(cell) is not cell for cell in cells):
                mended[name] = pd.Series(whole, memories.index, dtype=object)
    return MemoryTexts(memories.assign(**mended)) if mended else texts


_READERS: Mapping[object, Callable[[pd.DataFrame, str], object]] = {
    NAMES: read_names,
    NUMBER: read_numbers,
    TIME: read_times,
}
"""Readers of columns, which refuse columns of another kind."""


def _choose_checks(
    texts: MemoryTexts, checks: Checks, *, tags: pd.DataFrame | None, now: datetime
) -> dict[str, CheckFunction]:
    """Return the checks to run by name, those of this package first, in their order."""
    if isinstance(checks, str):
        raise ConfigError(f"checks={checks!r} is one text: pass a list of names, [{checks!r}]")
    if not isinstance(checks, Iterable | None):
        raise ConfigError(f"checks={checks!r:.60}: pass a list of names, of {', '.join(CHECKS)}")
    functions = all_checks(texts, tags=tags, now=now)
    wanted = list(functions if checks is None else checks)
    unknown = [check for check in wanted if not callable(check) and check not in functions]
    if unknown:
        raise ConfigError(f"checks={unknown[0]!r}: there is {', '.join(CHECKS)}, or a function of yours")
    if isinstance(checks, Mapping):
        if wrong := [name for name, find in checks.items() if not callable(find)]:
            raise ConfigError(f"checks: {wrong[0]!r} needs a function from memories to findings")
        return {name: _on_frame(find) for name, find in checks.items()}
    own = {_name_of(check): _on_frame(partial(_run_own_check, check)) for check in wanted if callable(check)}
    return {check: find for check, find in functions.items() if check in wanted} | own


def _on_frame(check: OwnCheck) -> CheckFunction:
    """Return a function of texts that runs a check of the frame."""
    return lambda texts: check(texts.memories)


def _name_of(check: OwnCheck) -> str:
    name = str(getattr(check, "__name__", ""))
    if not name.isidentifier() or name in CHECKS:
        raise ConfigError(f"checks: {check!r} needs a name of its own; pass a function made by `def`")
    return name


def _run_own_check(check: OwnCheck, memories: pd.DataFrame) -> pd.DataFrame:
    """Run a check of the caller, and complete its rows to findings."""
    name = _name_of(check)
    found: object = check(memories)
    if not isinstance(found, pd.DataFrame) or "id" not in found.columns:
        raise ConfigError(f"the check {name!r} has to return a frame with a column 'id', one row a finding")
    unknown = set(found.columns) - DTYPES.keys()
    if unknown:
        raise ConfigError(
            f"the check {name!r} returned the column {min(unknown)!r}; there is {', '.join(DTYPES)}"
        )
    if not set(found["id"].dropna()) <= set(memories["id"]):
        raise ConfigError(f"the check {name!r} returned an id that no memory has")
    usual = {"kind": name, "severity": "low", "action": "review"}
    findings = found.assign(
        **{column: usual[column] for column in usual.keys() - set(found.columns)}, check=name
    )
    for column, allowed in (("severity", SEVERITIES), ("action", ("review", "none"))):
        other = findings[column][~findings[column].isin(allowed)]
        if len(other):
            raise ConfigError(
                f"the check {name!r} returned {column}={other.iloc[0]!r}; there is {', '.join(allowed)}"
            )
    return findings_frame(**{column: findings[column].tolist() for column in DTYPES if column in findings})


_READ_BY_WORDING: Mapping[str, tuple[str, str]] = {
    "stale": ("Times to come that have passed", "stale"),
    "version": ("«No longer»", "superseded"),
}
"""Checks with rules for some languages only: words for what they find, and the table of their rules."""


_KNOWN_COLUMNS = frozenset(
    [*MEMORY_KINDS, "content_error", "origin_id", "entity", "place", "file", "line", "outdated"]
)
"""Columns that checks read, or that a reader adds."""


def _describe_columns(memories: pd.DataFrame) -> Iterator[str]:
    absent = [name for name in (*TEXT_FIELDS, "tags", "source", "created_at") if name not in memories.columns]
    if absent:
        yield f"Columns that the frame does not have: {', '.join(absent)}."
    if unknown := [
        name for name in memories.columns if name not in _KNOWN_COLUMNS and _has_texts(memories[name])
    ]:
        yield f"Columns that are no fields of a memory: {', '.join(printable(str(name)) for name in unknown)}."


def _has_texts(column: pd.Series[Any]) -> bool:
    return any(isinstance(cell, str) and cell.strip() for cell in column.tolist())


def _describe_unchecked(texts: MemoryTexts, parts: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Describe what was not looked for, because an audit without findings must not be read as clean."""
    memories = texts.memories
    left_out = [check for check in CHECKS if check not in parts]
    if left_out:
        yield f"Checks that were not run: {', '.join(left_out)}."
    yield from _describe_columns(memories)
    if "content_error" in memories.columns and (n_closed := int(memories["content_error"].notna().sum())):
        yield f"The content of {number_of(n_closed, 'memory', 'memories')} that could not be opened."
    if left_out := memories.attrs.get(READ, {}).get("left_out"):
        yield f"What was left out of the file: {', '.join(f'{reason} ({n:,})' for reason, n in left_out.items())}."
    read = memories.attrs.get(READ, {})
    if n_undated := read.get("times", {}).get("missing"):
        yield f"What is past or older: {number_of(n_undated, 'memory', 'memories')} of the file without a date."
    if memories.attrs.get(LOADED, {}).get("complete") is False:
        yield "Memories beyond the limit of the load: there are more than were audited."
    fields = [name for name in TEXT_FIELDS if name in memories.columns]
    too_long = {name: are_too_long(texts, name) for name in fields}
    if n_long := int(np.logical_or.reduce([*too_long.values()]).sum()):
        yield (
            f"Text beyond the first {MAX_CHARACTERS:,} characters of a field, in "
            f"{number_of(n_long, 'memory', 'memories')}."
        )
    if n_long := int(too_long["content"].sum()):
        yield (
            f"Contents longer than {MAX_CHARACTERS:,} characters, in {number_of(n_long, 'memory', 'memories')}, for "
            "junk, near duplicates and versions."
        )
    for findings in parts.values():
        yield from findings.attrs.get("not_checked", ())


def _describe_languages(memories: pd.DataFrame, checks: Container[str]) -> Iterator[str]:
    if looked_for := dict(words for check, words in _READ_BY_WORDING.items() if check in checks):
        texts = (text for text in memories["content"].tolist() if isinstance(text, str))
        yield from describe_languages(texts, looked_for)

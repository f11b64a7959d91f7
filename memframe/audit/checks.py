"""Running the checks: which there are, in which order, and what became of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Literal

import numpy as np
import pandas as pd

from memframe.audit.audited import Audit
from memframe.audit.candidates import Embed, find_candidates
from memframe.audit.changed_value import find_changed_values
from memframe.audit.completed import with_all_columns
from memframe.audit.exact_duplicate import find_exact_duplicates
from memframe.audit.findings import CHECKS, SEVERITIES, Check, joined, split_figures
from memframe.audit.judge import JUDGE_LIMIT, JudgeFunction, apply_judgement, ask_judge, no_judgement
from memframe.audit.junk import find_junk
from memframe.audit.likeness.similar import Relations, similar_pairs
from memframe.audit.missing import find_missing
from memframe.audit.near_duplicate import find_near_duplicates
from memframe.audit.personal_data import find_personal_data
from memframe.audit.scores import find_scores
from memframe.audit.sealed import find_sealed
from memframe.audit.second_process import CheckFunction, is_worthwhile
from memframe.audit.secrets import find_secrets
from memframe.audit.sharing import Related, made, made_by_two
from memframe.audit.stale import find_stale
from memframe.audit.superseded import superseded_among
from memframe.audit.tags import find_tags
from memframe.audit.texts import MAX_CHARACTERS, TEXT_FIELDS, are_too_long
from memframe.audit.withholding import LOOKING, withhold
from memframe.display import number_of
from memframe.errors import ConfigError, FrameError, check_kind
from memframe.frames import collector_paused

Workers = Literal["auto", 1, 2]
"""In how many processes an audit runs."""


def audit_memories(
    memories: pd.DataFrame,
    *,
    tags: pd.DataFrame | None = None,
    checks: Iterable[Check] | Mapping[Check, CheckFunction] | None = None,
    now: datetime | None = None,
    workers: Workers = "auto",
    judge: JudgeFunction | None = None,
    judge_limit: int = JUDGE_LIMIT,
    embed: Embed | None = None,
) -> Audit:
    """Find what is wrong with memories; nothing is changed, and nothing leaves this machine but by a ``judge``.

    Parameters
    ----------
    memories : DataFrame
        As `memframe.load_memories` or `memframe.load_archive` return them.
    tags : DataFrame, optional
        The user's tags, of `memframe.load_tags`: unknown, disabled and unused ones are found by them.
    checks : iterable of str, optional
        Names out of `memframe.audit.CHECKS`; by default all. A mapping of names to functions runs those functions,
        for checks with options: ``{"personal_data": partial(find_personal_data, names=...)}``.
    now : datetime, optional
        What "past" means for `stale`; by default the present.
    workers : {"auto", 1, 2}
        Processes. With two, checks that look at each text by itself run in a second one beside the search for similar
        pairs, and what is left then is shared; what is found is the same. "auto" takes two from 5,000 memories on,
        where there are two processors and this is no daemonic process. Functions of your own always run here. Memories
        travel through a pipe, and are never written to a disk.
    judge : callable, optional
        Is asked what rules cannot know: a function from a list of `memframe.audit.judge.Question` to a list of
        `memframe.audit.judge.Answer`, or a `memframe.ChatJudge`. Texts are masked before. It deletes nothing.
    judge_limit : int
        Questions that it is asked at most, the most promising first.
    embed : callable, optional
        Texts to vectors, by which candidates are found as well; it gets the texts unmasked.

    Returns
    -------
    Audit

    Raises
    ------
    FrameError
        This is no frame of memories.
    ConfigError
        There is no such check, or no such number of workers.

    Examples
    --------
    >>> from memframe import load_memories, load_tags
    >>> audit = audit_memories(load_memories(access), tags=load_tags(access))
    >>> audit.findings.loc[audit.findings.severity == "high", "check"].unique().tolist()
    ['secret', ...]
    """
    _check_frame(memories)
    moment = now or datetime.now(UTC)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    own = all_checks(memories, tags=tags, now=moment)
    functions = _chosen(own, checks)
    with collector_paused():
        parts = (
            made_by_two(functions, own, memories)
            if _are_two(workers, len(memories))
            else made(functions, memories)
        )
    known = [check for check, find in LOOKING.items() if functions.get(check) is find]
    findings = _without_closed(joined(parts.values()), memories)
    judgement = no_judgement()
    if judge is not None:
        whole = with_all_columns(memories)
        candidates = find_candidates(whole, embed=embed)
        judgement = ask_judge(judge, whole, findings, candidates, limit=judge_limit)
        findings = apply_judgement(findings, judgement)
    findings = withhold(findings, memories, known=known)
    findings, counted = split_figures(findings, len(memories))
    return Audit(
        memories=memories,
        findings=_worst_first(findings),
        checks=tuple(functions),
        not_checked=tuple(_not_checked(memories, parts)),
        counted=counted,
        made_at=moment,
        judgement=judgement,
        embed=embed,
    )


def all_checks(
    memories: pd.DataFrame, *, tags: pd.DataFrame | None = None, now: datetime | None = None
) -> dict[Check, CheckFunction]:
    """Every check with its function; those that relate memories share one search for similar pairs."""
    moment = pd.Timestamp(now or datetime.now(UTC))
    whole = with_all_columns(memories)
    pairs = cache(partial(similar_pairs, whole))
    superseded = partial(_superseded, now=moment)
    return {
        "exact_duplicate": lambda _: find_exact_duplicates(whole),
        "near_duplicate": lambda _: find_near_duplicates(whole, pairs=pairs()),
        "changed_value": lambda _: find_changed_values(whole, pairs=pairs()),
        "superseded": Related(superseded, relations=lambda: pairs().relations),
        "stale": partial(_stale, now=moment),
        "secret": find_secrets,
        "personal_data": find_personal_data,
        "junk": find_junk,
        "missing": find_missing,
        "scores": find_scores,
        "tags": partial(find_tags, tags=tags),
        "sealed": find_sealed,
    }


def _superseded(memories: pd.DataFrame, *, relations: Relations, now: pd.Timestamp) -> pd.DataFrame:
    return superseded_among(with_all_columns(memories), relations=relations, now=now)


def _stale(memories: pd.DataFrame, *, now: pd.Timestamp) -> pd.DataFrame:
    return find_stale(with_all_columns(memories), now=now)


def _are_two(workers: object, n_rows: int) -> bool:
    if workers not in ("auto", 1, 2):
        raise ConfigError(f"workers={workers!r}: there is 'auto', 1 and 2")
    return workers == 2 or (workers == "auto" and is_worthwhile(n_rows))


def _chosen(
    functions: dict[Check, CheckFunction], checks: Iterable[Check] | Mapping[Check, CheckFunction] | None
) -> dict[Check, CheckFunction]:
    if isinstance(checks, str):
        raise ConfigError(f"checks={checks!r} is one text: pass a list of names, [{checks!r}]")
    wanted = list(functions if checks is None else checks)
    unknown = [check for check in wanted if check not in functions]
    if unknown:
        raise ConfigError(f"checks={unknown[0]!r}: there is {', '.join(CHECKS)}")
    if isinstance(checks, Mapping):
        return dict(checks)
    return {check: functions[check] for check in functions if check in wanted}


def _check_frame(memories: pd.DataFrame) -> None:
    check_kind("memories", memories, pd.DataFrame, error=FrameError)
    absent = [name for name in ("id", "content") if name not in memories.columns]
    if absent:
        raise FrameError(
            f"the frame has no column {absent[0]!r}, which an audit needs; "
            "pass memories as load_memories returns them, with that column kept"
        )


def _without_closed(findings: pd.DataFrame, memories: pd.DataFrame) -> pd.DataFrame:
    """Propose no change of memories whose content could not be opened: a cleanup leaves them as they are."""
    if "content_error" not in memories.columns:
        return findings
    is_closed = findings["id"].isin(memories["id"][memories["content_error"].notna()])
    return findings.assign(
        action=findings["action"].mask(is_closed & (findings["action"] != "none"), "review")
    )


def _worst_first(findings: pd.DataFrame) -> pd.DataFrame:
    rank = {name: place for place, name in enumerate(reversed(SEVERITIES))}
    order = np.lexsort(
        (
            findings["check"].map({name: place for place, name in enumerate(CHECKS)}),
            findings["severity"].map(rank),
        )
    )
    return findings.iloc[order].reset_index(drop=True)


def _not_checked(memories: pd.DataFrame, parts: Mapping[Check, pd.DataFrame]) -> Iterator[str]:
    """What was not looked for, in sentences: silence must not be read as clean."""
    left_out = [check for check in CHECKS if check not in parts]
    if left_out:
        yield f"Checks that were not run: {', '.join(left_out)}."
    absent = [name for name in (*TEXT_FIELDS, "tags", "source", "created_at") if name not in memories.columns]
    if absent:
        yield f"Columns that the frame does not have: {', '.join(absent)}."
    if "content_error" in memories.columns and (n_closed := int(memories["content_error"].notna().sum())):
        yield f"The content of {number_of(n_closed, 'memory', 'memories')} that could not be opened."
    if memories.attrs.get("memframe", {}).get("complete") is False:
        yield "Memories beyond the limit of the load: there are more than were audited."
    fields = [name for name in TEXT_FIELDS if name in memories.columns]
    too_long = {name: are_too_long(memories, name) for name in fields}
    if n_long := int(np.logical_or.reduce([*too_long.values()]).sum()):
        yield (
            f"Text beyond the first {MAX_CHARACTERS:,} characters of a field, in "
            f"{number_of(n_long, 'memory', 'memories')}."
        )
    if n_long := int(too_long["content"].sum()):
        yield (
            f"Contents longer than {MAX_CHARACTERS:,} characters, in {number_of(n_long, 'memory', 'memories')}, for "
            "junk, near duplicates, changed values and superseded facts."
        )
    for findings in parts.values():
        yield from findings.attrs.get("not_checked", ())

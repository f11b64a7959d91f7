"""Junk: memories that seem to say nothing about anybody, and how each of them shows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import pandas as pd

from memframe.audit.findings import Proposal, Severity, findings_frame
from memframe.audit.junk import (
    echoes,
    emptiness,
    errands,
    loops,
    manners,
    moments,
    other_languages,
    outputs,
    prompts,
    recitals,
    reports,
    silences,
    states,
)
from memframe.audit.junk.repeats import find_repeats
from memframe.audit.junk.signs import ACTIONS, Kind, Sign, quoted
from memframe.audit.texts import text_column, texts_with, without_long_contents
from memframe.frames import texts

_JUDGES: tuple[tuple[Callable[[str], Sign | None], tuple[str, ...]], ...] = (
    (emptiness.judge_emptiness, (emptiness.MARKS,)),
    (silences.judge_silence, (silences.MARKS,)),
    (states.judge_state, (states.MARKS,)),
    (reports.judge_report, (reports.MARKS,)),
    (outputs.judge_output, (outputs.MARKS, outputs.SIEVE)),
    (errands.judge_errand, (errands.MARKS,)),
    (moments.judge_moment, (moments.MARKS, moments.SIEVE)),
    (manners.judge_manners, (manners.MARKS,)),
    (other_languages.judge_other_languages, (other_languages.MARKS,)),
    (prompts.judge_prompt, (prompts.MARKS, prompts.SIEVE)),
    (recitals.judge_recital, (recitals.MARKS,)),
)
"""Each with patterns that all texts match which it has anything to say of."""

_SEVERITIES: Mapping[Kind, Severity] = {
    "empty": "low",
    "near_empty": "low",
    "template": "low",
    "session_noise": "low",
}
_WORD = re.compile(r"\w+")


class _Junk(NamedTuple):
    """One memory that is junk."""

    row: int
    sign: Sign
    related: int | None = None
    """Row of the memory that keeps what this one says."""
    group: int | None = None


def find_junk(memories: pd.DataFrame) -> pd.DataFrame:
    """Memories without a fact: prompts, reports of machines, the tool's own words, moments, repeats, emptiness.

    Looks at how texts are built rather than for sentences that it knows: roles and rules in the second person, share
    of words that machines use of themselves or memory tools of remembering, deeds and times of the keyboard,
    sentences of words that fit anybody, wrappings around wrappings, counts of copies. What belongs to a life speaks
    against it. The wording is English, with some German, Spanish and French; in other languages repetition,
    emptiness, unfilled templates and what tools print are found.

    Cannot find a made-up fact that occurs a few times only; it reads like any other. Misses rules that are put as a
    saying ("Private things stay private"), and what is asked for or done in words that machines and texts have no
    part in.

    On corpora that nobody had seen who wrote the rules, precision is 1.00 and recall 0.55 to 0.59. On real memories of
    systems and coding agents 18 of 81 findings were right: what a project decided, its limits, commands and work in
    progress read like tasks or noise. None of 1,210 facts that people told is called junk.

    What is proposed is told by the kind (`memframe.audit.junk.signs.ACTIONS`): deleting for ``empty`` and
    ``heartbeat``, if neither title nor summary say more, and merging with the first one for ``repeated``. All other
    kinds are told by wording, and are for review.

    Parameters
    ----------
    memories : DataFrame
        Needs ``id`` and ``content``; looks at ``title``, ``summary`` and ``created_at``.

    Returns
    -------
    DataFrame
        Findings of the kinds ``empty heartbeat repeated near_repeat status_report system_prompt feedback_loop
        task_state session_noise tool_output template near_empty``, one a memory; ``related_id`` is the memory that
        stays.

    Examples
    --------
    >>> contents = ["heartbeat ok 2026-01-02T03:00:00Z", "Likes tea", "Memory updated successfully."]
    >>> find_junk(pd.DataFrame({"id": ["m1", "m2", "m3"], "content": contents}))[["kind", "id", "action"]]
                kind  id  action
    0      heartbeat  m1  delete
    1  feedback_loop  m3  review
    """
    memories = without_long_contents(memories)
    contents = text_column(memories, "content").to_pylist()
    found = {junk.row: junk for junk in _found(memories, contents)}  # of two signs the later one counts
    ids = memories["id"].tolist()
    rows = [found[row] for row in sorted(found)]
    return findings_frame(
        check="junk",
        kind=[junk.sign.kind for junk in rows],
        severity=[_SEVERITIES.get(junk.sign.kind, "medium") for junk in rows],
        id=[ids[junk.row] for junk in rows],
        field="content",
        related_id=[None if junk.related is None else ids[junk.related] for junk in rows],
        group=[junk.group for junk in rows],
        score=[junk.sign.score for junk in rows],
        evidence=[junk.sign.evidence for junk in rows],
        action=[_action(junk, memories, contents[junk.row] or "") for junk in rows],
    )


def _found(memories: pd.DataFrame, contents: list[str | None]) -> Iterator[_Junk]:
    """Signs of all kinds, the weightiest last."""
    by_age = _by_age(memories, contents)
    owners = _owners(memories)
    yield from _repeated(by_age, contents, owners)
    for judge, patterns in _JUDGES:
        for row, _, text in texts_with(memories, *patterns, fields=["content"]):
            if sign := judge(text):
                yield _Junk(row, sign)
    yield from _looped(memories, by_age, contents, owners)


def _owners(memories: pd.DataFrame) -> list[str]:
    if "user_id" not in memories.columns:
        return [""] * len(memories)
    return texts(memories, "user_id").fillna("").tolist()


def _by_age(memories: pd.DataFrame, contents: list[str | None]) -> list[int]:
    """Rows with content, the oldest first; in their order where the frame does not tell."""
    ages = memories["created_at"] if "created_at" in memories.columns else pd.Series(range(len(memories)))
    order = ages.reset_index(drop=True).sort_values(kind="stable").index
    return [row for row in order if contents[row]]


def _action(junk: _Junk, memories: pd.DataFrame, content: str) -> Proposal:
    """Return what the kind of a memory proposes; review where something would be lost with it."""
    action = ACTIONS.get(junk.sign.kind, "review")
    is_lost = _says_more(memories, junk.row, content) if action == "delete" else junk.related is None
    return "review" if is_lost else action


def _says_more(memories: pd.DataFrame, row: int, content: str) -> bool:
    """Return whether title or summary (and tags, where there is no content) hold a word that the content lacks."""
    said = _WORD.findall(content.casefold())
    names = ("title", "summary") if said else ("title", "summary", "tags")
    cells = [memories[name].iloc[row] for name in names if name in memories.columns]
    beside = " ".join(
        str(cell) for cell in cells if isinstance(cell, Iterable)
    )  # missing cells are None or NaN
    return not set(said).issuperset(_WORD.findall(beside.casefold()))


def _repeated(by_age: list[int], contents: list[str | None], owners: list[str]) -> Iterator[_Junk]:
    said = [contents[row] or "" for row in by_age]
    for repeat in find_repeats(by_age, said, [owners[row] for row in by_age]):
        is_first = repeat.row == repeat.first
        how = "one of" if repeat.is_exact else "much like"
        words = f"{how} {repeat.n_copies:,} equal memories: {quoted(contents[repeat.row] or '')}"
        sign = Sign("repeated", 0.9, words) if repeat.is_exact else Sign("near_repeat", 0.7, words)
        yield _Junk(repeat.row, sign, None if is_first else repeat.first, repeat.group)


def _looped(
    memories: pd.DataFrame, by_age: list[int], contents: list[str | None], owners: list[str]
) -> Iterator[_Junk]:
    """The tool's own words: to be deleted around nothing, or around what another memory says."""
    wrapped = {
        row: inside
        for row, _, text in texts_with(memories, loops.MARKS, fields=["content"])
        if (inside := loops.unwrap(text))
    }
    wrapped |= {row: loops.Wrapped("", 1) for row in wrapped if recitals.is_nothing_else(contents[row] or "")}
    recited = {
        row: text
        for row, _, text in texts_with(memories, recitals.MARKS, fields=["content"])
        if row not in wrapped and recitals.recites(text)
    }
    elsewhere = _told_elsewhere(wrapped, recited, by_age, contents, owners)
    keepers: dict[tuple[str, frozenset[str]], int] = {}
    for row in (row for row in by_age if row in wrapped or row in recited):
        inner, depth = wrapped.get(row, (contents[row] or "", 1))
        words = f"the memory tool's own words: {quoted(contents[row] or '')}"
        sign = Sign("feedback_loop", 0.95 if not inner or depth > 1 else 0.8, words)
        keeper = elsewhere.get(row)
        if keeper is None and inner and loops.is_labelled(contents[row] or "", depth):
            continue  # a plain label before a fact that no other memory tells
        if keeper is None and inner:
            keeper = keepers.setdefault((owners[row], echoes.words_told(inner)), row)
        yield _Junk(row, sign, None if keeper == row else keeper)


def _told_elsewhere(
    wrapped: Mapping[int, loops.Wrapped],
    recited: Mapping[int, str],
    by_age: list[int],
    contents: list[str | None],
    owners: list[str],
) -> dict[int, int]:
    """For the tool's own words around a fact: the oldest memory of the same person that tells it without them."""
    told = {row: inside.inner for row, inside in wrapped.items() if inside.inner} | dict(recited)
    found: dict[int, int] = {}
    for owner in {owners[row] for row in told}:
        words = {row: echoes.words_told(text) for row, text in told.items() if owners[row] == owner}
        others = [
            (row, contents[row] or "")
            for row in by_age
            if owners[row] == owner and row not in wrapped and row not in recited
        ]
        found |= echoes.tellers(words, others)
    return found

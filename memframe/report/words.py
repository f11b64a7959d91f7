"""Words for checks, severities and proposals, the same wherever findings are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from memframe.display import format_memories


class CheckWords(NamedTuple):
    """Words for a check."""

    title: str
    about: str
    """The things that it looks for."""
    one: str
    """The predicate after "1 memory"."""
    many: str
    """The predicate after "12 memories"."""


CHECK_WORDS = {
    "secret": CheckWords(
        "Secrets",
        "Keys and tokens of machines, and people's passwords, PINs, codes and security answers.",
        "contains an exposed secret",
        "contain an exposed secret",
    ),
    "personal_data": CheckWords(
        "Personal data",
        "E-mail addresses, telephone, card, bank account and national id numbers, and network addresses.",
        "contains personal data",
        "contain personal data",
    ),
    "planted": CheckWords(
        "Planted text",
        "Text that is hidden from people or speaks to the machine that reads it.",
        "contains text that is hidden or speaks to a machine",
        "contain text that is hidden or speaks to a machine",
    ),
    "sealed": CheckWords(
        "Sealed content",
        "Content that could not be decrypted, or is sealed differently from the rest.",
        "could not be decrypted, or is sealed differently from the rest",
        "could not be decrypted, or are sealed differently from the rest",
    ),
    "junk": CheckWords(
        "Junk",
        "Restated prompts, machine reports, the memory tool's own messages, task states, repeats and empty rows.",
        "may say nothing about the user",
        "may say nothing about the user",
    ),
    "exact_duplicate": CheckWords(
        "Exact duplicates",
        "Memories with the same text.",
        "has the same text as another",
        "have the same text as another",
    ),
    "near_duplicate": CheckWords(
        "Near duplicates",
        "Memories that say the same in nearly the same words.",
        "says nearly the same as another",
        "say nearly the same as another",
    ),
    "version": CheckWords(
        "Versions",
        "Older wordings and states of a memory, with the newest of each; never merged.",
        "has an older or newer version",
        "have older or newer versions",
    ),
    "stale": CheckWords(
        "Stale memories",
        "Announcements whose date has passed, and memories that have not been updated for a long time.",
        "may be out of date",
        "may be out of date",
    ),
    "scores": CheckWords(
        "Scores",
        "Importance on two scales, scores out of range, confidence that is the same everywhere.",
        "has a score that cannot be compared",
        "have scores that cannot be compared",
    ),
    "tags": CheckWords(
        "Tags",
        "Names that mean the same, and tags that are disabled, unknown or unused.",
        "has a tag that duplicates another",
        "have tags that duplicate others",
    ),
    "missing": CheckWords(
        "Missing fields",
        "Memories without a title, a summary, a tag, a source or content.",
        "lacks a field",
        "lack a field",
    ),
}
"""Checks in the order in which the report shows them."""

WORST_FIRST = ("high", "medium", "low", "info")
"""Severities in the order in which they are shown."""

PROPOSAL_WORDS = {
    "delete": "delete",
    "merge": "merge into another",
    "redact": "redact",
    "strip": "remove hidden characters",
    "retag": "change tags",
    "rescale": "convert the scale",
    "review": "review",
}
"""Proposals in words, those that change most first; `none` has no words."""


def check_words_of(check: str) -> CheckWords:
    """Return the words for a check; an unknown one is called by its name."""
    name = check.replace("_", " ")
    return CHECK_WORDS.get(
        check, CheckWords(name.capitalize(), "", f"has a finding of {name}", f"have findings of {name}")
    )


def name_kind(kind: object) -> str:
    """Return a kind of findings in words.

    >>> name_kind("status_report"), name_kind("iban")
    ('status report', 'IBAN')
    """
    return " ".join(word.upper() if word in _ACRONYMS else word for word in str(kind).split("_"))


_ACRONYMS = {"iban", "ip", "mac", "pin", "ssn", "url"}


def name_source(source: object) -> str:
    """Return the name of a source for people."""
    return source if isinstance(source, str) and source else "(no source)"


def describe_times(n_times: int, n_memories: int) -> str:
    """Say how often the findings of a row occur; empty if only once.

    >>> describe_times(27, 14), describe_times(2, 1), describe_times(1, 1)
    ('in 14 memories', '2 times', '')
    """
    if n_memories > 1:
        return f"in {format_memories(n_memories)}"
    return f"{n_times:,} times" if n_times > 1 else ""


def none_found(findings: pd.DataFrame, checks: Sequence[str]) -> str:
    """List the checks without findings, which does not prove that nothing is wrong."""
    found = {*findings["check"]}
    return ", ".join(check_words_of(check).title.lower() for check in checks if check not in found)

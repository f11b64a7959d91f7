"""Words of the report: what each check looks for, and what its findings come to in a sentence."""

from __future__ import annotations

from typing import NamedTuple

from memframe.showing import number_of


class Words(NamedTuple):
    """A check in words for people."""

    title: str
    about: str
    """What it looks for."""
    one: str
    """What is wrong with one memory, after "1 memory"."""
    many: str
    """The same of several, after "12 memories"."""


CHECKS = {
    "secret": Words(
        "Secrets",
        "Keys and tokens of machines, and passwords, PINs, codes and answers that somebody told.",
        "holds a secret in the open",
        "hold a secret in the open",
    ),
    "personal_data": Words(
        "Personal data",
        "How people are reached and numbered: mail, telephone, cards, accounts, national numbers, networks.",
        "holds a number or address of somebody",
        "hold numbers or addresses of somebody",
    ),
    "sealed": Words(
        "Sealed content",
        "Content that could not be opened, or is not sealed as the rest.",
        "could not be opened, or is not sealed as the rest",
        "could not be opened, or are not sealed as the rest",
    ),
    "junk": Words(
        "Junk",
        "Restated prompts, reports of machines, the memory tool's own words, moments of a task, repeats, emptiness.",
        "may say nothing about anybody",
        "may say nothing about anybody",
    ),
    "exact_duplicate": Words(
        "Exact duplicates",
        "Memories with the same text.",
        "has the same text as another",
        "have the same text as another",
    ),
    "near_duplicate": Words(
        "Near duplicates",
        "Memories that say the same in nearly the same words.",
        "says nearly the same as another",
        "say nearly the same as another",
    ),
    "changed_value": Words(
        "Changed values",
        "The same sentence with another number, date, name or a “not”; never to be merged.",
        "differs from another in one value",
        "differ from another in one value",
    ),
    "superseded": Words(
        "Superseded facts",
        "Older facts that a newer one seems to replace.",
        "seems to be replaced by a newer one",
        "seem to be replaced by newer ones",
    ),
    "stale": Words(
        "Stale memories",
        "What was about to happen and has passed, and what has long not been touched.",
        "may be out of date",
        "may be out of date",
    ),
    "scores": Words(
        "Scores",
        "Importance on two scales, scores out of range, confidence that never changes.",
        "has a score that does not compare",
        "have scores that do not compare",
    ),
    "tags": Words(
        "Tags",
        "Names that mean the same, and tags that are disabled, unknown or without a memory.",
        "carries a tag that another name stands for",
        "carry tags that other names stand for",
    ),
    "missing": Words(
        "Missing fields",
        "Memories without a title, a summary, a tag, a source or content.",
        "lacks a field",
        "lack a field",
    ),
}
"""Checks in the order in which the report shows them."""

SEVERITIES = ("high", "medium", "low", "info")

PROPOSALS = {
    "delete": "delete",
    "merge": "merge into another",
    "redact": "redact",
    "retag": "tag anew",
    "rescale": "bring to one scale",
    "review": "look at",
}
"""What is proposed, in words; where nothing is, nothing is said."""


def words_of(check: str) -> Words:
    """The words for a check; a check that is new here is called by its name."""
    name = check.replace("_", " ")
    return CHECKS.get(
        check, Words(name.capitalize(), "", f"has a finding of {name}", f"have findings of {name}")
    )


def memories(n: int) -> str:
    """A count of memories.

    >>> memories(1), memories(1200)
    ('1 memory', '1,200 memories')
    """
    return number_of(n, "memory", "memories")


def share(part: int, whole: int) -> str:
    """A share in per cent; neither nothing nor everything where it is not.

    >>> share(1, 1000), share(999, 1000), share(1, 4), share(0, 0)
    ('under 1 %', 'over 99 %', '25 %', '0 %')
    """
    per_cent = 100 * part / whole if whole else 0.0
    if 0 < per_cent < 1:
        return "under 1 %"
    return "over 99 %" if 99 < per_cent < 100 else f"{per_cent:.0f} %"

"""Tags: names that mean the same, tags that are disabled or unknown and still in use, tags without a memory."""

from __future__ import annotations

import re
import unicodedata
from ast import literal_eval
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, permutations
from typing import NamedTuple

import pandas as pd

from memframe.audit.findings import Proposal, Severity, findings_frame, joined
from memframe.display import number_of
from memframe.frames import name_cells

MIN_LETTERS = 6
"""Of names in which one letter more, less or other may be a slip; in shorter ones it makes another word."""

MAX_SHARE = 0.25
"""Of the frequent name's memories that a slip may have at most."""

_SEPARATORS = re.compile(r"[\W_]+")

_QUOTED = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_EVIDENCE = re.compile(rf"{_QUOTED}(?: \([\d,]+ memor(?:y|ies)\) and {_QUOTED})?")
"""How the evidence of a finding names one tag, or two of which the second is proposed for the first."""

_SINGULAR = (
    ("ies", "y"),
    ("sses", "ss"),
    ("xes", "x"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("ss", "ss"),
    ("us", "us"),
)
"""Ends of words, and what they are of one alone; where none of these fits an "s" is dropped."""


def find_tags(memories: pd.DataFrame, tags: pd.DataFrame | None = None) -> pd.DataFrame:
    """Names of tags that mean the same; with the user's tags given, also disabled, unknown and unused ones.

    Names mean the same if they differ in case, accents, signs or a plural, and may do if they differ in one
    letter and one is far rarer; the more frequent one is proposed. Names with different digits never do. Words that
    mean the same but are spelled differently ("car", "automobile") are not told.

    Parameters
    ----------
    memories : DataFrame
        Needs ``id``; looks at ``tags``, and says nothing where there is no such column.
    tags : DataFrame, optional
        As `memframe.load_tags` returns them.

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
    if "tags" not in memories.columns:
        return findings_frame(id=[])
    cells = [tuple(dict.fromkeys(cell)) for cell in name_cells(memories, "tags")]
    users = _Users(memories["id"].tolist(), cells)
    disabled = [] if tags is None else tags["name"][~tags["is_enabled"].astype(bool)].tolist()
    found = [*_near_identical(users, disabled)]
    if tags is not None:
        found += _against_list(users, tags)
    findings = joined(found)
    if tags is None:
        findings.attrs["not_checked"] = (
            "Disabled, unknown and unused tags: they need the user's list of tags, which was not given.",
        )
    return findings


@lru_cache(maxsize=1 << 12)
def names_in(evidence: str) -> tuple[str, ...]:
    """The tag that a finding about a memory is about and, where names mean the same, the one that is proposed for it.

    >>> names_in("'Recipes' (1 memory) and 'recipe' (2 memories)"), names_in("'stamps' is disabled")
    (('Recipes', 'recipe'), ('stamps',))
    """
    quoted = _EVIDENCE.match(evidence)
    return tuple(literal_eval(name) for name in quoted.groups() if name) if quoted else ()


class _Users(NamedTuple):
    """Memories, and the tags that they carry."""

    ids: Sequence[str]
    cells: Sequence[tuple[str, ...]]

    def counts(self) -> Counter[str]:
        """How many memories carry each tag."""
        return Counter(chain.from_iterable(self.cells))

    def findings(
        self, said: Mapping[str, tuple[float, str]], *, kind: str, severity: Severity, action: Proposal
    ) -> pd.DataFrame:
        """One finding for each memory with one of these names; what is said of a name is its score and evidence."""
        rows = [(row, name) for row, cell in enumerate(self.cells) for name in cell if name in said]
        return findings_frame(
            check="tags",
            kind=kind,
            severity=severity,
            id=[self.ids[row] for row, _ in rows],
            field="tags",
            score=[said[name][0] for _, name in rows],
            evidence=[said[name][1] for _, name in rows],
            action=action,
        )


def _near_identical(users: _Users, disabled: Collection[str]) -> Iterator[pd.DataFrame]:
    """Find names that mean the same; a spelling that is itself disabled is not proposed for another."""
    counts = users.counts()
    better = {name: (other, score) for name, other, score in chain(_same_forms(counts), _slips(counts))}
    said: dict[Proposal, dict[str, tuple[float, str]]] = {"retag": {}, "review": {}}
    for name, (other, score) in better.items():
        action: Proposal = "review" if other in disabled and name not in disabled else "retag"
        said[action][name] = score, f"{_counted(name, counts)} and {_counted(other, counts)}"
    for action, names in said.items():
        yield users.findings(names, kind="near_identical", severity="low", action=action)


def _against_list(users: _Users, tags: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """What only the user's own list of tags can tell."""
    counts = users.counts()
    listed = tags["name"].tolist()
    disabled = tags["name"][~tags["is_enabled"].astype(bool)].tolist()
    said = {
        name: (1.0, f"{name!r} is disabled, and still on {_n_memories(counts[name])}") for name in disabled
    }
    yield users.findings(said, kind="disabled", severity="low", action="retag")
    unknown = {name: (1.0, f"{name!r} is not among the user's tags") for name in counts.keys() - set(listed)}
    yield users.findings(unknown, kind="unknown", severity="medium", action="review")
    unused = [name for name in listed if name not in counts]
    yield findings_frame(
        check="tags",
        kind="unused",
        severity="info",
        id=[None] * len(unused),
        field="tags",
        score=1.0,
        evidence=[f"no memory carries {name!r}" for name in unused],
        action="none",
    )


def _same_forms(counts: Counter[str]) -> Iterator[tuple[str, str, float]]:
    """Names that become equal without case, accents, signs and plural; each with the most frequent of them."""
    forms = defaultdict(list)
    for name in counts:
        forms[_form(name)].append(name)
    for names in forms.values():
        best = max(names, key=lambda name: (counts[name], -len(name), name))
        yield from ((name, best, 0.95) for name in names if name != best)


def _slips(counts: Counter[str]) -> Iterator[tuple[str, str, float]]:
    """Rare names that are one letter away from a frequent one.

    Names with a letter in common places meet under the forms that each has without one of its letters.
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
            if counts[rare] <= MAX_SHARE * counts[other] and _is_slip(_form(rare), _form(other)):
                yield rare, other, 0.6


def _is_slip(form: str, other: str) -> bool:
    digits = [[letter for letter in text if letter.isdecimal()] for text in (form, other)]
    return form != other and digits[0] == digits[1] and abs(len(form) - len(other)) <= 1


def _form(name: str) -> str:
    """A name without case, accents, signs and plural.

    >>> _form("Side-Projects"), _form("side project"), _form("Galerías")
    ('sideproject', 'sideproject', 'galeria')
    """
    bare = "".join(
        letter
        for letter in unicodedata.normalize("NFKD", name.casefold())
        if not unicodedata.combining(letter)
    )
    bare = _SEPARATORS.sub("", bare) or bare
    for end, one in _SINGULAR:
        if bare.endswith(end) and len(bare) > len(end) + 2:
            return bare.removesuffix(end) + one
    return bare[:-1] if bare.endswith("s") and len(bare) > 3 else bare


def _counted(name: str, counts: Counter[str]) -> str:
    return f"{name!r} ({_n_memories(counts[name])})"


def _n_memories(n: int) -> str:
    return number_of(n, "memory", "memories")

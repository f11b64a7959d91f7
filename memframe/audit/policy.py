"""Policy: protection of memories, limits and permissions, in a file that people write; decisions do not override it.

::

    [protect]            # never deleted, merged away, redacted or retagged
    tags = ["legal"]
    sources = ["passport-app"]
    importance_from = 0.95
    ids = []
    [limits]             # of one plan
    deletes = 50
    delete_share = 0.05
    changes = 500
    [allow]              # what a scheduled job may apply without a person
    actions = ["delete", "merge"]
    checks = ["exact_duplicate"]
    [fail]               # findings with which `memframe audit` exits with 6
    severity = "high"
    only_open = true
    [[rule]]             # a row as in the rule tables of the audit, with examples
    group = "own"
    kind = "project_name"
    words = "aurora, borealis"
    finds = ["The Aurora launch is in May"]
    misses = ["An auroral light over Tromsø"]

The file is always given by its path; none is read from the working directory by default. This module is below `plan`
and `apply` because both enforce a policy, and in `audit` because its rules are rules of the audit.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
import pandas as pd
import pyarrow as pa
from msgspec import Meta, Struct

from memframe.audit.findings import CHECKS, Severity
from memframe.audit.rules import Rule, RuleTable, fill_rules, load_fragments
from memframe.audit.text import first_characters, text_column
from memframe.errors import ConfigError, check_kind, find_nearest
from memframe.fields import TEXT_FIELDS
from memframe.files import expand_path

Limit = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Step = Literal["create", "edit", "delete", "merge", "redact", "strip", "retag", "rescale"]
"""Change of a memory, as it is named in a policy."""


class Protect(Struct, frozen=True, forbid_unknown_fields=True):
    """Memories that are never deleted, merged away, redacted or retagged; each key adds some.

    Attributes
    ----------
    tags, sources, ids : tuple of str
        Tags, sources and ids of protected memories. Tags and sources are compared without regard to case.
    importance_from : float or None
        Least importance of a protected memory.
    """

    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    importance_from: float | None = None
    ids: tuple[str, ...] = ()

    def find_reason(self, memory_id: str | None, fields: Mapping[str, Any]) -> str | None:
        """Return what protects a memory, such as one of its tags; None if nothing does.

        >>> Protect(tags=("legal",)).find_reason("m1", {"tags": ("Legal", "home")})
        "its tag 'Legal'"
        """
        if memory_id in self.ids:
            return "its id"
        names = {_plain(name) for name in self.tags}
        for name in fields.get("tags") or ():
            if _plain(name) in names:
                return f"its tag {name!r}"
        source = fields.get("source")
        if isinstance(source, str) and _plain(source) in {_plain(name) for name in self.sources}:
            return f"its source {source!r}"
        importance = fields.get("importance")
        if None not in (importance, self.importance_from) and importance >= self.importance_from:  # type: ignore[operator]
            return f"its importance of {importance:g}"
        return None


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of one plan; ``delete_share`` is a share of all memories of the user."""

    deletes: Limit | None = None
    delete_share: Share | None = None
    changes: Limit | None = None


class Allow(Struct, frozen=True, forbid_unknown_fields=True):
    """Changes that may be applied without a person, by action and, if ``checks`` are given, by check."""

    actions: tuple[Step, ...] = ()
    checks: tuple[str, ...] | None = None


class Fail(Struct, frozen=True, forbid_unknown_fields=True):
    """Findings that make an audit fail: of this severity or worse and, with ``only_open``, without a decision."""

    severity: Severity | None = None
    only_open: bool = True


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """Protection, limits and permissions, which decisions do not override. Made by `Policy.load`.

    Examples
    --------
    >>> path = folder / "memframe.toml"
    >>> _ = path.write_text('[protect]\\ntags = ["legal"]\\n[limits]\\ndeletes = 50\\n')
    >>> policy = Policy.load(path)
    >>> policy.protect.tags, policy.limits.deletes
    (('legal',), 50)
    >>> _ = path.write_text('[protect]\\ntag = ["legal"]\\n')
    >>> Policy.load(path)
    Traceback (most recent call last):
    memframe.errors.ConfigError: ...memframe.toml: [protect] has no key 'tag'; the nearest is 'tags'
    """

    protect: Protect = Protect()
    limits: Limits = Limits()
    allow: Allow = Allow()
    fail: Fail = Fail()
    rule: tuple[Rule, ...] = ()

    @staticmethod
    def load(path: str | PathLike[str]) -> Policy:
        """Read a policy file, and test its rules on their examples.

        Raises
        ------
        ConfigError
            The file cannot be read, or has an unknown key or a value of another kind; or a rule fails on one of its
            examples, or is slow on some text. The message names the file and the place.
        """
        source = expand_path(path)
        try:
            document = tomllib.loads(source.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
            cause = getattr(fault, "strerror", None) or str(fault)
            raise ConfigError(
                f"the policy {source} cannot be read ({cause}): correct it, or give another path"
            ) from None
        _refuse_unknown(document, Policy, source, "the file")
        for name, kind in _SECTIONS.items():
            rows = document.get(name, [])
            for section in rows if isinstance(rows, list) else [rows]:
                _refuse_unknown(section, kind, source, f"[[{name}]]" if kind is Rule else f"[{name}]")
        try:
            policy = msgspec.convert(document, Policy)
            rules = fill_rules(policy.rule, load_fragments("common"), source.name)
            for number, rule in enumerate(rules, start=1):
                _check_rule(rule, f"[[rule]] {number}")
        except (msgspec.ValidationError, ValueError) as fault:
            raise ConfigError(f"{source}: {str(fault).removeprefix(f'{source.name}: ')}") from None
        unknown = [name for name in policy.allow.checks or () if name not in CHECKS]
        if unknown:
            nearest = find_nearest(unknown[0], CHECKS)
            raise ConfigError(
                f"{source}: [allow] checks: there is no {unknown[0]!r}; the nearest is {nearest!r}"
            )
        return msgspec.structs.replace(policy, rule=rules)

    @property
    def check(self) -> Callable[[pd.DataFrame], pd.DataFrame]:
        """The rules as a check of your own: ``audit_memories(memories, checks=[*CHECKS, policy.check])``."""

        def policy(memories: pd.DataFrame) -> pd.DataFrame:
            return pd.DataFrame(
                [*_find_matches(RuleTable("policy", self.rule), memories)],
                columns=["id", "kind", "field", "start", "end", "severity", "evidence", "action"],
            )

        return policy


_SECTIONS: Mapping[str, type[Struct]] = {
    "protect": Protect,
    "limits": Limits,
    "allow": Allow,
    "fail": Fail,
    "rule": Rule,
}

PolicyOption = Policy | str | PathLike[str] | None


def read_policy(policy: PolicyOption) -> Policy | None:
    """Return a policy that is given as an object, by its path, or as None."""
    if policy is None or isinstance(policy, Policy):
        return policy
    check_kind("policy", policy, Policy, str, PathLike)
    return Policy.load(policy)


def _plain(name: str) -> str:
    return name.strip().casefold()


def _refuse_unknown(section: object, kind: type[Struct], source: Path, where: str) -> None:
    for name in section if isinstance(section, dict) else ():
        if name not in kind.__struct_fields__:
            nearest = find_nearest(name, kind.__struct_fields__)
            raise ConfigError(f"{source}: {where} has no key {name!r}; the nearest is {nearest!r}")


def _find_matches(table: RuleTable, memories: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    for field in TEXT_FIELDS:
        if field not in memories.columns:
            continue
        texts = first_characters(text_column(memories, field))
        for place, matches in table.search(texts.cast(pa.large_string())):
            for match in matches:
                kind, span = match.rule.kind or match.rule.group, match.found.span()
                evidence = f"{match.rule.group}: {match.found[0][:80]!r}"
                yield memories["id"].iloc[place], kind, field, *span, "medium", evidence, "review"


# ---- test of rules before they are used

_LENGTHS = (8, 12, 16, 20, 24, 32, 64, 128, 512)
"""Lengths of hostile texts, short ones first, because a search may take twice as long for each further character."""

_LONG = 4_096
"""Length of the last hostile text."""
_SLOW_S = 0.02
"""Seconds from which on a search of at most `_LONG` characters may be slow; in linear time it takes a hundredth."""

_MAX_GROWTH = (_LONG / _LENGTHS[-1]) ** 1.5
"""Factor by which a search of `_LONG` characters may take longer than the one before: between linear and quadratic."""

_PIECES = (
    "a",
    "1",
    " ",
    "a ",
    "1 ",
    ".",
    "a.",
    "a-",
    "\n",
    "'",
    "(",
    "/",
    ":",
    "\u00e9",
    "a@",
    "is is ",
    "://",
)
"""Pieces that hostile texts repeat, besides words and examples of the rule."""


def _check_rule(rule: Rule, where: str) -> None:
    """Raise `ValueError` for a rule that fails on one of its examples, or that is slow on some text."""
    try:
        regex, _ = rule.regex, rule.prefilter
    except re.error as fault:
        raise ValueError(f"{where}: {rule.pattern!r} is not a pattern: {fault}") from None
    for name in ("finds", "misses"):
        if not getattr(rule, name):
            raise ValueError(f"{where}: {name} needs an example")
    slow = _find_slow_piece(regex, rule.finds)
    if slow is not None:
        raise ValueError(
            f"{where}: the pattern takes too long on texts that repeat {slow!r}: bound its gaps, such as "
            "[^.\\n]{0,40} instead of .*"
        )
    for text in rule.finds:
        if not regex.search(text):
            raise ValueError(f"{where}: the pattern does not find {text!r}, one of finds")
    for text in rule.misses:
        if regex.search(text):
            raise ValueError(f"{where}: the pattern finds {text!r}, one of misses")


def _find_slow_piece(regex: re.Pattern[str], examples: tuple[str, ...]) -> str | None:
    """Return a piece of text on whose repetition a pattern is slow: a word of it, an example or half of one."""
    words = [f"{word} " for word in re.findall(r"[^\W_]+", re.sub(r"\\.", " ", regex.pattern))[:12]]
    halves = [text[: len(text) * part // 2] for text in examples[:3] for part in (1, 2)]
    for piece in dict.fromkeys([*words, *halves, *_PIECES]):
        for length in _LENGTHS:
            if piece and _search_s(regex, piece, length) > _SLOW_S:
                return piece
        if piece and _search_s(regex, piece, _LONG) > _SLOW_S:
            short_s = max(_search_s(regex, piece, _LENGTHS[-1]), _SLOW_S / _LONG)
            if _search_s(regex, piece, _LONG) > max(_SLOW_S, _MAX_GROWTH * short_s):
                return piece
    return None


def _search_s(regex: re.Pattern[str], piece: str, length: int) -> float:
    """Return the seconds of a search of a repeated piece: the least of up to three, as a busy machine slows some."""
    text = (piece * (length // len(piece) + 1))[:length] + "!"
    least_s = float("inf")
    for _ in range(3):
        start = time.process_time()
        for _ in regex.finditer(text):
            pass
        least_s = min(least_s, time.process_time() - start)
        if least_s < _SLOW_S:
            break
    return least_s


STEPS: tuple[Step, ...] = get_args(Step)

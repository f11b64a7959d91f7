"""Policy: what may and may not happen to memories whatever anybody decides, in a file that people write.

::

    [protect]            # never deleted, merged away, redacted or retagged, whoever asks
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
    [fail]               # what makes `memframe audit` exit with 6
    severity = "high"
    only_open = true
    [[rule]]             # a row as in the rule tables of the audit, with examples
    group = "own"
    kind = "project_name"
    words = "aurora, borealis"
    finds = ["The Aurora launch is in May"]
    misses = ["An auroral light over Tromsø"]

Whoever plans or applies names the file; none is taken from the working directory by itself. It lies below plans and
apply, which keep it, and its rules are rules of the audit.
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
"""The change of a memory, as people speak of it."""


class Protect(Struct, frozen=True, forbid_unknown_fields=True):
    """Memories that are never deleted, merged away, redacted or retagged; each key adds some.

    Attributes
    ----------
    tags, sources, ids : tuple of str
        Tags and sources are compared without regard to case.
    importance_from : float or None
    """

    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    importance_from: float | None = None
    ids: tuple[str, ...] = ()

    def find_reason(self, memory_id: str | None, fields: Mapping[str, Any]) -> str | None:
        """Return the rule that protects a memory, if there is one.

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
    """The most that one plan may do; ``delete_share`` is of all memories of the user."""

    deletes: Limit | None = None
    delete_share: Share | None = None
    changes: Limit | None = None


class Allow(Struct, frozen=True, forbid_unknown_fields=True):
    """Permission to apply without a person; without ``checks`` whatever has found it."""

    actions: tuple[Step, ...] = ()
    checks: tuple[str, ...] | None = None


class Fail(Struct, frozen=True, forbid_unknown_fields=True):
    """Failure of an audit: findings of a severity or worse, and only those that nobody has decided."""

    severity: Severity | None = None
    only_open: bool = True


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """Protection, limits and permissions, whatever anybody decides. Made by `Policy.load`.

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
        """Read a policy file, and try its rules on their examples.

        Raises
        ------
        ConfigError
            The file cannot be read, has an unknown key or a value of another kind, or a rule misses its examples or
            is slow on some text; the message names the file and the place.
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
        """The rules as a check of one's own: ``audit_memories(memories, checks=[*CHECKS, policy.check])``."""

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
    """Return a policy that was given as such, by its path, or not at all."""
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


# ---- rules are tried before they are used

_STEPS = (8, 12, 16, 20, 24, 32, 64, 128, 512)
"""Characters of hostile texts: short ones first, as a pattern may take twice as long for each character."""

_LONG = 4_096
_SLOW_S = 0.02
"""Seconds of a search of `_LONG` characters or less that need a closer look; one in linear time takes a hundredth."""

_MAX_GROWTH = (_LONG / _STEPS[-1]) ** 1.5
"""Halfway between linear and quadratic."""

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


def _check_rule(rule: Rule, where: str) -> None:
    """Raise `ValueError` for a rule that misses its examples, or that some text makes slow."""
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
    """Find a piece of text that makes a pattern slow where it is repeated: its own words, examples and their halves."""
    words = [f"{word} " for word in re.findall(r"[^\W_]+", re.sub(r"\\.", " ", regex.pattern))[:12]]
    halves = [text[: len(text) * part // 2] for text in examples[:3] for part in (1, 2)]
    for piece in dict.fromkeys([*words, *halves, *_PIECES]):
        for length in _STEPS:
            if piece and _search_s(regex, piece, length) > _SLOW_S:
                return piece
        if piece and _search_s(regex, piece, _LONG) > _SLOW_S:
            short_s = max(_search_s(regex, piece, _STEPS[-1]), _SLOW_S / _LONG)
            if _search_s(regex, piece, _LONG) > max(_SLOW_S, _MAX_GROWTH * short_s):
                return piece
    return None


def _search_s(regex: re.Pattern[str], piece: str, length: int) -> float:
    """Measure a search of a repeated text, twice where it seems slow, as a busy machine slows some."""
    text = (piece * (length // len(piece) + 1))[:length] + "!"
    taken = float("inf")
    for _ in range(3):
        start = time.process_time()
        for _ in regex.finditer(text):
            pass
        taken = min(taken, time.process_time() - start)
        if taken < _SLOW_S:
            break
    return taken


STEPS: tuple[Step, ...] = get_args(Step)

"""Check a service of this protocol against the specification: one line for each requirement.

The check only reads, unless it may write: then it creates its own memories, and deletes them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from memframe.conformance.probe import NotTriedError, Probe, UnmetError
from memframe.conformance.requirements import REQUIREMENTS, Requirement
from memframe.display import printable
from memframe.errors import ConfigError, MemframeError

__all__ = ["REQUIREMENTS", "Probe", "Verdict", "check_expected", "check_service"]

Outcome = Literal["holds", "fails", "found", "not tried"]


class Verdict(NamedTuple):
    """Outcome of one requirement; `found` describes what was found, and quotes no value."""

    requirement: Requirement
    outcome: Outcome
    found: str
    is_expected: bool
    """True if the requirement is listed as expected to fail."""

    @property
    def breaks(self) -> bool:
        """Return True if a ``must`` fails, or a requirement that is expected to fail holds."""
        if self.outcome == "fails":
            return self.requirement.level == "must" and not self.is_expected
        return self.outcome == "holds" and self.is_expected

    def as_record(self) -> dict[str, Any]:
        """Return the fields for a JSON report."""
        named = self.requirement._asdict()
        del named["check"]
        return {**named, "outcome": self.outcome, "found": self.found, "is_expected": self.is_expected}


def check_expected(ids: Iterable[str]) -> frozenset[str]:
    """Return the ids of requirements that are expected to fail; `ConfigError` for an unknown one."""
    ids = frozenset(ids)
    if unknown := sorted(ids - REQUIREMENTS.keys()):
        raise ConfigError(
            f"there is no requirement {printable(unknown[0])!r} that could fail; a check prints the ids"
        )
    return ids


def check_service(
    probe: Probe,
    *,
    expected: frozenset[str] = frozenset(),
    report: Callable[[Verdict], object] = lambda _: None,
) -> list[Verdict]:
    """Try all requirements on a service, then remove what the check has created.

    Parameters
    ----------
    probe : Probe
        The service, and what the check may try on it.
    expected : frozenset of str
        Ids of requirements that are expected to fail.
    report : callable
        Called with each verdict as soon as it is known.

    Examples
    --------
    >>> import memframe as mf
    >>> from memframe.client.transport import Transport
    >>> from memframe.secret import Secret
    >>> with mf.service.run_local() as local:
    ...     probe = Probe(local.base_url, Secret(local.api_key), transport=Transport())
    ...     [verdict.requirement.id for verdict in check_service(probe) if verdict.breaks]
    []
    """
    verdicts = []
    try:
        for requirement in REQUIREMENTS.values():
            verdict = Verdict(requirement, *_try(requirement, probe), requirement.id in expected)
            verdicts.append(verdict)
            report(verdict)
    finally:  # also after Ctrl-C
        probe.remove_traces()
    return verdicts


def _try(requirement: Requirement, probe: Probe) -> tuple[Outcome, str]:
    try:
        found = requirement.check(probe)
    except NotTriedError as missing:
        return "not tried", str(missing)
    except UnmetError as unmet:
        return "fails", str(unmet)
    except MemframeError as error:  # no answer, a redirect, content that does not open
        return "fails", str(error)
    return ("found" if requirement.level == "free" else "holds"), found

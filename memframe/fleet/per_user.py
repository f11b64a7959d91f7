"""Policies and decisions of a fleet: common ones for all users, and others that replace them for some.

Each is a file, or a folder of files: ``memframe.toml`` and ``memframe.decisions`` are for all users, ``USER_ID.toml``
and ``USER_ID.decisions`` for one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from memframe.audit.policy import Policy, PolicyOption, read_policy
from memframe.client.responses import canonical_id
from memframe.decisions import Decisions, DecisionsByMemory
from memframe.errors import ConfigError, JournalError, MemframeError
from memframe.files import expand_path, raise_os_errors_as
from memframe.wire import AccessRequest

COMMON = "memframe"
"""Stem of the file for all users, in a folder that has other files for some."""

T = TypeVar("T")


class PerUser(Struct, Generic[T], frozen=True):
    """A setting for all users, and others that replace it for some."""

    common: T | None = None
    own: Mapping[str, T] = {}
    suffix: str = ""

    def of(self, user_id: str) -> T | None:
        """Return the setting for a user."""
        return self.own.get(canonical_id(user_id), self.common)

    def warn_of_strangers(self, requests: Iterable[AccessRequest]) -> None:
        """Warn about files for users who have no request: the name may be misspelt."""
        user_ids = [request.user_id for request in requests]
        strange = sorted(self.own.keys() - {canonical_id(one) for one in user_ids if one})
        if strange and None not in user_ids:
            file = f"{strange[0]}{self.suffix}"
            message = f"{file} applies to nobody: no user with this id has an access request"
            warnings.warn(message, UserWarning, stacklevel=2)


def read_policies(policy: PolicyOption) -> PerUser[Policy]:
    """Return policies, given as a `Policy`, the path of a file or the path of a folder.

    Raises
    ------
    ConfigError
        A policy cannot be read, or a folder has none.

    Examples
    --------
    >>> policies = folder / "policies"
    >>> policies.mkdir()
    >>> _ = (policies / "memframe.toml").write_text("[limits]\\ndeletes = 50\\n")
    >>> _ = (policies / "5f0c9b1e-0000-4000-8000-00000000000a.toml").write_text("[limits]\\ndeletes = 0\\n")
    >>> found = read_policies(policies)
    >>> [found.of(user_id).limits.deletes for user_id in ("5f0c9b1e-0000-4000-8000-00000000000a", "another")]
    [0, 50]
    """
    if isinstance(policy, Policy) or not isinstance(policy, str | PathLike):
        return PerUser(read_policy(policy))
    path = expand_path(policy)
    if not path.is_dir():
        return PerUser(read_policy(path))
    found = _read_folder(path, ".toml", Policy.load, ConfigError)
    if found.common is None and not found.own:
        raise ConfigError(
            f"{path} has no policy: put {COMMON}.toml there for all users, or USER_ID.toml for one of them"
        )
    return found


def read_fleet_decisions(decisions: str | PathLike[str] | None) -> PerUser[DecisionsByMemory]:
    """Read decisions from a file or a folder; before the first review, a folder has none.

    Raises
    ------
    JournalError
        A file cannot be read.
    """
    if decisions is None:
        return PerUser()
    path = expand_path(decisions)
    if not path.is_dir():
        return PerUser(DecisionsByMemory.read(path))
    return _read_folder(path, ".decisions", DecisionsByMemory.read, JournalError)


def decisions_of(decisions: PerUser[DecisionsByMemory], user_id: str, ids: Iterable[str]) -> Decisions | None:
    """Return the decisions about memories (their ids) of a user.

    Raises
    ------
    JournalError
        Both the common file and the user's own decide about them. One would hide what the other rejects, and a plan
        would delete it.
    """
    found, common, ids = decisions.of(user_id), decisions.common, list(ids)
    if found is not common and common is not None and any(one in common.by_id for one in ids):
        raise JournalError(
            f"{COMMON}.decisions and {canonical_id(user_id)}.decisions both decide about memories of this user, and "
            "only one of them can count: remove the lines about this user from the former, or delete the latter"
        )
    return None if found is None else found.of(ids)


def _read_folder(
    path: Path, suffix: str, load: Callable[[Path], T], error: type[MemframeError]
) -> PerUser[T]:
    with raise_os_errors_as(error, f"the files in {path} cannot be read", "check its permissions"):
        files = sorted(file for file in path.iterdir() if file.suffix == suffix)
    found = {file.stem: load(file) for file in files}
    common = found.pop(COMMON, None)
    return PerUser(common, {canonical_id(name): one for name, one in found.items()}, suffix)

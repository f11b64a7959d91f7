"""Policies of a fleet: one for all users, and others for some."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from os import PathLike

from msgspec import Struct

from memframe.audit.policy import Policy, PolicyOption, read_policy
from memframe.client.responses import canonical_id
from memframe.errors import ConfigError
from memframe.files import expand_path, raise_os_errors_as
from memframe.wire import AccessRequest

COMMON = "memframe.toml"
"""Name of the policy of all users, in a folder that has others for some."""


class Policies(Struct, frozen=True):
    """The policy of all users, and those that count in its place for some."""

    common: Policy | None = None
    of_user: Mapping[str, Policy] = {}

    def of(self, user_id: str) -> Policy | None:
        """Return the policy that counts for a user."""
        return self.of_user.get(canonical_id(user_id), self.common)

    def warn_of_strangers(self, requests: Iterable[AccessRequest]) -> None:
        """Warn of policies for users of whom there is no request: the name of a file may be misspelt."""
        user_ids = [request.user_id for request in requests]
        strange = sorted(self.of_user.keys() - {canonical_id(one) for one in user_ids if one})
        if strange and None not in user_ids:
            message = (
                f"the policy {strange[0]}.toml applies to nobody: no access request is of a user with this id"
            )
            warnings.warn(message, UserWarning, stacklevel=2)


def read_policies(policy: PolicyOption) -> Policies:
    """Return policies that were given as one, by the path of a file, or by that of a folder.

    A folder has ``memframe.toml`` for all users, and ``USER_ID.toml`` for those for whom another one counts in its
    place, with all of its sections.

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
        return Policies(read_policy(policy))
    path = expand_path(policy)
    if not path.is_dir():
        return Policies(read_policy(path))
    with raise_os_errors_as(ConfigError, f"the policies in {path} cannot be read", "check its permissions"):
        files = sorted(file for file in path.iterdir() if file.suffix == ".toml")
    if not files:
        raise ConfigError(
            f"{path} has no policy: put {COMMON} there for all users, or USER_ID.toml for one of them"
        )
    found = {file.name: Policy.load(file) for file in files}
    common = found.pop(COMMON, None)
    return Policies(common, {canonical_id(name.removesuffix(".toml")): one for name, one in found.items()})

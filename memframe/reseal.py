"""After a change of key: content that is sealed with older keys, planned to be sealed with the newest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from memframe.access import Access
from memframe.change import Change
from memframe.current import Stored, iter_stored
from memframe.envelope import Envelope
from memframe.errors import PlanError, SealError, check_kind
from memframe.plan import Plan, plan_of
from memframe.secret import Secret, as_secret

_VERSION = re.compile(r"mf1\.(0|[1-9][0-9]{0,8})\.")
"""How our own layout, which alone binds it, names the version of its key."""

OldKeys = Mapping[int, Secret | str] | Iterable[Secret | str]


def plan_reseal(access: Access, *, old_keys: OldKeys | None = None) -> Plan:
    """Plan to seal all content with the newest key that is not sealed with it yet.

    For services that leave that to the application when a key changes. The access must be one that was opened
    after the change. What is under the newest key already, and what is stored unsealed, is left alone: planning
    again after a run that broke off plans what is left.

    Parameters
    ----------
    access : Access
    old_keys : mapping of int to Secret, or iterable of Secret, optional
        The older keys by their versions, or simply all of them; as hexadecimal text.

    Returns
    -------
    Plan
        A patch of the content of each such memory. What no key opens is a change of action "invalid" with the
        reason, which no run carries out: ``plan.without("invalid")`` leaves those as they are.

    Raises
    ------
    SealError
        A key is not of the known form.

    Examples
    --------
    >>> plan_reseal(access).counts  # all of it is under the newest key
    {}
    """
    check_kind("access", access, Access)
    moment = access.client.runtime.now()
    ring = _Ring(access.envelope, old_keys, newest=access.credentials.key_version)
    records = [_change(stored, ring) for stored in iter_stored(access) if _is_closed(stored)]
    return plan_of(access, records, created_at=moment)


def _is_closed(stored: Stored) -> bool:
    return stored.content is None and stored.blob.content is not None


def _change(stored: Stored, ring: _Ring) -> Change:
    content = ring.opened(stored.blob.content or "")
    if content is None:
        return Change(
            action="invalid",
            id=stored.id,
            reason=f"{stored.error}; {ring.said}",
            sealed=stored.sealed_digest,
        )
    return Change(
        action="patch",
        id=stored.id,
        after={"content": content},
        reason="sealed with an older key",
        sealed=stored.sealed_digest,
    )


class _Ring:
    """The older keys, each as the envelope that it opens."""

    def __init__(self, envelope: Envelope, old_keys: OldKeys | None, *, newest: int) -> None:
        self._envelope = envelope
        self._newest = newest
        self._keys = [*_with_versions(old_keys)]
        self._opened: dict[tuple[int, int], Envelope] = {}
        for number in range(len(self._keys)):
            self._check(number)  # a key that is none is said before anything is read

    @property
    def said(self) -> str:
        """Why nothing opened a text, beside what the newest key said of it."""
        return "none of the older keys opens it either" if self._keys else "pass the older key in old_keys"

    def opened(self, sealed: str) -> str | None:
        """Plain text, by whichever key opens it."""
        named = _VERSION.match(sealed)
        for number, (version, _) in enumerate(self._keys):
            said = int(named[1]) if named else self._newest
            plain = self._under(number, said if version is None else version).open_many([sealed]).plain[0]
            if plain is not None:
                return plain.decode()
        return None

    def _check(self, number: int) -> None:
        try:
            self._under(number, 0)
        except SealError as refused:
            raise SealError(f"number {number + 1} of the older keys: {refused}") from None

    def _under(self, number: int, version: int) -> Envelope:
        if (number, version) not in self._opened:
            self._opened[number, version] = self._envelope.rekey(self._keys[number][1], version)
        return self._opened[number, version]


def _with_versions(old_keys: OldKeys | None) -> Iterator[tuple[int | None, Secret]]:
    if isinstance(old_keys, str | Secret):
        raise PlanError("old_keys is one key: pass a list of keys, or a mapping of versions to keys")
    if isinstance(old_keys, Mapping):
        yield from ((version, as_secret(key)) for version, key in old_keys.items())
    else:
        yield from ((None, as_secret(key)) for key in old_keys or ())

"""Reasons for which a run ends early: a refusal, a spent budget of retries, a new key of the user."""

from __future__ import annotations

from memframe.access import Access, explain_refusal
from memframe.apply.preflight import refuse_rekeyed
from memframe.errors import AccessError, AuthError, MemframeError, StalePlanError

RECHECK_S = 5.0
"""Seconds between two checks whether access ended or the key changed: after a change of key, what is sent is sealed
with a key that the service no longer hands out."""


class EarlyEnd:
    """The reason for which a run sends nothing more, if there is one, and the check for a change of key.

    The contents of the run are sealed under ``key_version``.
    """

    def __init__(self, access: Access, key_version: int) -> None:
        self.access = access
        """Access to the memories, with the newest key that was seen."""
        self.is_denied = False
        """True once access is denied, so that nothing more can be read either."""
        self._key_version = key_version
        self._clock = access.client.runtime.clock
        self._checked_at = self._clock()
        self._first: MemframeError | None = None
        self._other_key: StalePlanError | None = None
        self._compare_key(access)

    def __bool__(self) -> bool:
        return self._first is not None

    @property
    def is_rekeyed(self) -> bool:
        """True if the user has a new key, under which the service has sealed all contents again."""
        return self._other_key is not None

    @property
    def is_recheck_due(self) -> bool:
        """True if the last check was too long ago."""
        return self._clock() - self._checked_at >= RECHECK_S

    def note(self, error: MemframeError | None, *, is_denied: bool | None = None) -> None:
        """Note a reason to send nothing more, the first of which counts, and whether access is denied."""
        self._first = self._first or error
        self.is_denied |= isinstance(error, AccessError | AuthError) if is_denied is None else is_denied

    def recheck(self) -> None:
        """Fetch the keys: end the run if they changed since content was sealed, or access is refused."""
        try:
            self._compare_key(self.access.renew())
        except (AccessError, AuthError) as refused:
            self.note(refused)
        except MemframeError:
            pass  # if the service cannot be reached, the writes fail as well, and report it
        finally:
            self._checked_at = self._clock()

    def explain(self) -> MemframeError | None:
        """Return the error that ended the run early.

        A new key explains any refusal. A refusal does not say what state the access request is in, so this is read.
        """
        reason = self._other_key or self._first
        if not isinstance(reason, AccessError):
            return reason
        try:
            return explain_refusal(self.access.client, self.access.request_id, reason)
        except MemframeError:
            return reason

    def _compare_key(self, access: Access) -> None:
        try:
            refuse_rekeyed(access, self._key_version)
        except StalePlanError as rekeyed:
            self.access, self._other_key = access, rekeyed
            self.note(rekeyed)

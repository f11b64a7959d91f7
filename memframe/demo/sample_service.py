"""A service with the sample's person on it, and herself at a browser: where tours and notebooks begin."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import Self

import memframe as mf
from memframe.demo.person import Person
from memframe.sample import SampleMemory, load_sample, load_sample_tags
from memframe.service import run_local

EMAIL = "ilka@example.org"
PASSWORD = "only for this tour"  # of a made-up person, on a service that ends with the tour


class SampleService:
    """A running service that holds the sample's memories, and the person whose memories they are.

    It stops with `close`, at the end of a ``with`` block, or at the latest with the process, and its
    database is gone then.

    Attributes
    ----------
    local : LocalService
        Addresses, and one developer's secrets.
    person : Person
        Ilka, who signs in, allows and decides in a browser of her own.

    Examples
    --------
    >>> with SampleService() as sample:
    ...     access = sample.open_access()
    ...     len(mf.load_memories(access, progress=False))
    389
    """

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._end = weakref.finalize(self, self._opened.close)
        self.local = self._opened.enter_context(run_local())
        self.person = self.add_person(EMAIL, load_sample())

    def __repr__(self) -> str:
        return f"<SampleService of {EMAIL}, {'running' if self._end.alive else 'stopped'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def add_person(self, email: str, memories: Sequence[SampleMemory]) -> Person:
        """One more user, with memories and the sample's tags, at a browser of their own."""
        person = self._opened.enter_context(closing(Person(email, PASSWORD)))
        self.local.import_memories(self.local.add_user(email, PASSWORD), memories, load_sample_tags())
        return person

    def open_access(
        self, person: Person | None = None, *, reason: str = "A look at what my assistants remember"
    ) -> mf.Access:
        """Ask a person, by default Ilka, who approves: in one call what `memframe demo` tells step by step."""
        local, person = self.local, person or self.person
        client = self._opened.enter_context(
            mf.connect(local.base_url, api_key=local.api_key, auth_url=local.auth_url)
        )
        flow = mf.OAuthFlow(
            local.client_id, local.client_secret, auth_url=local.auth_url, redirect_uri=local.redirect_uri
        )
        tokens = flow.exchange(person.authorize(flow.authorization_url()))
        request = client.create_access_request(tokens.memory_key, reason)
        person.decide(local.dashboard_url, "Approve")
        return mf.open_access(client, request.id)

    def close(self) -> None:
        """Stop the service and remove its database; a second call does nothing."""
        self._end()

"""A service with the sample's person on it, and herself at a browser: where tours and notebooks begin."""

from __future__ import annotations

import weakref
from contextlib import ExitStack, closing
from typing import Self

from memframe.demo.person import Person
from memframe.sample import load_sample, load_sample_tags
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
    ...     print(sample.local.base_url)
    http://127.0.0.1:.../api/v1
    """

    def __init__(self) -> None:
        with ExitStack() as opened:
            self.local = opened.enter_context(run_local())
            self.person = opened.enter_context(closing(Person(EMAIL, PASSWORD)))
            user_id = self.local.add_user(EMAIL, PASSWORD)
            self.local.import_memories(user_id, load_sample(), load_sample_tags())
            self._end = weakref.finalize(self, opened.pop_all().close)

    def __repr__(self) -> str:
        return f"<SampleService of {EMAIL}, {'running' if self._end.alive else 'stopped'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the service and remove its database; a second call does nothing."""
        self._end()

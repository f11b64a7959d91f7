"""A store to clean up, on the real service, and what people look at before and after."""

from copy import copy

import pandas as pd
import pytest

import memframe as mf

QUIET = {"progress": False, "settle_s": 0.0}
NOW = pd.Timestamp("2026-06-01", tz="UTC")
PLAIN = {
    "title": None,
    "summary": None,
    "tags": (),
    "importance": None,
    "confidence": 0.8,
    "source": "chat",
    "created_at": "2026-03-01T10:00:00Z",
    "updated_at": "2026-03-01T10:00:00Z",
}


class Store:
    """One user's memories at the service, filled with what a test says."""

    def __init__(self, user):
        self.access = user.access()
        self._user = user

    def fill(self, *memories, tags=()):
        """Memories as contents, or as dicts of their fields; returns what was loaded."""
        records = [PLAIN | ({"content": one} if isinstance(one, str) else one) for one in memories]
        self._user.service.import_memories(self._user.user_id, records, tags)
        return self.load()

    def through(self, proxy):
        """The same store, reached through a proxy; close its client."""
        other = copy(self)
        client = mf.connect(proxy.base_url, api_key=self._user.service.api_key)
        other.access = mf.open_access(client, self.access.request_id)
        return other

    def load(self):
        return mf.load_memories(self.access, progress=False)

    def audit(self, **options):
        return mf.audit_memories(self.load(), **{"tags": mf.load_tags(self.access), "now": NOW, **options})

    def plan(self, audit=None, **options):
        return mf.plan_cleanup(self.access, self.audit() if audit is None else audit, **options)

    def apply(self, plan):
        run = mf.apply_plan(self.access, plan, confirm=plan.counts.get("delete", 0), **QUIET)
        run.raise_for_failures()
        return run

    def clean(self, **options):
        """Audit, plan, apply; the memories after that."""
        self.apply(self.plan(**options))
        return self.load()

    def edit(self, memory_id, **fields):
        """Somebody else writes."""
        other = mf.open_access(self.access.client, self.access.request_id)
        mf.push_memories(other, pd.DataFrame([{"id": memory_id, **fields}]), **QUIET).raise_for_failures()

    def delete(self, memory_id):
        other = mf.open_access(self.access.client, self.access.request_id)
        mf.apply_plan(other, mf.plan_deletes(other, memory_id), confirm=1, **QUIET).raise_for_failures()


@pytest.fixture
def store(user):
    return Store(user)

"""Memories of a new user, loaded, and somebody else who writes at the same time."""

from contextlib import closing

import pytest
from msgspec.structs import replace

import memframe as mf
from memframe.secret import Secret

ROWS = [
    {
        "content": "Ada likes tea.",
        "title": "Tea",
        "tags": ("food", "home"),
        "importance": 0.5,
        "source": "chat",
    },
    {"content": "The boat is called Ida.", "summary": "The boat's name", "confidence": 0.25},
    {"content": "Zoë schläft, 猫も。", "title": "", "tags": (), "importance": 3.0},
    {"content": "Line one\nline two", "title": "Lines", "tags": ("home",), "importance": 0.0},
]


class Writers:
    """One user's memories, loaded by the one who plans, and another client that may write meanwhile."""

    def __init__(self, user):
        self.access = user.access()
        self.user = user
        self._key = self.access.credentials.memory_key
        self._other = mf.connect(user.service.base_url, api_key=user.service.api_key)
        user.service.import_memories(user.user_id, ROWS)
        self.memories = self.load()
        self.ids = self.memories["id"].to_list()

    def close(self):
        self._other.close()

    def load(self):
        return mf.load_memories(self.access, progress=False).set_axis(list("abcd"))

    def theirs(self, row, **fields):
        """Somebody else changes a memory."""
        if "content" in fields:
            fields["content"] = self.access.envelope.seal(fields["content"])
        self._other.update_memory_blob(self.access.user_id, self.ids[row], memory_key=self._key, **fields)

    def gone(self, row):
        """Somebody else deletes a memory."""
        self._other.delete_memory_blob(self.access.user_id, self.ids[row])

    def stranger(self):
        """An access to the same memories that has loaded nothing."""
        return mf.open_access(self.access.client, self.access.request_id)

    def after_rotation(self):
        """An access that holds the next key, while everything is still sealed with the one before."""
        keys = replace(
            self.access.credentials,
            encryption_key=Secret("0f1e" * 16),
            key_version=self.access.credentials.key_version + 1,
        )
        envelope = self.access.envelope.rekey(keys.encryption_key, keys.key_version)
        return mf.Access(self.access.client, self.access.request_id, keys, envelope)

    def plan(self, edited, **options):
        return mf.plan_changes(self.access, edited, **options)

    def edited(self, **cells):
        """The loaded frame with other cells in its first row."""
        return with_cells(self.memories, "a", **cells)


def with_cells(frame, label, **cells):
    """The frame with other cells in one row, whatever the dtypes of their columns are."""
    edited = frame.copy()
    for name, cell in cells.items():
        edited[name] = edited[name].astype(object)
        edited.at[label, name] = cell
    return edited


@pytest.fixture
def writers(user):
    with closing(Writers(user)) as writers:
        yield writers


def sent(plan):
    """What a plan writes: by label of the row the fields that it sends."""
    return {change.row: change.after for change in plan.writes}


def picture_of(frame):
    """All that can be seen of a frame: for a comparison with later."""
    return repr(frame.to_dict("list")), frame.dtypes.to_dict(), frame.index.to_list(), frame.attrs

"""What was written becomes a baseline: editing the same frame once more is no conflict with one's own run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memframe.access import Access
from memframe.current import Stored
from memframe.frames import TIME
from memframe.journal import Operation


def keep_known(access: Access, written: Sequence[Operation], stored: Mapping[str, Stored]) -> None:
    """Bring the baselines of patched memories up to date, in the fields that were written and in no other.

    What somebody else has written meanwhile was read back, but nobody has seen it: it stays a conflict. Frames of
    before keep their own baseline, which the older ``updated_at`` names.

    Parameters
    ----------
    access : Access
        The one that the memories were loaded through.
    written : sequence of Operation
    stored : mapping of str to Stored
        The memories as they were read back, by id.
    """
    patched = {str(op.id): op.change for op in written if op.action == "patch" and op.id in stored}
    if not patched or not access.has_baselines:
        return
    baseline = access.baseline()
    rows = baseline.loc[baseline.index.isin(patched)].copy()
    if rows.empty:
        return
    for memory_id in rows.index:
        for name, value in patched[memory_id].legible.items():
            rows.at[memory_id, name] = value  # type: ignore[assignment]  # a tuple is a cell, too
    times = TIME.join([TIME.chunk([stored[memory_id].blob.updated_at for memory_id in rows.index])])
    access.keep_baseline(rows.assign(updated_at=times.array).reset_index(drop=True))

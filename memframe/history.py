"""The past of an archive: the changes between two of its states, and the life of one memory, as a plan shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from os import PathLike

import pandas as pd

from memframe.archive import Changes, load_archive
from memframe.archive.sealing import Key
from memframe.errors import FrameError
from memframe.files import expand_path
from memframe.plan.change import FIELDS, Change, Value, in_order, mask, same_value
from memframe.restore import hide_secrets
from memframe.snapshots import find_snapshots

Moment = str | date
"""A moment as `load_archive` takes it for ``as_of``."""


class Differences(Changes, frozen=True, kw_only=True, eq=False):
    """Changes between two states of an archive, with the memories as they were and as they are.

    Attributes
    ----------
    added, changed, gone : tuple of str
        Ids of the memories that differ.
    before : DataFrame
        The changed and gone memories, as in the earlier state.
    after : DataFrame
        The added and changed memories, as in the later state.
    changes : DataFrame
        One row per memory that differs, in the columns of `Plan.changes`: ``action`` ("create", "patch" or "delete"),
        ``id``, ``fields``, and their values ``before`` and ``after``. Secrets are masked, as in a plan. If a memory
        differs only in fields that the service sets, these are shown.
    """

    before: pd.DataFrame
    after: pd.DataFrame
    changes: pd.DataFrame


def diff_archives(
    path: str | PathLike[str], since: Moment, until: Moment | None = None, *, key: Key | None = None
) -> Differences:
    """Compare two states of an archive that keeps its past (`refresh_archive`).

    Parameters
    ----------
    path : str or Path
        The folder of an archive.
    since, until : str, datetime or date
        Moments, as in `load_archive`; ``until`` is by default the present.
    key : str, Secret, Credentials, Access, or dict of int to key, optional
        The key to a sealed archive.

    Returns
    -------
    Differences

    Raises
    ------
    FrameError, SealError
        As in `load_archive`.

    Examples
    --------
    >>> from memframe import export_memories, list_snapshots, load_memories, refresh_archive, update_memories
    >>> n_rows = export_memories(access, folder / "week")
    >>> run = update_memories(access, load_memories(access, limit=1).assign(title="Ilka"))
    >>> refreshed = refresh_archive(access, folder / "week", keep=True)
    >>> first = list_snapshots(folder / "week")["taken_at"].iloc[0]
    >>> diff = diff_archives(folder / "week", first)
    >>> diff
    <memframe.Differences: 0 added, 1 changed, 0 gone>
    >>> diff.changes[["action", "fields", "before", "after"]]
      action    fields                       before              after
    0  patch  (title,)  {'title': 'Who Ilka is'}  {'title': 'Ilka'}
    """
    earlier, later = (load_archive(path, key=key, as_of=moment) for moment in (since, until))
    changes = compare_states(earlier, later)
    ids = {action: tuple(str(one.id) for one in changes if one.action == action) for action in _ACTIONS}
    added, changed, gone = ids.values()
    return Differences(
        added=added,
        changed=changed,
        gone=gone,
        before=earlier[earlier["id"].isin([*changed, *gone])].reset_index(drop=True),
        after=later[later["id"].isin([*added, *changed])].reset_index(drop=True),
        changes=frame_of_changes(changes),
    )


_ACTIONS = "create", "patch", "delete"


def find_changes(
    path: str | PathLike[str], since: Moment, until: Moment | None = None, *, key: Key | None = None
) -> list[Change]:
    """Find the changes between two states of an archive: deletes, then the rest in the order of the later state."""
    earlier = load_archive(path, key=key, as_of=since)
    return compare_states(earlier, load_archive(path, key=key, as_of=until))


def compare_states(earlier: pd.DataFrame, later: pd.DataFrame) -> list[Change]:
    """Return the changes from one frame of memories to another, by id."""
    earlier, later = (
        state[state["id"].notna()].drop_duplicates("id").set_index("id") for state in (earlier, later)
    )
    gone = earlier[~earlier.index.isin(later.index)]
    changes = [Change(action="delete", id=str(one), before=_fields(row)) for one, row in _iter_rows(gone)]
    known = later.index[later.index.isin(earlier.index)]
    old, new = earlier.loc[known], later.loc[known]
    differs = pd.Series(False, index=known)
    for name in old.columns:
        differs |= (old[name] != new[name]).fillna(True) & ~(old[name].isna() & new[name].isna())
    old_rows = dict(_iter_rows(old[differs]))
    is_shown = ~later.index.isin(known) | later.index.isin(known[differs])
    for memory_id, row in _iter_rows(later[is_shown]):
        if memory_id not in old_rows:
            changes.append(Change(action="create", id=memory_id, after=_fields(row)))
            continue
        before = old_rows[memory_id]
        names = [name for name in FIELDS if not same_value(name, before[name], row[name])]
        names = names or [name for name in row if name not in FIELDS and before[name] != row[name]]
        if names:
            was, becomes = ({name: side[name] for name in names} for side in (before, row))
            changes.append(Change(action="patch", id=memory_id, before=was, after=becomes))
    return hide_secrets(changes)


def _iter_rows(frame: pd.DataFrame) -> Iterator[tuple[str, dict[str, Value]]]:
    """Yield the ids of a frame with their rows, in which missing values are None and times are text."""
    plain = frame.astype(object).where(frame.notna(), None)
    for name in frame.columns:
        if isinstance(frame[name].dtype, pd.DatetimeTZDtype):
            plain[name] = [None if cell is None else cell.isoformat() for cell in plain[name]]
    for memory_id, *cells in plain.itertuples(name=None):
        yield str(memory_id), dict(zip(frame.columns, cells, strict=True))


def _fields(row: Mapping[str, Value]) -> dict[str, Value]:
    return in_order({name: value for name, value in row.items() if value not in (None, ())})


def frame_of_changes(changes: Sequence[Change]) -> pd.DataFrame:
    """Return changes as a frame, masked for display."""
    shown = [mask(change) for change in changes]
    rows = [
        {
            "action": one.action,
            "id": one.id,
            "fields": (*(one.after or one.before),),
            "before": one.before,
            "after": one.after,
        }
        for one in shown
    ]
    kinds = {"action": "str", "id": "str", "fields": "object", "before": "object", "after": "object"}
    return pd.DataFrame(rows, columns=[*kinds]).astype(kinds)


def trace_memory(
    path: str | PathLike[str], memory_id: str, *, key: Key | None = None
) -> Iterator[tuple[datetime, Change | str]]:
    """Yield the changes of one memory with the moments of their snapshots; for a damaged snapshot, yield the reason."""
    target = expand_path(path)
    snapshots = find_snapshots(target)
    if not snapshots:
        raise FrameError(
            f"{target} keeps no snapshots: memframe export --refresh --keep keeps them from now on."
        )
    before: pd.DataFrame | None = None
    for one in snapshots:
        if one.error:
            yield one.taken_at, one.error
            continue
        state = load_archive(target, key=key, as_of=one.taken_at)
        after = state[state["id"] == memory_id]
        yield from (
            (one.taken_at, change)
            for change in compare_states(after[:0] if before is None else before, after)
        )
        before = after

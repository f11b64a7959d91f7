"""The three-way decision about one memory, a field at a time: as it was, as it was edited, as it is now.

==========  ==========  =============  ====================================
edited      service     both           outcome
==========  ==========  =============  ====================================
same        any                        not sent
changed     same                       sent
changed     changed     to the same    not sent, as it is so already
changed     changed     differently    conflict
==========  ==========  =============  ====================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memframe.change import Value, same_value

Fields = Mapping[str, Value]


class Merged(NamedTuple):
    """What comes of the fields of one memory."""

    sent: tuple[str, ...]
    conflicts: tuple[str, ...]


def three_way(mine: Fields, base: Fields | None, theirs: Fields) -> Merged:
    """Compare field by field.

    Parameters
    ----------
    mine : mapping
        The fields as they were edited.
    base : mapping or None
        The same fields as they were before; None where nobody knows, so that whatever differs is a conflict.
    theirs : mapping
        The same fields as the service holds them now.

    Examples
    --------
    >>> was = {"title": "tea", "source": "chat", "summary": None}
    >>> three_way(was | {"title": "Tea", "source": "mail"}, was, was | {"source": "phone", "summary": "new"})
    Merged(sent=('title',), conflicts=('source',))
    """
    sent, conflicts = [], []
    for name, value in mine.items():
        if same_value(name, value, theirs[name]):
            continue
        if base is None or not same_value(name, base[name], theirs[name]):
            if base is None or not same_value(name, value, base[name]):
                conflicts.append(name)
        else:
            sent.append(name)
    return Merged(tuple(sent), tuple(conflicts))

"""Effects of what a person accepts: counts of what the plan would do, and the values that no memory would hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from msgspec import Struct

from memframe.audit.merge import join_fields
from memframe.fields import TEXT_FIELDS
from memframe.plan.change import Change, Value
from memframe.plan.losses import Loss, find_losses
from memframe.review.proposals import Point
from memframe.review.texts import ReviewTexts


class Edited(Struct, frozen=True):
    """Fields that a person wrote in place of a proposal."""

    id: str
    fields: dict[str, Value]


class Taken(NamedTuple):
    """Accepted points, those after which a memory is gone and the others, and edits."""

    gone: list[Point]
    changed: list[Point]
    edits: list[Edited]


class Effects(NamedTuple):
    """Counts of what a plan would do; ``n_memories`` is 0 where it is not known how many there are.

    >>> str(Effects(n_memories=389, n_deleted=38, n_changed=12, n_lost=0))
    '389 to 351 memories, 12 changed, losses 0'
    """

    n_memories: int
    n_deleted: int
    n_changed: int
    n_lost: int

    def __str__(self) -> str:
        left = f"{self.n_memories:,} to {self.n_memories - self.n_deleted:,} memories"
        first = left if self.n_memories else f"{self.n_deleted:,} deleted"
        return f"{first}, {self.n_changed:,} changed, losses {self.n_lost:,}"


def find_taken_losses(taken: Taken, texts: ReviewTexts) -> tuple[Loss, ...]:
    """Find what no memory would hold any more after deletes, merges and edits of an audit's memories."""
    ids = {item.id for item in taken.gone if item.id is not None}
    touched = {*ids, *(edit.id for edit in taken.edits)}
    changed = {place for memory_id in touched if (place := texts.place_of(memory_id)) is not None}
    keys = texts.values.keys_of(touched)
    n_left = {key: len(texts.values.holders(key) - changed) for key in {*chain.from_iterable(keys.values())}}
    lossy = [item for item in taken.gone if not all(n_left[key] for key in keys.get(item.id or "", ()))]
    if not lossy and not taken.edits:
        return ()
    return find_losses([*_deletes_of(lossy, texts), *_patches_of(lossy, taken.edits, texts)], n_left)


def find_added_losses(points: Sequence[Point], taken: Taken, texts: ReviewTexts) -> list[Loss]:
    """Find what deletes and merges would lose beside what is lost by those that were taken.

    Of these, only the ones with a value in common matter, so that it takes as long whatever their number.
    """
    own = {item.row for item in points}
    keys = texts.values.keys_of(item.id for item in points if item.id is not None)
    places = frozenset[int]().union(*map(texts.values.holders, chain.from_iterable(keys.values())))
    near = [item for item in taken.gone if item.row not in own and texts.place_of(item.id or "") in places]
    before = taken._replace(gone=near)
    known = {*find_taken_losses(before, texts)}
    lost = find_taken_losses(before._replace(gone=[*near, *points]), texts)
    return [loss for loss in lost if loss not in known]


def _deletes_of(lossy: Sequence[Point], texts: ReviewTexts) -> list[Change]:
    texts_of = texts.values.texts_of
    hidden = texts.hidden_of(filter(None, chain.from_iterable((item.id, item.keeps) for item in lossy)))
    records = {
        str(item.id): Change(
            action="delete",
            id=item.id,
            before=texts_of(str(item.id)),
            keeps={item.keeps: str(texts_of(item.keeps).get("content"))} if item.keeps else {},
            hidden=tuple(hidden[str(item.id)].union(hidden.get(item.keeps or "", ()))),
        )
        for item in lossy
    }
    return list(records.values())


def _patches_of(lossy: Sequence[Point], edits: Sequence[Edited], texts: ReviewTexts) -> list[Change]:
    """Return what merges write to the memories that stay, and what edits write."""
    takes = defaultdict(list)
    for item in lossy:
        if item.action == "merge" and item.keeps:
            takes[item.keeps].append(texts.fields_of(str(item.id)))
    patches = [
        Change(action="patch", id=keeper, after=join_fields(texts.fields_of(keeper), copies))
        for keeper, copies in takes.items()
    ]
    for edit in edits:
        before = texts.values.texts_of(edit.id)
        after = {name: value for name, value in edit.fields.items() if name in TEXT_FIELDS}
        patches += [
            Change(
                action="patch", id=edit.id, before={name: before.get(name) for name in after}, after=after
            ),
            Change(action="patch", id=edit.id, after={**before, **after}),
        ]  # the second holds what the edit leaves alone
    return patches

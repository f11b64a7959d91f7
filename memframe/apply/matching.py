"""Which memories of a listing are the ones that unknown creates have made.

Sealed content, with its random nonce, is like no other: where the service stores it as it came, equal bytes are
proof, and no equal bytes in a complete listing are proof of absence. Where it seals content anew, or was sent
plain text, the plain text is compared, among memories that were not there before the run, and counted: two
equal creates want two memories.

Pure; `memframe.apply.reconcile` lists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memframe.apply.verdicts import unlike
from memframe.change import Change
from memframe.current import Stored


class Sought(NamedTuple):
    """A create of which nobody knows whether it was carried out.

    Attributes
    ----------
    n : int
        Its place in the run.
    change : Change
    digest : str or None
        SHA-256, hexadecimal, of the content as it was sent, None where that was plain text or the service has
        sealed everything anew since.
    """

    n: int
    change: Change
    digest: str | None

    def __repr__(self) -> str:
        return f"<Sought: create {self.n}>"


class Matches(NamedTuple):
    """What a listing says.

    Attributes
    ----------
    found : dict of int to str
        Ids of the memories that creates have made, by their place in the run.
    undecided : frozenset of int
        Creates of which nothing can be said: something new is there that cannot be read.
    """

    found: dict[int, str]
    undecided: frozenset[int]


def match(
    sought: Sequence[Sought], fresh: Sequence[Stored], *, taken: Iterable[str], ours: frozenset[str]
) -> Matches:
    """Find what creates have made.

    Parameters
    ----------
    sought : sequence of Sought
    fresh : sequence of Stored
        All memories that were not there before the run.
    taken : iterable of str
        Ids that other creates of the run are known to have made.
    ours : frozenset of str
        Digests of all contents that the run has sent: one that is found proves how the service stores them.
    """
    taken = set(taken)
    found = _by_bytes(sought, fresh, taken)
    rest = [one for one in sought if one.n not in found]
    if not rest or any(stored.sealed_digest in ours for stored in fresh):
        return Matches(found, frozenset())
    free = [stored for stored in fresh if stored.id not in taken | set(found.values())]
    found |= _by_text(rest, free)
    is_legible = all(stored.error is None for stored in free)
    undecided = frozenset() if is_legible else frozenset(one.n for one in rest if one.n not in found)
    return Matches(found, undecided)


def _by_bytes(sought: Sequence[Sought], fresh: Sequence[Stored], taken: set[str]) -> dict[int, str]:
    n_of = {one.digest: one.n for one in sought if one.digest is not None}
    found: dict[int, str] = {}
    for stored in fresh if n_of else ():
        n = n_of.get(stored.sealed_digest)
        if n is not None and stored.id not in taken:
            found.setdefault(n, stored.id)
    return found


def _by_text(sought: Sequence[Sought], free: Sequence[Stored]) -> dict[int, str]:
    """Equal in every field first, then in content alone: a service may keep the others in its own way."""
    of_content: dict[str | None, list[Stored]] = defaultdict(list)
    for stored in free:
        of_content[stored.content].append(stored)
    found: dict[int, str] = {}
    for is_exact in (True, False):
        for one in sought:
            candidates = of_content[str(one.change.after["content"])]
            place = next(
                (
                    i
                    for i, stored in enumerate(candidates)
                    if not (is_exact and unlike(one.change.legible, stored))
                ),
                None,
            )
            if one.n not in found and place is not None:
                found[one.n] = candidates.pop(place).id
    return found

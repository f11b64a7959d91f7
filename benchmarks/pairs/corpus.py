"""Labelled stores: memories of which it is known which are the same, and which differ in one value."""

import random
from dataclasses import dataclass

import pandas as pd

from benchmarks.pairs import edits, facts
from tests.rows import memories_of

START = pd.Timestamp("2020-01-01", tz="UTC")


@dataclass
class Corpus:
    """A frame, and of each row of which text it is a copy, how it was made, and of what facts."""

    memories: pd.DataFrame
    origin: list[int]
    """Row of the text that this one repeats; its own where it repeats none."""
    made: list[str]
    parts: list[tuple]
    changed: set[frozenset[int]]
    """Pairs of rows that differ in one value, as they were planted."""

    def duplicates(self):
        """Groups of rows that say the same."""
        rows = {}
        for row, origin in enumerate(self.origin):
            rows.setdefault(origin, []).append(row)
        return [group for group in rows.values() if len(group) > 1]

    def n_values_apart(self, row, other):
        """In how many values two rows of the same sentences differ; None if the sentences are not the same."""
        if [part.form for part in self.parts[row]] != [part.form for part in self.parts[other]]:
            return None
        values = ([(part.negated, *part.values) for part in self.parts[at]] for at in (row, other))
        return sum(a != b for x, y in zip(*values, strict=True) for a, b in zip(x, y, strict=True))


def corpus(n, seed, half="held_out", copies=0.25, changes=0.05):
    """``n`` memories in random order: mostly texts of their own, some copies, a few with one value changed."""
    rng = random.Random(seed)
    n_base = round(n * (1 - copies - changes))
    parts = _bases(rng, facts.sentences(half), n_base)
    texts, origin, made, changed = (
        [facts.rendered(p) for p in parts],
        list(range(n_base)),
        ["base"] * n_base,
        [],
    )
    for _ in range(round(n * changes)):
        source = rng.randrange(n_base)
        at = rng.randrange(len(parts[source]))
        fact, slot = facts.with_another_value(parts[source][at], rng)
        parts.append((*parts[source][:at], fact, *parts[source][at + 1 :]))
        text = facts.rendered(parts[-1])
        texts.append(edits.respelled(text, rng, half) if rng.random() < 0.3 else text)
        changed.append((source, len(texts) - 1))
        origin.append(len(texts) - 1)
        made.append(f"changed {slot}")
    while len(texts) < n:
        source, kind = rng.randrange(n_base), rng.choice(list(edits.EDITS))
        texts.append(edits.EDITS[kind](texts[source], rng, half))
        parts.append(parts[source])
        origin.append(source)
        made.append(kind)
    return _shuffled(texts, origin, made, parts, changed, rng)


def _bases(rng, forms, n):
    """Texts of which the short ones differ from each other in more than one value."""
    bases, seen = [], set()
    while len(bases) < n:
        parts = facts.memory(rng, forms)
        near = {_without(parts, hole) for hole in range(sum(len(part.values) for part in parts))}
        if not near & seen or len(parts) > 3:
            seen |= near
            bases.append(parts)
    return bases


def _without(parts, hole):
    values = [value for part in parts for value in part.values]
    return hash((tuple(part.form for part in parts), tuple(values[:hole] + values[hole + 1 :]), hole))


def _shuffled(texts, origin, made, parts, changed, rng):
    order = list(range(len(texts)))
    rng.shuffle(order)
    place = {old: new for new, old in enumerate(order)}
    return Corpus(
        memories=frame_of([texts[old] for old in order]),
        origin=[place[origin[old]] for old in order],
        made=[made[old] for old in order],
        parts=[parts[old] for old in order],
        changed={frozenset((place[a], place[b])) for a, b in changed},
    )


def frame_of(texts, **columns):
    """Memories a minute apart, as a load gives them, with ids ``m0``, ``m1`` and so on."""
    times = [(START + pd.Timedelta(minutes=row)).isoformat() for row in range(len(texts))]
    given = {
        "user_id": ["u1"] * len(texts),
        "created_at": times,
        "updated_at": times,
        "content": texts,
    } | columns
    return memories_of(
        [
            {"id": f"m{row}"} | {name: values[row] for name, values in given.items()}
            for row in range(len(texts))
        ]
    )

"""Facts that a later memory replaces, and later memories that replace nothing though they look like it.

A line of ``updates_develop.txt`` or ``updates_held_out.txt`` is an older fact, then after ``>>`` ways of saying that it
has changed, each with a cue; after ``~`` one without any cue, after ``+`` something that may be true beside it.
"""

import random
from dataclasses import dataclass

import pandas as pd

from benchmarks.pairs import facts
from tests.rows import memories_of

START = pd.Timestamp("2021-03-01", tz="UTC")
KINDS = {"cued": 0.5, "uncued": 0.2, "beside": 0.3}


@dataclass
class Updates:
    """A frame, and pairs (older, newer) of ids by whether the newer one replaces the older, with a cue or without."""

    memories: pd.DataFrame
    cued: list[tuple[str, str]]
    uncued: list[tuple[str, str]]
    beside: list[tuple[str, str]]


def scenarios(half):
    for line in (facts.HERE / f"updates_{half}.txt").read_text().splitlines():
        older, rest = line.split(" >> ")
        cued, rest = rest.split(" ~ ")
        uncued, beside = rest.split(" + ")
        yield older, {"cued": cued.split(" | "), "uncued": [uncued], "beside": [beside]}


def filled(form, values, rng):
    """A form with its slots filled; what ``values`` does not hold yet is drawn, other than what is there."""
    for slot in facts.slots_of(form):
        while slot not in values or (slot[-1] in "23" and values[slot] in _others(slot, values)):
            values[slot] = facts.value_of(slot, rng)
        form = form.replace("{" + slot + "}", values[slot])
    return form


def _others(slot, values):
    return {
        value for other, value in values.items() if other != slot and other.rstrip("23") == slot.rstrip("23")
    }


def updates(seed, half="held_out", rounds=6, noise=3.0):
    """Each scenario for some people of one store, and between them other memories, of the same people or not."""
    rng = random.Random(seed)
    people = rng.sample(facts.VOCABULARY["name"], 12)
    timeline, pairs = [], {kind: [] for kind in KINDS}
    for older, forms in scenarios(half):
        for person in rng.sample(people, rounds):
            values = {"name": person}
            kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
            texts = filled(older, values, rng), filled(rng.choice(forms[kind]), values, rng)
            begin = rng.uniform(0, 300)
            pairs[kind].append((len(timeline), len(timeline) + 1))
            timeline += [(begin, texts[0]), (begin + rng.uniform(20, 400), texts[1])]
    for _ in range(round(noise * sum(map(len, pairs.values())))):
        fact = facts.draw(rng, facts.sentences(half))
        text, first = str(fact), fact.values[0]
        if first[0] == "name" and rng.random() < 0.5:
            text = text.replace(first[1], rng.choice(people))
        timeline.append((rng.uniform(0, 700), text))
    return _in_time(timeline, pairs)


def _in_time(timeline, pairs):
    order = sorted(range(len(timeline)), key=lambda at: timeline[at][0])
    place = {old: f"m{new}" for new, old in enumerate(order)}
    rows = []
    for at in order:
        time = (START + pd.Timedelta(days=timeline[at][0])).isoformat()
        rows.append(
            {
                "id": place[at],
                "user_id": "u1",
                "content": timeline[at][1],
                "created_at": time,
                "updated_at": time,
            }
        )
    named = {kind: [(place[older], place[newer]) for older, newer in found] for kind, found in pairs.items()}
    return Updates(memories_of(rows), **named)

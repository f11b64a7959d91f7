"""Personal facts by the thousand: sentences with slots, wide vocabularies, and what a slot may hold instead.

The sentences are in two halves that share none: the checks were written looking at ``facts_develop.txt``, their
figures are reported on ``facts_held_out.txt``. A sentence may have a second form, after ``|``, that says the opposite.
"""

import calendar
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
VOCABULARY = {
    slot: words.split(", ")
    for slot, words in (line.split(": ") for line in (HERE / "vocabulary.txt").read_text().splitlines())
}
MONTHS = list(calendar.month_name)[1:]
WEEKDAYS = list(calendar.day_name)
VOCABULARY |= {
    "month": MONTHS,
    "weekday": WEEKDAYS,
    "unit": ["kilos", "litres", "metres", "miles", "boxes", "pages"],
    "dose": ["mg", "ml", "g"],
}
RANGES = {"year": (1961, 2026), "few": (2, 9), "some": (11, 95), "many": (120, 980)}
MADE = {
    "money": lambda rng: f"{rng.randint(2, 99) * rng.choice((5, 10, 25)):,}",
    "date": lambda rng: f"{rng.randint(1, 28)} {rng.choice(MONTHS)}",
    "time": lambda rng: (
        f"{rng.randint(7, 21)}:{rng.choice(('00', '10', '15', '20', '30', '40', '45', '50'))}"
    ),
    "code": lambda rng: f"{''.join(rng.choices('ABCDEFGHKLMNPRSTVXZ', k=2))}-{rng.randint(1000, 99999)}",
    "decimal": lambda rng: f"{rng.randint(1, 40)}.{rng.randint(1, 9)}",
}


def value_of(slot, rng):
    """Something for a slot; ``{city2}`` is a second city."""
    slot = slot.rstrip("23")
    if slot in MADE:
        return MADE[slot](rng)
    return str(rng.randint(*RANGES[slot])) if slot in RANGES else rng.choice(VOCABULARY[slot])


def slots_of(form):
    return [piece.split("}")[0] for piece in form.split("{")[1:]]


@dataclass(frozen=True)
class Fact:
    """One sentence: its form, and what its slots hold."""

    form: str
    opposite: str | None
    values: tuple[tuple[str, str], ...]
    negated: bool = False

    def __str__(self):
        text = self.opposite if self.negated else self.form
        for slot, value in self.values:
            text = text.replace("{" + slot + "}", value)
        return text


def sentences(half):
    """The forms of one half, each with its opposite if it has one."""
    lines = (HERE / f"facts_{half}.txt").read_text().splitlines()
    return [tuple(part.strip() for part in line.split("|")) for line in lines]


def draw(rng, forms):
    form, opposite = (*rng.choice(forms), None)[:2]
    return Fact(form, opposite, tuple((slot, value_of(slot, rng)) for slot in slots_of(form)))


def with_another_value(fact, rng):
    """The same sentence with one slot filled otherwise, or with its opposite said; and which slot it was."""
    slot = rng.choice([slot for slot, _ in fact.values] + ["polarity"] * 2 * (fact.opposite is not None))
    if slot == "polarity":
        return replace(fact, negated=not fact.negated), slot
    values = dict(fact.values)
    while values[slot] == dict(fact.values)[slot]:
        values[slot] = value_of(slot, rng)
    return replace(fact, values=tuple(values.items())), slot.rstrip("23")


def memory(rng, forms):
    """One to many sentences: the median has about 30 words, the mean nearly twice as many."""
    n = max(1, min(40, round(rng.lognormvariate(1.1, 1.0))))
    return tuple(draw(rng, forms) for _ in range(n))


def rendered(parts):
    return " ".join(map(str, parts))

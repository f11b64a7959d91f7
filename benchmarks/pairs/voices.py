"""Memories in three voices, as others would write them: notes, chat, a household.

A file has the words of each slot (``@city: ...``), then the sentences: a form, after `` = `` the same in another order
or in other words, after `` ! `` its opposite.
"""

import random
import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

from benchmarks.pairs import edits

VOICES = ("notes", "chat", "household")
SLOT = re.compile(r"\{(\w+)\}")
TENSES = {
    "works": "worked",
    "runs": "ran",
    "drives": "drove",
    "takes": "took",
    "prefers": "preferred",
    "pays": "paid",
}


class Sentence(NamedTuple):
    form: str
    same: list[str]
    opposites: list[str]


class Voice(NamedTuple):
    slots: dict[str, list[str]]
    sentences: list[Sentence]


class Pair(NamedTuple):
    verdict: str
    how: str
    one: str
    other: str


def voice(name):
    lines = Path(__file__).with_name(f"voice_{name}.txt").read_text("utf-8").splitlines()
    slots = {line[1:].split(": ")[0]: line.split(": ", 1)[1] for line in lines if line.startswith("@")}
    slots = {slot: re.split(r" \| " if "|" in words else ", ", words) for slot, words in slots.items()}
    return Voice(slots, [_sentence(line) for line in lines if not line.startswith("@")])


def _sentence(line):
    said, *opposites = line.split(" ! ")
    form, *same = said.split(" = ")
    return Sentence(form, same, opposites)


def pairs(name, seed, n=400):
    """Pairs of texts of one to four sentences: half the same, some with another value, some two facts of one form."""
    rng, said = random.Random(seed), voice(name)
    while n:
        rest = _told(rng, said, rng.choice((0, 0, 1, 3)))
        sentence = rng.choice(said.sentences)
        values = _values(rng, said, sentence)
        pair = rng.choice((_same, _same, _changed, _apart))(rng, said, sentence, values, rest)
        if pair and pair.one != pair.other:
            n -= 1
            yield pair


def _same(rng, said, sentence, values, rest):
    text = _joined([_filled(sentence.form, values), *rest])
    how = rng.choice((reordered, mistyped_twice, unseen, wrapped, cased))
    if how is reordered:
        forms = [form for form in sentence.same if " " in form]
        return forms and Pair("same", "reordered", text, _joined([_filled(rng.choice(forms), values), *rest]))
    return Pair("same", how.__name__, text, how(rng, said, text))


def _changed(rng, said, sentence, values, rest):
    slots = list(dict.fromkeys(SLOT.findall(sentence.form)))
    if any(word in TENSES for word in sentence.form.split()) and rng.random() < 0.3:
        how, other = "tense", _in_the_past(_filled(sentence.form, values))
    elif sentence.opposites and rng.random() < 0.3:
        how, other = "polarity", _filled(rng.choice(sentence.opposites), values)
    elif slots:
        how = rng.choice(slots)
        new = rng.choice([word for word in said.slots[how] if word not in values[how]])
        other = _filled(sentence.form, values | {how: [new, *values[how][1:]]})
    else:
        return None
    return Pair("changed", how, _joined([_filled(sentence.form, values), *rest]), _joined([other, *rest]))


def _apart(rng, said, sentence, values, rest):
    """Two facts of one form, all of whose values differ."""
    if len(SLOT.findall(sentence.form)) < 2:
        return None
    others = {
        slot: rng.sample([word for word in said.slots[slot] if word not in words], len(words))
        for slot, words in values.items()
    }
    return Pair("apart", "one form", _filled(sentence.form, values), _filled(sentence.form, others))


def _told(rng, said, n):
    return [_filled(one.form, _values(rng, said, one)) for one in rng.sample(said.sentences, n)]


def _values(rng, said, sentence):
    slots = SLOT.findall(sentence.form)
    return {slot: rng.sample(said.slots[slot], slots.count(slot)) for slot in dict.fromkeys(slots)}


def _filled(form, values):
    left = {slot: list(words) for slot, words in values.items()}
    return SLOT.sub(lambda match: left[match[1]].pop(0) if left[match[1]][1:] else left[match[1]][0], form)


def _joined(sentences):
    return " ".join(one.rstrip(".") + "." for one in sentences) if len(sentences) > 1 else sentences[0]


def reordered(rng, said, text):
    """Stands for the forms that say the same."""
    return text


def mistyped_twice(rng, said, text):
    return edits.mistyped(edits.mistyped(text, rng, None), rng, None)


def _in_the_past(text):
    return re.sub("|".join(rf"\b{now}\b" for now in TENSES), lambda match: TENSES[match[0]], text, count=1)


def unseen(rng, said, text):
    way = rng.randrange(3)
    if way == 0:
        return unicodedata.normalize("NFD", text.replace("'", "\u02bc"))
    return text.replace(" ", "  ") if way == 1 else f"\ufeff{text}\xa0"


def wrapped(rng, said, text):
    return rng.choice(said.slots["wrapper"]).format(text)


def cased(rng, said, text):
    return rng.choice((str.upper, str.lower, str.title, str.swapcase))(text)

"""Facts that are all true beside each other though they share most of their words: nothing in them is a copy.

«Ada's dentist is Dr Kim» and «Ada's doctor is Dr Kim», ten things that one person likes, a log with a line a day.
"""

import random

from tests.pairs import facts
from tests.pairs.corpus import frame_of

ROLES = """
    dentist doctor physiotherapist accountant lawyer landlord manager mentor neighbour flatmate sister brother cousin
    aunt uncle godfather teacher coach hairdresser mechanic therapist plumber
"""

OF_ONE_PERSON = (
    "{name}'s {role} is {name2}.",
    "{name} likes {food}.",
    "{name} has a {thing} in the {place}.",
    "{name} is learning {subject} and has read {few} books about it.",
    "{name} has been to {city} with {name2}.",
    "{name} would like to try {hobby} one day.",
    "{name} once worked for {company} in {city}.",
    "{name} plays {hobby} with {name2}.",
)
LOG_LINES = (
    "{name} ran {decimal} kilometres on {date}.",
    "{name} slept {few} hours on the night of {date}.",
    "Backup of {company} finished on {date} at {time}: {many} files.",
)


def families(n, seed):
    """``n`` memories of a few people, all different, in random order: a frame."""
    rng = random.Random(seed)
    people = rng.sample(facts.VOCABULARY["name"], max(2, n // 60))
    texts = set()
    while len(texts) < n:
        form = rng.choice(OF_ONE_PERSON if rng.random() < 0.8 else LOG_LINES)
        text = form.replace("{name}", rng.choice(people)).replace("{role}", rng.choice(ROLES.split()))
        for slot in facts.slots_of(text):
            text = text.replace("{" + slot + "}", facts.value_of(slot, rng))
        texts.add(text)
    return frame_of(rng.sample(sorted(texts), n))

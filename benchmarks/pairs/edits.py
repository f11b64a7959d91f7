"""What happens to a text that is kept twice: another spelling, typing errors, a wrapper, less, another order.

Wrappers and synonyms are in two halves, as the sentences of `benchmarks.pairs.facts` are.
"""

import re

WRAPPERS = {
    "develop": """
        User said that {}|I remember that {}|Note: {}|The user mentioned: {}|Reminder - {}|Memory: {}
        According to the user, {}|{} (the user said so)|User told me {}|FYI: {}
    """,
    "held_out": """
        The user wants me to remember that {}|I recall that {}|Note to self: {}|As the user stated, {}
        Fact about the user: {}|It was mentioned that {}|[memory] {}|{} - noted.|Please remember: {}
        User has noted that {}
    """,
}
SYNONYMS = {
    "develop": """
        likes enjoys|wants would like|lives resides|bought purchased|begins starts|house home|euros EUR|kilometres km
        works is working|next upcoming|finished completed|costs is priced at|kilos kg|minutes min
    """,
    "held_out": """
        called named|gave handed|opens is open|degrees deg|arrives comes|pays is paying|practises practices
        hopes is hoping|dollars USD|talk speak|left remaining|answered replied to|years yrs|pounds GBP|months mths
    """,
}
FILLERS = (
    "really",
    "also",
    "just",
    "actually",
    "currently",
    "apparently",
    "of course",
    "as far as known",
    "still",
)
LIGHT = {"the", "a", "an", "is", "was", "are", "of", "for", "to", "in", "on", "at", "and", "there"}
MOVES_WITH = {"on", "in", "for", "at", "with", "by"}
KEYS = ["qwertyuiop", "asdfghjkl", "zxcvbnm"]


def _pieces(text):
    return [piece.strip() for line in text.strip().splitlines() for piece in line.split("|")]


WRAPPERS = {half: _pieces(text) for half, text in WRAPPERS.items()}
SYNONYMS = {half: dict(piece.split(" ", 1) for piece in _pieces(text)) for half, text in SYNONYMS.items()}

RESPELLINGS = (
    str.lower,
    str.upper,
    lambda text: text.rstrip(".") + "!",
    lambda text: text.rstrip(".") + "...",
    lambda text: text.replace(". ", "\n- "),
    lambda text: re.sub(r"[.,;:](?!\d)", "", text),
    lambda text: text.replace(" ", "  ").strip(),
    lambda text: f'"{text}"',
    lambda text: re.sub(r"(\d),(\d{3})", r"\1\2", text) + " ",
    lambda text: text.replace("'", "\u2019").replace(", ", " - "),
    str.title,
    lambda text: f"**{text}**",
)


def exact(text, rng, half):
    return text


def respelled(text, rng, half):
    for way in rng.sample(RESPELLINGS, 2):
        text = way(text)
    return text


def mistyped(text, rng, half):
    """One error in about ten words: doubled, dropped, swapped, or a neighbouring key; digits stay."""
    words = text.split(" ")
    places = [place for place, word in enumerate(words) if re.fullmatch(r"[A-Za-z]{4,}\W*", word)]
    for place in rng.sample(places, min(len(places), max(1, len(words) // 10))):
        words[place] = _slip(words[place], rng)
    return " ".join(words)


def _slip(word, rng):
    at = rng.randrange(1, max(2, len(re.match(r"\w+", word)[0]) - 1))
    kind = rng.choice(["double", "drop", "swap", "key"])
    if kind == "double":
        return word[:at] + word[at] + word[at:]
    if kind == "swap" and at > 1:
        return word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]
    if kind == "key":
        return word[:at] + _neighbour(word[at].lower()) + word[at + 1 :]
    return word[:at] + word[at + 1 :]


def _neighbour(key):
    row = next(row for row in KEYS if key in row)
    return row[row.index(key) - 1] if row.index(key) else row[1]


def reworded(text, rng, half):
    """Fillers put in, light words left out, synonyms of verbs that carry no value, contractions."""
    words = text.split(" ")
    for _ in range(max(1, len(words) // 15)):
        way = rng.randrange(3)
        light = [place for place, word in enumerate(words) if word in LIGHT]
        if way == 0:
            words.insert(rng.randrange(1, len(words)), rng.choice(FILLERS))
        elif way == 1 and light:
            del words[rng.choice(light)]
        else:
            words = [SYNONYMS[half].get(word, word) for word in words]
    return " ".join(words).replace(" does not ", " doesn't ").replace(" is not ", " isn't ")


def wrapped(text, rng, half):
    wrapper = rng.choice(WRAPPERS[half])
    body = text if rng.random() < 0.5 or wrapper.startswith("{") else text[0].lower() + text[1:]
    return wrapper.format(body)


def truncated(text, rng, half):
    """The first half to nine tenths, in the middle of a word or not."""
    words = text.split(" ")
    cut = " ".join(words[: max(4, round(len(words) * rng.uniform(0.5, 0.9)))])
    return cut + rng.choice(("", "", "...", "\u2026")) if rng.random() < 0.7 else cut[: -rng.randrange(1, 3)]


def reordered(text, rng, half):
    """Sentences in another order; of one sentence the parts, or all words backwards."""
    parts = re.split(r"(?<=\.) ", text)
    if len(parts) > 1:
        return " ".join(rng.sample(parts, len(parts)))
    words = text.rstrip(".").split(" ")
    place = next((place for place, word in enumerate(words) if place > 2 and word in MOVES_WITH), None)
    return " ".join(words[place:] + words[:place] if place else words[::-1])


def mixed(text, rng, half):
    for edit in rng.sample((respelled, mistyped, reworded, wrapped, truncated), 2):
        text = edit(text, rng, half)
    return text


EDITS = {
    edit.__name__: edit
    for edit in (exact, respelled, mistyped, reworded, wrapped, truncated, reordered, mixed)
}

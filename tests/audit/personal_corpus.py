"""Texts with and without personal data, labelled by those who wrote them: sentences and made-up values.

The detector was made with these in view; `unseen` has others that were written afterwards. Numbers follow the
formats of their countries; those of telephones are drawn at random and belong to nobody in particular.
"""

import string
from random import Random
from typing import NamedTuple

from tests.audit.sentences import named

MADE = named("personal")
SHAPED_PHONES, BARE_PHONES = MADE.SHAPED_PHONES, MADE.BARE_PHONES
"""Formats that speak for themselves, and those that could be any number."""

SHAPED, TOLD, OTHERS, NOTHING = MADE.SHAPED, MADE.TOLD, MADE.OTHERS, MADE.NOTHING

MAILS, URLS, IBANS = MADE.MAILS, MADE.URLS, MADE.IBANS


class Labelled(NamedTuple):
    """A text, and what is in it: kind, start, end."""

    text: str
    spans: tuple


class Maker:
    """Made-up values, the same for the same seed."""

    def __init__(self, seed):
        self.random = Random(seed)

    def digits(self, shape):
        return "".join(self.random.choice(string.digits) if sign == "d" else sign for sign in shape)

    def card(self):
        body = self.digits(self.random.choice(["4ddddddddddddddd", "51dddddddddddddd", "6011dddddddddddd"]))[
            :15
        ]
        return body + self.check_digit(body)

    @staticmethod
    def check_digit(body):
        total = sum(
            sum(divmod(int(digit) * (2 - place % 2), 10)) for place, digit in enumerate(reversed(body))
        )
        return str(-total % 10)

    def value(self, name):
        card, iban = self.card(), self.random.choice(IBANS)
        amex = self.digits("37dddddddddddd")
        return {
            "shaped": ("phone", self.digits(self.random.choice(SHAPED_PHONES))),
            "bare": ("phone", self.digits(self.random.choice(BARE_PHONES))),
            "email": ("email", self.random.choice(MAILS)),
            "card": ("card", card),
            "card_spaced": ("card", " ".join(card[i : i + 4] for i in range(0, 16, 4))),
            "card_dashed": ("card", "-".join(card[i : i + 4] for i in range(0, 16, 4))),
            "amex": ("card", amex + self.check_digit(amex)),
            "iban": ("iban", iban),
            "iban_spaced": ("iban", " ".join(iban[i : i + 4] for i in range(0, len(iban), 4))),
            "ssn": ("ssn", self.digits("2dd-1d-3ddd")),
            "ssn_bare": ("ssn", self.digits("2dd1d3ddd")),
            "ip": ("ip", self.digits("10d.1d.17.2d")),
            "ipv6": ("ip", self.digits("2001:db8:85a3::8a2e:370:7ddd")),
            "mac": ("mac", self.digits("00:1b:44:1d:3a:bd")),
            "url": ("url", self.random.choice(URLS)),
        }[name]

    def fill(self, sentence):
        text, spans = "", []
        for literal, name, _, _ in string.Formatter().parse(sentence):
            text += literal
            if name:
                kind, value = self.value(name)
                spans.append((kind, len(text), len(text) + len(value)))
                text += value
        return Labelled(text, tuple(spans))


def make_corpus(sentences, nothing, *, seed, rounds=10):
    """Labelled texts of some sentences, each several times with other values, and texts without personal data."""
    maker = Maker(seed)
    filled = [maker.fill(sentence) for _ in range(rounds) for sentence in sentences]
    return filled + [Labelled(text, ()) for text in nothing]

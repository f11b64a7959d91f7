"""Memories with and without secrets, labelled by those who wrote them: made from sentences and made-up values.

The detector was made with these in view; `unseen` has sentences that were written afterwards.
"""

import base64
import string
from random import Random
from typing import NamedTuple

from tests.audit.sentences import named

MADE = named("secrets")
TOLD, KEYS, CLEAN = MADE.TOLD, MADE.KEYS, MADE.CLEAN

SITES, USERS, WORDS, SURNAMES = MADE.SITES, MADE.USERS, MADE.WORDS, MADE.SURNAMES


class Labelled(NamedTuple):
    """A memory, and the secrets in it."""

    text: str
    secrets: tuple[str, ...]


class Maker:
    """Made-up values, the same for the same seed."""

    def __init__(self, seed, seed_words):
        self.random = Random(seed)
        self.seed_words = seed_words

    def chars(self, n, alphabet=string.ascii_letters + string.digits):
        return "".join(self.random.choices(alphabet, k=n))

    def word(self):
        return self.random.choice(WORDS)

    def password(self):
        styles = (
            lambda: self.word() + str(self.random.randint(1, 9999)),
            lambda: self.word().title() + self.random.choice("!?#$&*@") + str(self.random.randint(10, 99)),
            lambda: self.word().title() + self.word().title() + str(self.random.randint(1, 99)) + "!",
            lambda: self.chars(self.random.randint(8, 16)) + "7x",
            lambda: self.word().replace("e", "3").replace("o", "0").replace("i", "1") + "_" + self.chars(2),
            lambda: f"{self.word()}-{self.word()}-{self.random.randint(1, 99)}",
            lambda: str(self.random.randint(100000, 99999999)),
        )
        return self.random.choice(styles)()

    def pem(self):
        body = base64.b64encode(self.random.randbytes(400)).decode()
        lines = "\n".join(body[i : i + 64] for i in range(0, len(body), 64))
        kind = self.random.choice(["RSA ", "EC ", "OPENSSH ", ""])
        return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"

    def value(self, name):
        kind, _, n = name.rpartition("_")
        match kind or name:
            case "b62":
                return self.chars(int(n))
            case "hex":
                return self.chars(int(n), "0123456789abcdef")
            case "up":
                return self.chars(int(n), string.ascii_uppercase + string.digits)
            case "letters":
                return self.chars(int(n), string.ascii_letters)
            case "digits":
                return self.chars(int(n), string.digits)
            case "aws":
                return self.chars(int(n), string.ascii_uppercase + "234567")
            case "b64":
                return self.chars(int(n), string.ascii_letters + string.digits + "+/")
        return {
            "site": lambda: self.random.choice(SITES),
            "user": lambda: self.random.choice(USERS),
            "word": self.word,
            "password": self.password,
            "weak": lambda: self.word() + self.random.choice(["", self.word()]),
            "phrase": lambda: " ".join(self.random.sample(WORDS, 4)),
            "pin": lambda: self.chars(self.random.choice([4, 4, 4, 6]), string.digits),
            "otp": lambda: self.chars(6, string.digits),
            "combination": lambda: self.random.choice("- ").join(
                self.chars(2, string.digits) for _ in range(3)
            ),
            "recovery": lambda: f"{self.chars(4, string.digits)}-{self.chars(4, string.digits)}",
            "seed": lambda: " ".join(self.random.choices(self.seed_words, k=self.random.choice([12, 24]))),
            "surname": lambda: self.random.choice(SURNAMES),
            "openai": lambda: f"sk-proj-{self.chars(60)}",
            "github": lambda: f"ghp_{self.chars(36)}",
            "stripe": lambda: f"sk_live_{self.chars(24)}",
            "slack": lambda: (
                f"xoxb-{self.chars(12, string.digits)}-{self.chars(12, string.digits)}-{self.chars(24)}"
            ),
            "jwt": lambda: f"eyJ{self.chars(30)}.eyJ{self.chars(60)}.{self.chars(43)}",
            "pem": self.pem,
        }[name]()

    def fill_safely(self, sentence):
        """A sentence without secrets, in which a site may have a name and other braces mean nothing."""
        return sentence.replace("{site}", self.value("site"))

    def fill(self, sentence):
        """The sentence with values in it, and those values that are secrets."""
        text, secrets = "", []
        for literal, name, _, _ in string.Formatter().parse(sentence):
            text += literal
            if name:
                value = self.value(name)
                text += value
                if name not in {"site", "user", "word", "up_9"}:
                    secrets.append(value)
        return Labelled(text, tuple(secrets))


def make_corpus(told, keys, clean, *, seed, seed_words, rounds=6):
    """Told secrets, keys and clean memories of some sentences, each several times with other values."""
    maker = Maker(seed, seed_words)
    return {
        "told": [maker.fill(sentence) for _ in range(rounds) for sentence in told],
        "keys": [maker.fill(sentence) for _ in range(rounds) for sentence in keys],
        "clean": [Labelled(maker.fill_safely(sentence), ()) for _ in range(rounds) for sentence in clean],
    }

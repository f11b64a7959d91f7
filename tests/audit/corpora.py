"""Labelled texts for the checks that read one memory at a time: with secrets, personal data and junk, and without.

The lists are text files, one text a line under a heading. Of ``sentences.txt``, those of `secrets` and `personal` are
what the detectors were made with; `unseen` was written afterwards, and no detector was changed for it: its figures are
the ones to believe. `seen` was unseen once; the detectors were changed for it since, so that it guards what was
learned. ``batches/*.txt`` are in voices of their own (chat, notes, memories about "the user", logs of agents); each was
measured once at first sight, and the detectors learned from it afterwards. ``adversarial.txt`` is what a hostile
outsider would try, ``junk.txt`` has memories as stores.
"""

import base64
import re
import string
from functools import cache
from importlib.resources import files
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import NamedTuple

FOLDER = Path(__file__).parent
BATCHES = ("one", "two", "three", "four", "five")
DIGITS, ALNUM = string.digits, string.ascii_letters + string.digits
ALPHABETS = {
    "alnum": ALNUM,
    "aws": string.ascii_uppercase + "234567",
    "b62": ALNUM,
    "b64": ALNUM + "+/",
    "base32": string.ascii_uppercase + "234567",
    "base58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "bech32": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "digit": DIGITS,
    "digits": DIGITS,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "letter": string.ascii_letters,
    "letters": string.ascii_letters,
    "low": string.ascii_lowercase + DIGITS,
    "nonzero": "123456789",
    "signs": ALNUM + "!@#$%^&*(-_=+)",
    "up": string.ascii_uppercase + DIGITS,
    "word": ALNUM + "-_",
}
HEADING = re.compile(r"(?:## |\[\[)(.+?)(?:\]\])?")
MARK = re.compile(r"⟦(?:(\w+)\|)?([^⟦⟧]+)⟧")
TIMES = re.compile(r" \*(\d+)$")


class Text(NamedTuple):
    """A text and what is in it, as (kind, start, end); the kind of a secret is empty."""

    text: str
    spans: tuple = ()

    @property
    def values(self):
        return [self.text[start:end] for _, start, end in self.spans]


@cache
def read_lists(name):
    """The lists of a text file by name; ``\\n`` and ``⏎`` end a line, ``∅`` is an empty text, and ``*8`` eight."""
    lists, is_junk = {}, name == "junk"
    for line in (FOLDER / f"{name}.txt").read_text("utf-8").splitlines():
        if heading := HEADING.fullmatch(line):
            texts = lists.setdefault(heading[1], [])
        elif line and lists and not (is_junk and line.startswith("# ")):
            times = TIMES.search(line) if is_junk else None
            text = re.sub(
                r"\\(n|\\n)", lambda end: "\n" if end[1] == "n" else end[1], line[: times and times.start()]
            )
            texts += [text.replace("⏎", "\n").replace("∅", "")] * (int(times[1]) if times else 1)
    return lists


def rows_of(table):
    """Lines of a table, the cells of each set apart by a bar."""
    return [line.split(" | ") for line in table.strip().splitlines()]


def pairs(lines):
    """Texts, and what is to be found in each."""
    return [tuple(line.split(" => ")) for line in lines]


def labelled(positive, negative):
    return [(text, True) for text in positive] + [(text, False) for text in negative]


def named(group):
    """The lists of sentences whose names begin with a word, as attributes in capitals."""
    lists = read_lists("sentences").items()
    some = {name.partition(" ")[2]: texts for name, texts in lists if name.startswith(f"{group} ")}
    return SimpleNamespace(**{name.replace(" ", "_").upper(): texts for name, texts in some.items()})


PROJECT_NOTES = (FOLDER / "project_notes.txt").read_text("utf-8").splitlines()
"""What agents and developers note down about their work; written to measure with, no rule was made for a line."""

seen, unseen, secrets, personal = map(named, ("seen", "unseen", "secrets", "personal"))
ADVERSARIAL = read_lists("adversarial")


class Batch(NamedTuple):
    """Its lists: told secrets and near-misses, personal data and near-misses."""

    told: list
    clean: list
    personal: list
    nothing: list

    def secrets(self):
        """(text, whether it holds a secret)."""
        return labelled((text.text for text in self.told), self.clean)


def read_batch(name):
    lists = read_lists(f"batches/{name}")
    told, data = (list(map(marked, lists[part])) for part in ("told", "personal"))
    return Batch(told, lists["clean"], data, list(map(Text, lists["nothing"])))


def marked(line):
    """A text of a line in which ``⟦value⟧`` or ``⟦kind|value⟧`` is what is to be found."""
    text, spans, end = "", [], 0
    for mark in MARK.finditer(line):
        text += line[end : mark.start()]
        spans.append((mark[1] or "", len(text), len(text) + len(mark[2])))
        text, end = text + mark[2], mark.end()
    return Text(text + line[end:], tuple(spans))


# Sentences with made-up values


class Maker:
    """Made-up values, the same for the same seed; numbers follow the formats of their countries, and are nobody's."""

    def __init__(self, seed):
        self.random = Random(seed)

    def draw(self, n, alphabet):
        return "".join(self.random.choices(ALPHABETS[alphabet], k=n))

    def one_of(self, texts):
        return self.random.choice(texts)

    def word(self):
        return self.one_of(secrets.WORDS)

    def number(self, *shapes):
        return "".join(self.one_of(DIGITS) if sign == "d" else sign for sign in self.one_of(shapes))

    def password(self):
        styles = (
            lambda: self.word() + str(self.random.randint(1, 9999)),
            lambda: self.word().title() + self.one_of("!?#$&*@") + str(self.random.randint(10, 99)),
            lambda: self.word().title() + self.word().title() + str(self.random.randint(1, 99)) + "!",
            lambda: self.draw(self.random.randint(8, 16), "b62") + "7x",
            lambda: (
                self.word().replace("e", "3").replace("o", "0").replace("i", "1") + "_" + self.draw(2, "b62")
            ),
            lambda: f"{self.word()}-{self.word()}-{self.random.randint(1, 99)}",
            lambda: str(self.random.randint(100000, 99999999)),
        )
        return self.one_of(styles)()

    def pem(self):
        body = base64.b64encode(self.random.randbytes(400)).decode()
        lines = "\n".join(body[i : i + 64] for i in range(0, len(body), 64))
        kind = self.one_of(["RSA ", "EC ", "OPENSSH ", ""])
        return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"

    def card(self, *shapes):
        """A number with the check digit of Luhn."""
        body = self.number(*shapes)
        total = sum(sum(divmod(int(digit) * (2 - n % 2), 10)) for n, digit in enumerate(reversed(body)))
        return body + str(-total % 10)

    def secret(self, name):
        kind, _, n = name.rpartition("_")
        if kind in ALPHABETS:
            return self.draw(int(n), kind)
        return {
            "site": lambda: self.one_of(secrets.SITES),
            "user": lambda: self.one_of(secrets.USERS),
            "word": self.word,
            "password": self.password,
            "weak": lambda: self.word() + self.one_of(["", self.word()]),
            "phrase": lambda: " ".join(self.random.sample(secrets.WORDS, 4)),
            "pin": lambda: self.draw(self.one_of([4, 4, 4, 6]), "digits"),
            "otp": lambda: self.draw(6, "digits"),
            "combination": lambda: self.one_of("- ").join(self.draw(2, "digits") for _ in range(3)),
            "recovery": lambda: f"{self.draw(4, 'digits')}-{self.draw(4, 'digits')}",
            "seed": lambda: " ".join(self.random.choices(seed_words(), k=self.one_of([12, 24]))),
            "surname": lambda: self.one_of(secrets.SURNAMES),
            "openai": lambda: f"sk-proj-{self.draw(60, 'b62')}",
            "github": lambda: f"ghp_{self.draw(36, 'b62')}",
            "stripe": lambda: f"sk_live_{self.draw(24, 'b62')}",
            "slack": lambda: (
                f"xoxb-{self.draw(12, 'digits')}-{self.draw(12, 'digits')}-{self.draw(24, 'b62')}"
            ),
            "jwt": lambda: f"eyJ{self.draw(30, 'b62')}.eyJ{self.draw(60, 'b62')}.{self.draw(43, 'b62')}",
            "pem": self.pem,
        }[name]()

    def datum(self, name):
        """Kind and value of one of the data of a person, and of what looks like one; None of something else."""
        kind, _, form = name.partition("_")
        visa = ("4dddddddddddddd", "51ddddddddddddd", "6011ddddddddddd")
        draw = {
            "shaped": lambda: self.number(*personal.SHAPED_PHONES),
            "bare": lambda: self.number(*personal.BARE_PHONES),
            "email": lambda: self.one_of(personal.MAILS),
            "card": lambda: self.card(*visa),
            "amex": lambda: self.card("37dddddddddddd"),
            "iban": lambda: self.one_of(personal.IBANS),
            "ssn": lambda: self.number("2dd-1d-3ddd"),
            "ip": lambda: self.number("10d.1d.17.2d"),
            "ipv6": lambda: self.number("2001:db8:85a3::8a2e:370:7ddd"),
            "mac": lambda: self.number("00:1b:44:1d:3a:bd"),
            "url": lambda: self.one_of(personal.URLS),
        }.get(kind)
        if draw is None:
            return None
        value, apart = draw(), {"spaced": " ", "dashed": "-"}.get(form)
        if apart:
            value = apart.join(value[i : i + 4] for i in range(0, len(value), 4))
        value = value.replace("-", "") if form == "bare" else value
        return {"shaped": "phone", "bare": "phone", "amex": "card", "ipv6": "ip"}.get(kind, kind), value

    def fill(self, sentence):
        """The sentence with values in it."""
        text, spans = "", []
        for literal, name, _, _ in string.Formatter().parse(sentence):
            text += literal
            if name:
                kind, value = self.datum(name) or ("", self.secret(name))
                if name not in {"site", "user", "word", "up_9"}:
                    spans.append((kind, len(text), len(text) + len(value)))
                text += value
        return Text(text, tuple(spans))


@cache
def seed_words():
    return files("memframe.audit").joinpath("rules", "seed_words.txt").read_text("ascii").split()


def make_secrets(group, *, seed, rounds=6):
    """Told secrets, keys and clean memories of some sentences, each several times with other values."""
    maker = Maker(seed)
    made = {
        part: [maker.fill(s) for _ in range(rounds) for s in getattr(group, part.upper())]
        for part in ("told", "keys")
    }
    clean = [
        sentence.replace("{site}", maker.secret("site")) for _ in range(rounds) for sentence in group.CLEAN
    ]
    return made | {"clean": list(map(Text, clean))}


def make_personal(sentences, nothing=(), *, seed, rounds=10):
    """Texts of some sentences, each several times with other values, and texts without personal data."""
    maker = Maker(seed)
    return [maker.fill(sentence) for _ in range(rounds) for sentence in sentences] + list(map(Text, nothing))


def vendor_keys(seed):
    """Names and texts with a key each, as their makers shape them, drawn where ``⟨16 hex⟩`` stands."""
    maker = Maker(seed)

    def draw(place):
        n, kind = int(place[1]), place[2]
        bytes_ = kind == "b64"
        return base64.b64encode(maker.random.randbytes(n)).decode() if bytes_ else maker.draw(n, kind)

    lines = (line.split(" = ", 1) for line in ADVERSARIAL["keys of makers"])
    return {name: re.sub(r"⟨([0-9]+) (\w+)⟩", draw, text) for name, text in lines}


# Junk

KINDS = {
    "system_prompt": 54,
    "heartbeat": 14,
    "feedback_loop": 12,
    "task_state": 10,
    "session_noise": 4,
    "tool_output": 4,
    "near_empty": 2,
}
"""Kinds of the junk of an overrun store, by how many of a hundred they are."""

RESTATED = ["{}", "{}", "{}", "{} ", "Memory stored: {}", "Recalled memory: {}"]
"""What becomes of junk that is read and stored again."""


def junk_stores():
    """Stores by name: (text, whether it is junk)."""
    stores = {}
    for heading, texts in read_lists("junk").items():
        name, kind = heading.split(": ")
        stores.setdefault(name, []).extend((text, kind != "good") for text in texts)
    return stores


def overrun_store(seed, n=10_134, junk_share=0.978):
    """A store as users found theirs: restated boot files, reports, loops and 668 copies of one hallucination."""
    chance, lists = Random(seed), read_lists("junk")
    good = [text for name, texts in lists.items() if name.endswith(": good") for text in texts]
    rows = [("User prefers Vim and works as a software developer at Google", True)] * 668
    rows += [(text, False) for text in chance.sample(good, k=round(n * (1 - junk_share)))]
    while len(rows) < n:
        [kind] = chance.choices([*KINDS], [*KINDS.values()])
        text = chance.choice(lists[f"made with: {kind}"])
        rows.append((chance.choice(RESTATED).format(text) if text else text, True))
    chance.shuffle(rows)
    return rows

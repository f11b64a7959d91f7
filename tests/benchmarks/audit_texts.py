"""The checks that read one memory at a time: how right they are, and how fast, on labelled corpora.

    python tests/benchmarks/audit_texts.py

Corpora of ``tests/audit``: sentences that the detectors were made with, sentences that were unseen when they were
written, batches in other voices that the detectors learned from later, and what outsiders would try. Where the data
beside the project are there, real texts as well. What the checks cost is in `audit_whole.py`.
"""

import argparse
import json
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memframe.audit import find_junk, find_personal_data, find_secrets
from tests.audit import adversarial, batches, junk_corpus, personal_corpus, secret_corpus
from tests.audit.batches import labelled
from tests.audit.figures import frame_of, record_figures, span_figures
from tests.audit.sentences import seen, unseen
from tests.pairs.corpus import corpus as facts

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
KINDS = {
    "CREDIT_CARD": "card",
    "PHONE_NUMBER": "phone",
    "EMAIL_ADDRESS": "email",
    "IBAN_CODE": "iban",
    "US_SSN": "ssn",
    "IP_ADDRESS": "ip",
    "DOMAIN_NAME": "url",
}
"""Names of presidio's kinds of personal data, and ours."""

SENTENCES = {"seen": seen, "unseen": unseen}
LISTS = adversarial.LISTS


# Corpora


def data(name):
    """Rows of a file beside the project; none where it is not there."""
    path = options().data / name
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def clean_memories(n):
    """Facts about people of which none is a secret or junk, of 52 words on the average."""
    return facts(n, seed=3, copies=0, changes=0).memories["content"].tolist()


def personal_corpora():
    """Texts with labelled spans, by the name of their corpus."""
    made = personal_corpus
    yield "made with", made.make_corpus(made.SHAPED + made.TOLD + made.OTHERS, made.NOTHING, seed=1)
    for name, module in SENTENCES.items():
        yield name, made.make_corpus(module.PERSONAL, module.NOT_PERSONAL, seed=1)
    yield "adversarial", list(adversarial_personal())
    for name in batches.NAMES:
        batch = batches.read_batch(name)
        yield f"batch {name}", batch.personal + batch.nothing
    rows = data("presidio_synth.jsonl")
    if rows:
        yield "presidio_synth", [made.Labelled(row["text"], tuple(labels_of(row))) for row in rows]


def labels_of(row):
    return [(KINDS[s["type"]], s["start"], s["end"]) for s in row["spans"] if s["type"] in KINDS]


def adversarial_personal():
    sentences = ("Call {} after six", "my phone is {}", "Tel: {}", "her number is {}, she says")
    named = [(text.format(phone), "phone", phone) for phone in LISTS["phones"] for text in sentences]
    for text, kind, value in named + adversarial.pairs(LISTS["personal"]):
        yield personal_corpus.Labelled(text, ((kind, text.index(value), text.index(value) + len(value)),))
    yield from (personal_corpus.Labelled(text, ()) for text in LISTS["not_personal"])


def secret_corpora():
    """Texts with and without a secret: told in prose, and keys of machines."""
    words = files("memframe.audit").joinpath("rules", "seed_words.txt").read_text("ascii").split()
    for name, module in {"made with": secret_corpus, **SENTENCES}.items():
        made = secret_corpus.make_corpus(module.TOLD, module.KEYS, module.CLEAN, seed=3, seed_words=words)
        for part in ("told", "keys"):
            yield f"{part}, {name}", [(text.text, bool(text.secrets)) for text in made[part] + made["clean"]]
    told = [text for text, _ in adversarial.pairs(LISTS["told"])] + LISTS["told_not_found"]
    yield from ((f"told, batch {name}", batches.read_batch(name).secrets()) for name in batches.NAMES)
    yield "told, all batches", [text for name in batches.NAMES for text in batches.read_batch(name).secrets()]
    yield "told, adversarial", labelled(told, LISTS["clean"])
    yield "keys, adversarial", labelled(adversarial.vendor_keys(1).values(), LISTS["code"])


def junk_corpora():
    """Stores in which some memories are junk; the last one as users found theirs, nearly nothing but junk."""
    yield from junk_corpus.stores().items()
    yield "a store of 10,134", junk_corpus.overrun_store(seed=1)


# Figures


def row_of(check, corpus, figures, more=""):
    print(
        f"{check:14} {corpus:20} {figures.precision():9.3f} {figures.recall():7.3f} {figures.f1():7.3f}  {more}",
        flush=True,
    )


def report_personal():
    for name, texts in personal_corpora():
        found = find_personal_data(frame_of(text.text for text in texts))
        figures = span_figures([text.spans for text in texts], found)
        kinds = sorted({*figures.hits, *figures.missed, *figures.false})
        row_of("personal_data", name, figures, "  ".join(f"{kind} {figures.f1(kind):.2f}" for kind in kinds))


def report_secrets():
    for name, texts in secret_corpora():
        found = find_secrets(frame_of(text for text, _ in texts))
        row_of("secret", name, record_figures([positive for _, positive in texts], found))


def report_junk():
    for name, store in junk_corpora():
        found = find_junk(frame_of(text for text, _ in store))
        gone = {int(row) for row in found["id"][found["action"].isin(["delete", "merge"])]}
        n_junk = sum(is_junk for _, is_junk in store)
        proposed = sum(is_junk for row, (_, is_junk) in enumerate(store) if row in gone) / n_junk
        lost = sum(not is_junk for row, (_, is_junk) in enumerate(store) if row in gone)
        survive = 1 - lost / (len(store) - n_junk)
        figures = record_figures([is_junk for _, is_junk in store], found)
        row_of(
            "junk",
            name,
            figures,
            f"{proposed:.0%} to be deleted or merged, {survive:.1%} of the good survive",
        )


def report_false_alarms(n_clean):
    stores = {f"{n_clean:,} clean": clean_memories(n_clean)}
    if rows := data("locomo_memories.jsonl"):
        stores[f"locomo ({len(rows):,})"] = [row["content"] for row in rows]
    for name, texts in stores.items():
        frame = frame_of(texts)
        counts = {find.__name__: len(find(frame)) for find in (find_secrets, find_personal_data, find_junk)}
        print(f"{'false alarms':14} {name:20} {counts}", flush=True)


@cache
def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the real texts")
    return parser.parse_args()


def main():
    print(f"{'check':14} {'corpus':20} {'precision':>9} {'recall':>7} {'F1':>7}")
    report_personal()
    report_secrets()
    report_junk()
    report_false_alarms(options().texts)


if __name__ == "__main__":
    main()

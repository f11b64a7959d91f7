"""The checks that read one memory at a time: how right they are, and how fast, on labelled corpora.

    python tests/benchmarks/audit_texts.py

Corpora of ``tests/audit``: sentences that the detectors were made with, sentences that were unseen when they were
written, batches in other voices that the detectors learned from later, and what outsiders would try. Real memories are
measured by `audit_real.py`, and what the checks cost by `audit_whole.py`.
"""

import sys
from importlib.resources import files
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memframe.audit import find_junk, find_personal_data, find_secrets
from tests.audit import adversarial, batches, junk_corpus, personal_corpus, secret_corpus
from tests.audit.batches import labelled
from tests.audit.figures import frame_of, record_figures, span_figures
from tests.audit.sentences import seen, unseen

SENTENCES = {"seen": seen, "unseen": unseen}
LISTS = adversarial.LISTS


# Corpora


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


def main():
    print(f"{'check':14} {'corpus':20} {'precision':>9} {'recall':>7} {'F1':>7}")
    report_personal()
    report_secrets()
    report_junk()


if __name__ == "__main__":
    main()

"""The audit on the project's own corpora: how right it is about texts, and about pairs of them.

    python benchmarks/audit_corpora.py

Texts of ``tests/audit``: sentences that the detectors were made with, sentences that were unseen when they were
written, batches in other voices that the detectors learned from later, and what outsiders would try. Stores of
``benchmarks/pairs``, in the half that the checks were written with and the half that they were not. Real memories are
measured by `audit_real.py`, and what the checks cost by `audit_whole.py`.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.pairs import scoring
from benchmarks.pairs.corpus import corpus
from benchmarks.pairs.updates import updates
from memframe.audit import find_junk, find_personal_data, find_secrets
from memframe.audit.duplicates import find_exact_duplicates, find_near_duplicates
from memframe.audit.similarity.cluster import similar_pairs
from tests.audit import corpora
from tests.audit.figures import Figures, frame_of, record_figures, span_figures

SEEDS = (1, 2, 3)
SENTENCES = {"seen": corpora.seen, "unseen": corpora.unseen}
LISTS = corpora.ADVERSARIAL


# Corpora


def personal_corpora():
    """Texts with labelled spans, by the name of their corpus."""
    some = corpora.personal
    yield "made with", corpora.make_personal(some.SHAPED + some.TOLD + some.OTHERS, some.NOTHING, seed=1)
    for name, group in SENTENCES.items():
        yield name, corpora.make_personal(group.PERSONAL, group.NOT_PERSONAL, seed=1)
    yield "adversarial", list(adversarial_personal())
    for name in corpora.BATCHES:
        batch = corpora.read_batch(name)
        yield f"batch {name}", batch.personal + batch.nothing


def adversarial_personal():
    sentences = ("Call {} after six", "my phone is {}", "Tel: {}", "her number is {}, she says")
    named = [(text.format(phone), "phone", phone) for phone in LISTS["phones"] for text in sentences]
    for text, kind, value in named + corpora.pairs(LISTS["personal"]):
        yield corpora.Text(text, ((kind, text.index(value), text.index(value) + len(value)),))
    yield from map(corpora.Text, LISTS["not_personal"])


def secret_corpora():
    """Texts with and without a secret: told in prose, and keys of machines."""
    for name, group in {"made with": corpora.secrets, **SENTENCES}.items():
        made = corpora.make_secrets(group, seed=3)
        for part in ("told", "keys"):
            yield f"{part}, {name}", [(text.text, bool(text.spans)) for text in made[part] + made["clean"]]
    told = [text for text, _ in corpora.pairs(LISTS["told"])] + LISTS["told_not_found"]
    yield from ((f"told, batch {name}", corpora.read_batch(name).secrets()) for name in corpora.BATCHES)
    yield (
        "told, all batches",
        [text for name in corpora.BATCHES for text in corpora.read_batch(name).secrets()],
    )
    yield "told, adversarial", corpora.labelled(told, LISTS["clean"])
    yield "keys, adversarial", corpora.labelled(corpora.vendor_keys(1).values(), LISTS["code"])


def junk_corpora():
    """Stores in which some memories are junk; the last one as users found theirs, nearly nothing but junk."""
    yield from corpora.junk_stores().items()
    yield "a store of 10,134", corpora.overrun_store(seed=1)


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


def report_store(half, n):
    """Print figures of duplicates and changed values in stores of ``n`` memories, of all seeds together."""
    near, named, values = ([Counter(), Counter(), Counter()] for _ in range(3))
    made, lost, n_changed, n_merged = Counter(), Counter(), 0, 0
    for seed in SEEDS if n < 10_000 else SEEDS[:1]:
        store = corpus(n, seed, half)
        similar = similar_pairs(store.memories)
        duplicates = find_near_duplicates(store.memories, pairs=similar)
        exact = find_exact_duplicates(store.memories)
        merged = scoring.merged(store, exact, scoring.copies(duplicates))
        repeated = scoring.merged(store, exact, duplicates)
        changed, _ = scoring.changed(store, scoring.value_changes(store.memories, pairs=similar))
        for sums, figures in ((near, merged.figures), (named, repeated.figures), (values, changed)):
            for total, part in zip(sums, figures, strict=True):
                total.update(part)
        made.update(store.made)
        lost.update(merged.lost)
        n_changed += len(store.changed)
        n_merged += merged.n_changed_merged
    row_of("near_duplicate", f"{half}, {n:,}", Figures(*near), "merged")
    row_of("", "", Figures(*named), "merged or for review")
    row_of("version, a value", f"{half}, {n:,}", Figures(*values))
    print(f"  changed values merged: {n_merged} of {n_changed}")
    print("  copies lost: " + (", ".join(f"{kind} {lost[kind]} of {made[kind]}" for kind in lost) or "none"))


def report_updates(half):
    """Print figures of superseded facts."""
    stores = [updates(seed, half) for seed in SEEDS]
    results = [scoring.ranked(store, scoring.replacements(store.memories)) for store in stores]
    sums = [sum((result.cued[part] for result in results), Counter()) for part in range(3)]
    row_of("version, replaced", f"{half}, with a cue", Figures(*sums))
    first = np.mean([result.first_three for result in results])
    uncued = np.mean([result.uncued_recall for result in results])
    beside = sum(result.beside for result in results), sum(len(store.beside) for store in stores)
    print(f"  replaced memory among the first three: {first:.3f}; recall without a cue: {uncued:.3f}")
    print(f"  still true, and proposed all the same: {beside[0]} of {beside[1]}")


def main():
    print(f"{'check':14} {'corpus':20} {'precision':>9} {'recall':>7} {'F1':>7}")
    report_personal()
    report_secrets()
    report_junk()
    for half in ("develop", "held_out"):
        for n in (1_000, 10_000):
            report_store(half, n)
        report_updates(half)


if __name__ == "__main__":
    main()

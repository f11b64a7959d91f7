"""Ablation: what the audit loses of junk without each of its rules.

    python tests/benchmarks/audit_rules.py
    python tests/benchmarks/audit_rules.py --real FOLDER      # with *.jsonl of memories, whose proposals are counted

For each rule: how many labelled memories are no longer found, in how many stores; how many false alarms go; and how
many proposals among unlabelled memories go, in how many files. A rule that is missed in fewer than two stores or files
has not earned its place; one that is missed nowhere may still bear others out, as signals of prompts add up.
"""

import argparse
import json
import re
import sys
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memframe.audit import find_junk, junk
from memframe.audit.rules import load_rules
from tests.audit import junk_corpus
from tests.audit.figures import frame_of

NEVER = re.compile("(?!)")


@contextmanager
def without(rule):
    """The audit with a rule that never applies."""
    kept = rule.regex
    rule.__dict__["regex"] = NEVER
    junk._PATTERNS.clear()
    try:
        yield
    finally:
        rule.__dict__["regex"] = kept
        junk._PATTERNS.clear()


def found_in(stores):
    """(store, place) of every memory that is called junk."""
    return {(name, place) for name, texts in stores.items() for place in find_junk(frame_of(texts))["id"]}


def real_stores(folder):
    files = sorted(folder.glob("*.jsonl")) if folder else []
    return {
        f"real {path.stem}": [
            json.loads(line)["content"] or "" for line in path.read_text("utf-8").splitlines()
        ]
        for path in files
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--real", type=Path, help="a folder of *.jsonl with memories, one a line")
    real = real_stores(parser.parse_args().real)
    labels = {
        (name, str(place)): is_junk
        for name, store in junk_corpus.stores().items()
        for place, (_, is_junk) in enumerate(store)
    }
    stores = {name: [text for text, _ in store] for name, store in junk_corpus.stores().items()} | real
    whole = found_in(stores)
    print(
        f"all rules: {len(whole & labels.keys()):,} of {sum(labels.values()):,} labelled, "
        f"{len(whole - labels.keys()):,} others"
    )
    print(f"{'rule':24} {'missed':>6} {'stores':>6} {'false':>5} {'others':>6} {'files':>5}  example")
    for number, rule in enumerate(load_rules("junk").rules):
        with without(rule):
            left = found_in(stores)
        gone, come = whole - left, left - whole
        missed, others = {key for key in gone if labels.get(key)}, gone - labels.keys()
        false = sum(not labels.get(key, True) for key in gone) - sum(
            not labels.get(key, True) for key in come
        )
        sources = len({name for name, _ in missed}), len({name for name, _ in others})
        print(
            f"{number:3} {rule.group:20} {len(missed):6} {sources[0]:6} {false:5} {len(others):6} {sources[1]:5}  "
            f"{rule.finds[0][:50]!r}",
            flush=True,
        )


if __name__ == "__main__":
    main()

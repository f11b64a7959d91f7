"""Measure the audit on real memories: how many of its proposals are right, by check and source.

    python benchmarks/real_memories.py REPOSITORIES --out DIR
    python benchmarks/audit_real.py DIR [--sheet FILE]

Labels are verdicts of readers in `real_labels.csv`, keyed by a hash of what was read: the texts stay outside of the
project. A proposal is a finding with an action; the first table tells how many are right. The second tells what is
missed, on memories that were drawn at random or searched for, the third how many of the updates that benchmarks declare
are named. Equal texts count once. Where two readers differ, a proposal is not counted as right. ``--sheet`` writes
proposals that nobody has labelled yet, with their texts, for a reader.
"""

import argparse
import csv
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from real_memories import read_frame, read_sources

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from memframe.audit import audit_memories

LABELS = Path(__file__).with_name("real_labels.csv")
NOW = datetime(2026, 11, 23, tzinfo=UTC)
SPANS = ("secret", "personal_data")
PAIRS = ("near_duplicate", "version")
CHECKS = ("junk", *PAIRS, "stale", *SPANS)
"""Checks whose proposals readers judge. Exact copies need no reader."""

FORMER = {"version": ("superseded", "changed_value")}
"""Checks that a check stands in place of, under whose names readers judged pairs."""

QUESTIONS = {
    "is_junk": "junk",
    "has_secret": "secret",
    "has_personal_data": "personal_data",
    "is_expired": "stale",
    "known_secret": "secret",
    "known_personal_data": "personal_data",
    "to_decide": None,
}
"""What readers were asked about memories, and the check that should find it: the first four about memories drawn at
random, the next two about those in which a search with wide patterns saw something, the last, of any check, about
memories drawn at random: whether the owner has something to decide."""


class Verdict(NamedTuple):
    reader1: str
    reader2: str

    @property
    def is_good(self) -> bool:
        """Right, or yes: no reader says otherwise."""
        return not {self.reader1, self.reader2} & {"wrong", "no"}


# Keys


def normalise(text: str) -> str:
    return " ".join(text.lower().split())


def key_of(check: str, *texts: str) -> str:
    """A hash of a check and the texts that its claim is about.

    >>> key_of("junk", "Heartbeat  OK") == key_of("junk", "heartbeat ok")
    True
    """
    return hashlib.sha256("\n".join([check, *map(normalise, texts)]).encode()).hexdigest()[:16]


# Proposals


def propose(memories: pd.DataFrame, checks: Iterable[str] | None = None) -> pd.DataFrame:
    """Proposals of the audit with the texts that they are about and their keys."""
    findings = audit_memories(memories, now=NOW, checks=checks).findings
    kept = findings[findings["check"].isin(CHECKS) & (findings["action"] != "none")].copy()
    content = memories.set_index("id")["content"]
    kept["text"] = kept["id"].map(content)
    kept["related"] = kept["related_id"].map(content)
    kept["span"] = [text_of(memories, finding) for finding in kept.itertuples()]
    kept["key"] = [key_of(row.check, *claim_of(row)) for row in kept.itertuples()]
    return kept


def with_former(proposals: pd.DataFrame, labels: dict[str, Verdict]) -> pd.DataFrame:
    """Proposals with the key of a former check where only that has a label."""
    keys = [
        next(
            (
                key
                for name in (row.check, *FORMER.get(row.check, ()))
                if (key := key_of(name, *claim_of(row))) in labels
            ),
            row.key,
        )
        for row in proposals.itertuples()
    ]
    return proposals.assign(key=keys)


def text_of(memories: pd.DataFrame, finding) -> str | None:
    """The characters that a finding points at."""
    if finding.check not in SPANS or pd.isna(finding.start):
        return None
    field = memories.loc[memories["id"] == finding.id, finding.field].item()
    return field[finding.start : finding.end]


def claim_of(row) -> tuple[str, ...]:
    """The texts that a proposal is judged by: the span with its text, both of a pair, or the text alone."""
    beside = row.span if row.check in SPANS else row.related if row.check in PAIRS else None
    return (row.text,) if pd.isna(beside) else (row.text, beside)


# Figures


def count_proposals(proposals: pd.DataFrame, labels: dict[str, Verdict]) -> dict[str, int]:
    """Proposals, labelled, right; and facts that would be deleted or merged away. Equal claims count once."""
    proposals = proposals.drop_duplicates("key")
    verdicts = proposals["key"].map(labels.get)
    is_labelled = verdicts.notna()
    is_right = verdicts.map(lambda verdict: verdict is not None and verdict.is_good).astype(bool)
    is_removal = proposals["action"].isin(["delete", "merge"])
    return {
        "proposals": len(proposals),
        "labelled": int(is_labelled.sum()),
        "right": int((is_labelled & is_right).sum()),
        "lost": int((is_removal & is_labelled & ~is_right).sum()),
    }


def count_missed(
    memories: pd.DataFrame, proposals: pd.DataFrame, labels: dict[str, Verdict], question: str
) -> dict[str, int]:
    """Texts that readers answered the question of, those with a yes, and those of them that the check found."""
    check = QUESTIONS[question]
    named = proposals if check is None else proposals[proposals["check"] == check]
    beside = named.loc[named["check"].isin(PAIRS) & (check is None), "related"].dropna()
    found = {*named["text"].map(normalise), *beside.map(normalise)}
    texts = set(memories["content"].map(normalise))
    read = {text: labels[key] for text in texts if (key := key_of(question, text)) in labels}
    with_yes = {text for text, verdict in read.items() if verdict.is_good}
    return {"read": len(read), "yes": len(with_yes), "found": len(with_yes & found)}


def count_updates(memories: pd.DataFrame, proposals: pd.DataFrame) -> dict[str, int]:
    """Memories that are known to replace an older one, and those of them that a proposal names with it."""
    related = proposals[proposals["check"] == "version"]
    named = set(map(frozenset, zip(related["id"], related["related_id"], strict=True)))
    known = memories[memories["replaces"].notna()]
    pairs = list(map(frozenset, zip(known["id"], known["replaces"], strict=True)))
    return {"known": len(pairs), "found": sum(pair in named for pair in pairs)}


def agreement(verdicts: list[Verdict]) -> tuple[int, float, float]:
    """Number of labels by two readers, the share on which they agree, and Cohen's kappa.

    >>> agreement([Verdict("yes", "yes"), Verdict("no", "no"), Verdict("yes", "no"), Verdict("no", "no")])
    (4, 0.75, 0.5)
    """
    both = [verdict for verdict in verdicts if verdict.reader1 and verdict.reader2]
    if not both:
        return 0, float("nan"), float("nan")
    observed = sum(first == second for first, second in both) / len(both)
    answers = {answer for verdict in both for answer in verdict}
    expected = (
        sum(
            sum(first == answer for first, _ in both) * sum(second == answer for _, second in both)
            for answer in answers
        )
        / len(both) ** 2
    )
    return len(both), observed, (observed - expected) / (1 - expected) if expected < 1 else 1.0


# Files


def read_labels(path: Path) -> dict[str, Verdict]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["key"]: Verdict(row["reader1"], row["reader2"]) for row in csv.DictReader(file)}


def read_checks(path: Path) -> dict[str, str]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["key"]: row["check"] for row in csv.DictReader(file)}


def sheet_rows(proposals: pd.DataFrame, split: str, source: str) -> Iterator[dict]:
    """What a reader needs: the claim, without anybody's verdict."""
    for row in proposals.drop_duplicates("key").itertuples():
        yield {
            "key": row.key,
            "check": row.check,
            "kind": row.kind,
            "split": split,
            "source": source,
            "text": row.text,
            "related": None if pd.isna(row.related) else row.related,
            "span": None if pd.isna(row.span) else row.span,
        }


# Tables


def show(rows: list[dict], columns: list[str]) -> None:
    frame = pd.DataFrame(rows)
    for by in (["check"], ["check", "split"], ["check", "kind"], ["check", "source"]):
        summed = frame.groupby(by, sort=False)[columns].sum()
        print("\n" + share(summed).sort_index(level=0, sort_remaining=False).to_string())


def share(summed: pd.DataFrame) -> pd.DataFrame:
    part = "right" if "right" in summed else "found"
    whole = next(name for name in ("labelled", "yes", "known") if name in summed)
    summed = summed[summed.iloc[:, 0] > 0].copy()
    summed["share"] = (summed[part] / summed[whole]).round(2).map("{:.2f}".format).replace("nan", "-")
    return summed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument("--sheet", type=Path, help="where to write proposals without a label")
    chosen = parser.parse_args()
    labels, checks = read_labels(chosen.labels), read_checks(chosen.labels)
    kinds = {source["name"]: source["kind"] for source in read_sources()}
    proposed, missed, updates, unlabelled = [], [], [], []
    for path in sorted(chosen.folder.glob("*/*.jsonl")):
        if path.parent.name not in {"learn", "measure"}:
            continue
        memories = read_frame(path)
        proposals = with_former(propose(memories), labels)
        place = {"split": path.parent.name, "source": path.stem, "kind": kinds.get(path.stem, "-")}
        for check in CHECKS:
            figures = count_proposals(proposals[proposals["check"] == check], labels)
            proposed.append({"check": check, **place, "memories": len(memories), **figures})
        missed += [
            {"check": question, **place, **count_missed(memories, proposals, labels, question)}
            for question in QUESTIONS
        ]
        updates.append({"check": "updates", **place, **count_updates(memories, proposals)})
        without = proposals[~proposals["key"].isin(labels.keys())]
        unlabelled += sheet_rows(without, path.parent.name, path.stem)
    print("Proposals: labelled, and right; lost: facts proposed to be deleted or merged away")
    show(proposed, ["memories", "proposals", "labelled", "right", "lost"])
    print("\nMemories drawn at random (and, as known, searched for): with a yes, and found by the check")
    show(missed, ["read", "yes", "found"])
    print("\nMemories known to replace an older one, and named with it as versions")
    show(updates, ["known", "found"])
    print("\nTwo readers: labels, agreement, Cohen's kappa")
    for check in dict.fromkeys(checks.values()):
        verdicts = [verdict for key, verdict in labels.items() if checks[key] == check]
        print("{:18} {:5} {:.2f} {:.2f}".format(check, *agreement(verdicts)))
    if chosen.sheet:
        lines = (json.dumps(row, ensure_ascii=False) for row in unlabelled)
        chosen.sheet.write_text("".join(line + "\n" for line in lines), "utf-8")
        print(f"\n{len(unlabelled)} proposals without a label in {chosen.sheet}")


if __name__ == "__main__":
    main()

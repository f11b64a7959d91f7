"""Pairs of texts written by hand, and what they are to each other."""

from pathlib import Path
from typing import NamedTuple

from benchmarks.pairs.corpus import frame_of


class Said(NamedTuple):
    verdict: str
    """What they are: same, changed or apart; with a question mark what the check is known to get wrong."""
    one: str
    other: str


def pairs_by_hand():
    lines = Path(__file__).with_name("by_hand.txt").read_text("utf-8").splitlines()
    return [Said(*line.split(" || ")) for line in lines if line and not line.startswith("#")]


def of_one_user_each(pairs):
    """A frame in which pair number ``n`` is the memories ``m2n`` and ``m2n+1`` of a user of their own."""
    texts = [text for pair in pairs for text in pair[-2:]]
    return frame_of(texts, user_id=[f"u{row // 2}" for row in range(len(texts))])


def verdicts(pairs, near, changed):
    """What the findings say of each pair: same, changed or apart."""
    related = [set(findings["id"]) for findings in (near, changed)]
    for number in range(len(pairs)):
        ids = {f"m{2 * number}", f"m{2 * number + 1}"}
        yield "same" if ids & related[0] else "changed" if ids & related[1] else "apart"

"""False alarms of `plan.losses`: of plans that lose nothing, made from memories, those that are said to lose something.

python benchmarks/losses.py [FILE ...] [--plans 100] [--changes 20]

FILE is read by `mf.read_memories`; without one, the sample is taken. Of each there are plans that delete one of two
copies of some memories, plans that spell some otherwise (case, dashes, thousands), plans that correct typing errors,
and the cleanup of an audit. At the end, names that were corrected and names that were changed to a similar one
(`benchmarks/pairs/names_*.txt`, of which every second one is held out): of how many the old spelling is called lost.
"""

import argparse
import random
import sys
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import memframe as mf
from benchmarks.pairs.edits import mistyped, respelled
from memframe.plan import plan_of
from memframe.plan.change import Change
from memframe.plan.losses import find_losses

SAMPLE = Path(mf.__file__).parent / "sample" / "memories.jsonl"


def read(path):
    frame = mf.read_memories(path, zone="UTC")
    frame = frame[frame["content"].str.len() > 0].reset_index(drop=True)
    return frame.assign(id=[f"m{row}" for row in range(len(frame))])


def delete_copies(memories, rng, n):
    """A plan that deletes copies of memories, or the memories of which there are copies."""
    copies = memories.sample(min(n, len(memories)), random_state=rng.randrange(2**32))
    copies = copies.assign(id="copy of " + copies["id"])
    both = pd.concat([memories, copies], ignore_index=True)
    gone = both[both["id"].isin([rng.choice([one, one.removeprefix("copy of ")]) for one in copies["id"]])]
    texts = zip(gone["id"], gone["content"], strict=True)
    return plan_of(both, [Change(action="delete", id=one, before={"content": text}) for one, text in texts])


def spell_otherwise(memories, rng, n):
    return patch(memories, rng, n, lambda text: (text, respelled(text, rng, "held_out")))


def correct_errors(memories, rng, n):
    return patch(memories, rng, n, lambda text: (mistyped(text, rng, "held_out"), text))


def patch(memories, rng, n, sides_of):
    """A plan that patches some memories; `sides_of` gives the text before and after."""
    chosen = memories.sample(min(n, len(memories)), random_state=rng.randrange(2**32))
    sides = chosen["content"].map(sides_of)
    before = memories["content"].where(
        ~memories.index.isin(chosen.index), sides.str[0].reindex(memories.index)
    )
    changes = [
        Change(action="patch", id=one, before={"content": old}, after={"content": new})
        for one, (old, new) in zip(chosen["id"], sides, strict=True)
        if old != new
    ]
    return plan_of(memories.assign(content=before), changes)


def name_pairs(title):
    """Print for how many edits of one name the old one is said to be lost."""
    path = Path(__file__).parent / "pairs" / f"names_{title}.txt"
    pairs = [line.split() for line in path.read_text().splitlines()]
    for half, chosen in (("develop", pairs[::2]), ("held out", pairs[1::2])):
        texts = [[f"The gift from {name} has come." for name in pair] for pair in chosen]
        changes = [
            Change(action="patch", id="m1", before={"content": old}, after={"content": new})
            for old, new in texts
        ]
        n_lost = sum(bool(find_losses([change], {})) for change in changes)
        print(f"names {title}, {half}: {n_lost} of {len(chosen)} are called lost")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, default=[SAMPLE])
    parser.add_argument("--plans", type=int, default=100)
    parser.add_argument("--changes", type=int, default=20)
    chosen = parser.parse_args()
    for path in chosen.files:
        memories = read(path)
        print(f"{path.stem}, {len(memories):,} memories:")
        for make in (delete_copies, spell_otherwise, correct_errors):
            rng = random.Random(1)
            lost = [make(memories, rng, chosen.changes).losses for _ in range(chosen.plans)]
            alarms = [found["value"].tolist() for found in lost if len(found)]
            print(f"  {make.__name__}: {len(alarms)} alarms in {chosen.plans} plans", *alarms[:5])
        plan = mf.plan_cleanup(mf.audit_memories(mf.read_memories(path, zone="UTC")))
        print(f"  cleanup: {len(plan):,} changes, {len(plan.losses)} losses", *plan.losses["value"][:5])
    name_pairs("corrected")
    name_pairs("changed")


if __name__ == "__main__":
    main()

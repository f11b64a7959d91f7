"""Memories that are junk and memories that only look like it, as stores (`junk.txt`)."""

import re
from functools import cache
from pathlib import Path
from random import Random

TIMES = re.compile(r" \*(\d+)$")
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


@cache
def read_lists():
    """Texts by store and kind; the kind "good" is no junk."""
    lists = {}
    for line in Path(__file__).with_name("junk.txt").read_text("utf-8").splitlines():
        if line.startswith("## "):
            texts = lists[tuple(line.removeprefix("## ").split(": "))] = []
        elif line and not line.startswith("# "):
            times = TIMES.search(line)
            text = TIMES.sub("", line).replace("⏎", "\n").replace("∅", "")
            texts += [text] * (int(times[1]) if times else 1)
    return lists


def stores():
    """Stores by name: (text, whether it is junk)."""
    found = {}
    for (name, kind), texts in read_lists().items():
        found.setdefault(name, []).extend((text, kind != "good") for text in texts)
    return found


def junk():
    """Every text that is junk."""
    return [text for store in stores().values() for text, is_junk in store if is_junk]


def overrun_store(seed, n=10_134, junk_share=0.978):
    """A store as users found theirs: restated boot files, reports, loops and 668 copies of one hallucination."""
    chance, lists = Random(seed), read_lists()
    good = [text for (_, kind), texts in lists.items() if kind == "good" for text in texts]
    rows = [("User prefers Vim and works as a software developer at Google", True)] * 668
    rows += [(text, False) for text in chance.sample(good, k=round(n * (1 - junk_share)))]
    while len(rows) < n:
        [kind] = chance.choices([*KINDS], [*KINDS.values()])
        text = chance.choice(lists["made with", kind])
        rows.append((chance.choice(RESTATED).format(text) if text else text, True))
    chance.shuffle(rows)
    return rows

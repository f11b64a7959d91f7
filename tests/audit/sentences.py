"""Lists of texts under their names, and the sentences that the corpora of secrets and personal data are made of.

`unseen` was written after the detectors were made, and no detector was changed for it: its figures are the ones to
believe. `seen` was unseen once; the detectors were changed for it since, so that it guards what was learned.
"""

import re
from pathlib import Path
from types import SimpleNamespace


def read_lists(name):
    """The lists of a text file by name; ``\\n`` in a line is the end of one."""
    lists = {}
    for line in Path(__file__).with_name(f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith("[["):
            texts = lists.setdefault(line.strip("[]"), [])
        elif line and lists:
            texts.append(re.sub(r"\\(n|\\n)", lambda end: "\n" if end[1] == "n" else end[1], line))
    return lists


def rows_of(table):
    """Lines of a table, the cells of each set apart by a bar."""
    return [line.split(" | ") for line in table.strip().splitlines()]


LISTS = read_lists("sentences")


def named(group):
    """The lists whose names begin with a word, as attributes in capitals."""
    some = {name.partition(" ")[2]: texts for name, texts in LISTS.items() if name.startswith(f"{group} ")}
    return SimpleNamespace(**{name.replace(" ", "_").upper(): texts for name, texts in some.items()})


seen, unseen = named("seen"), named("unseen")

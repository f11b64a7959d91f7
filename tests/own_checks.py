"""Checks of one's own for processes apart: a process imports the module that holds them, and this one is light."""

import json
import os
from pathlib import Path

import pandas as pd

NOTHING = pd.DataFrame({"id": [], "kind": [], "evidence": []})


def find_apart(memories: pd.DataFrame) -> pd.DataFrame:
    """Print, and write down what this process can be seen by."""
    print("this is no answer")  # noqa: T201
    if "Dump" in "".join(memories.content.dropna()):
        place = memories.content[memories.content.str.contains("Dump", na=False)].iloc[0].split()[1]
        Path(place).write_text(
            json.dumps({"arguments": Path("/proc/self/cmdline").read_text(), "environ": dict(os.environ)})
        )
    return NOTHING


def die(memories: pd.DataFrame) -> pd.DataFrame:
    if "Farewell" in "".join(memories.content.dropna()):
        os._exit(5)
    return NOTHING

"""Measure versions and forms on the histories of memory files: what their owners later removed or wrote anew.

    python benchmarks/audit_history.py REPOSITORIES [--only OWNER/NAME ...] [--sheet FILE]

REPOSITORIES holds bare repositories named ``owner+name`` (or ``owner+name/repo``). Each text that a curated file of
them ever had is a memory, created by the commit that has it first, and gone by the one that has it no more. A declared
rewrite is a text that a commit put in the place of another one, where both have six or more words. No reader is needed:
that an owner keeps a text does not prove that it still holds, nor does a removal prove that another one replaced it.
"""

import argparse
import json
import sys
from collections import Counter
from difflib import SequenceMatcher
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from real_memories import read_file, run_git

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from memframe import MemframeError
from memframe.audit import audit_memories

CURATED = ("MEMORY.md", "USER.md", "TOOLS.md", "memories/*.md")
MIN_WORDS = 6
MAX_STATES = 400
"""States of a file that are read, evenly spread."""


class History(NamedTuple):
    """Texts of a repository with their times, and pairs of ids of which a commit put the second for the first."""

    memories: pd.DataFrame
    gone: set[str]
    rewrites: set[tuple[str, str]]


def read_history(folder: Path) -> History:
    """Read the curated files of a bare repository at each commit that touched them."""
    git = folder / "repo" if (folder / "repo").is_dir() else folder
    names = run_git("-C", str(git), "log", "--all", "--no-renames", "--format=", "--name-only", "-z").split(
        "\0"
    )
    paths = sorted({name.strip() for name in names if any(fnmatch(name.strip(), like) for like in CURATED)})
    rows: dict[tuple[str, str], dict] = {}
    gone, rewrites = set(), set()
    for path in paths:
        log = run_git(
            "-C", str(git), "log", "--reverse", "--no-renames", "--format=%H %cI", "HEAD", "--", path
        )
        states = [line.split() for line in log.splitlines()]
        before: list[str] = []
        for commit, moment in states[:: max(1, len(states) // MAX_STATES)]:
            now = []
            for title, content in _read_state(git, commit, path):
                made = {"id": f"{path} {len(rows)}", "content": content, "title": title, "created_at": moment}
                now.append(rows.setdefault((path, content), made)["id"])
            text_of = {row["id"]: row["content"] for row in rows.values()}
            for older, newer in _replaced(before, now):
                n_words = min(len(text_of[one].split()) for one in (older, newer))
                if older not in now and newer not in before and n_words >= MIN_WORDS:
                    rewrites.add((older, newer))
            gone |= set(before)
            gone -= set(now)
            before = now
    frame = pd.DataFrame([*rows.values()], columns=["id", "content", "title", "created_at"])
    created = pd.to_datetime(frame["created_at"], utc=True)
    made = frame.assign(user_id=folder.name, source=None, created_at=created, updated_at=created)
    return History(made.astype({"title": "str", "source": "str", "content": "str"}), gone, rewrites)


def _read_state(git: Path, commit: str, path: str) -> list[tuple[str | None, str]]:
    try:
        text = run_git("-C", str(git), "show", f"{commit}:{path}")
        return [(one.title, one.content) for one in read_file(text, path, {"user": ""})]
    except (MemframeError, SystemExit):  # a commit without the file, or without a memory in it
        return []


def _replaced(before: list[str], now: list[str]) -> list[tuple[str, str]]:
    """Return the texts of which one stands in the place of one, in runs of equal length."""
    changes = SequenceMatcher(None, before, now, autojunk=False).get_opcodes()
    return [
        pair
        for kind, start, end, first, last in changes
        if kind == "replace" and end - start == last - first
        for pair in zip(before[start:end], now[first:last], strict=True)
    ]


def measure(history: History) -> tuple[Counter, list[dict]]:
    """Count what the audit names of a history; return it with the pairs and forms that were named."""
    checks = ["version", "near_duplicate", "junk"]
    findings = audit_memories(
        history.memories, checks=checks, now=pd.Timestamp("2026-11-23", tz="UTC")
    ).findings
    text_of = history.memories.set_index("id")["content"]
    counts = Counter(memories=len(history.memories), rewrites=len(history.rewrites))
    sheet = []
    versions = findings[(findings["check"] == "version") & (findings["action"] == "review")]
    for row in versions.itertuples():
        counts[row.kind] += 1
        counts[f"{row.kind} gone"] += row.id in history.gone
        sheet.append({"kind": row.kind, "text": text_of[row.id], "related": text_of[row.related_id]})
    near = findings[findings["check"].isin(["version", "near_duplicate"])]
    group_of = {check: part.groupby("id")["group"].first() for check, part in near.groupby("check")}
    for older, newer in history.rewrites:
        by = [check for check, groups in group_of.items() if groups.get(older, -1) == groups.get(newer, -2)]
        counts["rewrites as versions"] += "version" in by
        counts["rewrites named"] += bool(by)
    forms = findings[(findings["check"] == "junk") & (findings["kind"] == "form")]
    for _, members in forms.groupby("group"):
        counts["forms"] += 1
        sheet.append({"kind": "form", "text": "\n".join(text_of[members["id"]].iloc[:4]), "n": len(members)})
    return counts, sheet


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="REPOSITORIES")
    parser.add_argument("--only", nargs="*", default=[], metavar="OWNER/NAME")
    parser.add_argument("--sheet", type=Path, help="where to write what was named, for a reader")
    chosen = parser.parse_args()
    names = [name.replace("/", "+") for name in chosen.only]
    folders = [chosen.folder / name for name in names] or sorted(
        path for path in chosen.folder.iterdir() if path.is_dir()
    )
    rows, sheet = {}, []
    for folder in folders:
        history = read_history(folder)
        if len(history.memories):
            rows[folder.name], named = measure(history)
            sheet += [{"repository": folder.name, **one} for one in named]
    table = pd.DataFrame(rows).T.fillna(0).astype(int)
    print(pd.concat([table, table.sum().to_frame("all").T]).to_string())
    if chosen.sheet:
        chosen.sheet.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in sheet), "utf-8")


if __name__ == "__main__":
    main()

"""Take the audit's rules away, one at a time, and print what is lost without each: what a rule is worth.

    python benchmarks/ablation.py [--real DIR] [--table junk] [--by group]

A rule is a row of a table in `memframe/audit/rules`, or a section of a list of words there. For each, a copy of the
package is made in which that rule matches nothing, and the check that owns the table runs on the project's own corpora
and, with DIR (of `real_memories.py`), on real memories with their labels. "right" is what only this rule finds and is
right, "wrong" what only it finds and is not, "guards" the wrong claims that it keeps the check from, "real" how much of
right and guards is in real memories, "sources" in how many corpora and sources it is. A rule with nothing right and
nothing guarded in at least two of them is marked: it has not earned its place. A run takes some ten seconds a rule.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RULES = Path("memframe", "audit", "rules")
NOTHING = r"\A\Zx"
"""A pattern without a match."""

OWNERS = {"secret": "secret", "tokens": "secret", "seed": "secret", "personal": "personal_data"}
"""The check of a table, by the beginning of its name, where that is not the name of the check itself."""

CHECKS = ("junk", "secret", "personal_data", "stale", "version", "near_duplicate")


class Part(NamedTuple):
    """What is taken away: rows of a table, or a section of a list of words."""

    file: str
    name: str
    places: tuple[int, ...]

    @property
    def checks(self) -> tuple[str, ...]:
        owners = {name: name for name in CHECKS} | OWNERS
        found = next((check for start, check in owners.items() if self.file.startswith(start)), None)
        return (found,) if found else CHECKS


class Worth(NamedTuple):
    """Right and wrong claims that need a part, wrong ones that it prevents; of the good the real, and the corpora."""

    right: int
    wrong: int
    guards: int
    real: int
    sources: int


# Tables


def parts_of(folder: Path, by: str) -> Iterator[Part]:
    """Rules, or groups of rules, and sections of words of all tables; shared fragments are no rules."""
    for path in sorted(folder.glob("*.toml")):
        rules = tomllib.loads(path.read_text("utf-8")).get("rule", [])
        places: dict[str, list[int]] = {}
        for place, rule in enumerate(rules):
            name = rule["group"] if by == "group" else f"{rule['group']} {place + 1}: {said_by(rule)}"
            places.setdefault(name, []).append(place)
        yield from (Part(path.name, name, tuple(numbers)) for name, numbers in places.items())
    for path in sorted(folder.glob("*.txt")):
        headings = re.findall(r"^\[(.+)\]", path.read_text("utf-8"), re.M)
        yield from (Part(path.name, f"[{name}]", (place,)) for place, name in enumerate(headings))


def said_by(rule: dict) -> str:
    examples = rule.get("finds") or [rule.get("words") or ""]
    return examples[0][:40].replace("\n", " ")


def silence(path: Path, part: Part) -> None:
    """Write a table anew in which the rules of a part match nothing."""
    if path.suffix == ".txt":
        before, *sections = re.split(r"^(?=\[)", path.read_text("utf-8"), flags=re.M)
        sections[part.places[0]] = sections[part.places[0]].partition("\n")[0] + "\n"
        path.write_text(before + "".join(sections), "utf-8")
        return
    table = tomllib.loads(path.read_text("utf-8"))
    for place in part.places:
        table["rule"][place].pop("words", None)
        table["rule"][place]["pattern"] = NOTHING
    path.write_text(dump(table), "utf-8")


def dump(table: dict) -> str:
    """Write a table of rules as TOML, whose texts, lists and numbers are those of JSON."""
    lines = ["[define]"] if "define" in table else []
    lines += [f"{key} = {inline(value)}" for key, value in table.get("define", {}).items()]
    for rule in table.get("rule", []):
        lines += ["[[rule]]", *(f"{key} = {inline(value)}" for key, value in rule.items())]
    return "\n".join(lines) + "\n"


def inline(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {inline(part)}" for key, part in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


# Claims: what the audit says, and whether that is right


def claims(checks: list[str], real: Path | None) -> Iterator[tuple[str, str, bool | None]]:
    """(corpus, claim, whether it is right) of what some checks propose; None where nobody knows."""
    import memframe.audit  # before the corpora's program, which puts the project's folder first in the path

    package = os.environ["PYTHONPATH"].partition(os.pathsep)[0]
    if not Path(memframe.audit.__file__).is_relative_to(package):
        raise SystemExit(f"{memframe.audit.__file__} was loaded, and not the copy in {package}")
    yield from own_claims(checks)
    if real is None:
        return
    from audit_real import LABELS, propose, read_labels
    from real_memories import read_frame

    labels = read_labels(LABELS)
    for path in sorted([*real.glob("learn/*.jsonl"), *real.glob("measure/*.jsonl")]):
        for key in propose(read_frame(path), checks)["key"].unique():
            verdict = labels.get(key)
            yield f"real {path.stem}", key, verdict and verdict.is_good


def own_claims(checks: list[str]) -> Iterator[tuple[str, str, bool | None]]:
    """The same of the corpora of the project's tests."""
    import audit_corpora
    import pandas as pd

    from benchmarks.pairs.updates import updates
    from memframe.audit import audit_memories

    personal = (
        (name, [(text.text, bool(text.spans)) for text in texts])
        for name, texts in audit_corpora.personal_corpora()
    )
    corpora = {
        "junk": audit_corpora.junk_corpora(),
        "secret": audit_corpora.secret_corpora(),
        "personal_data": personal,
    }
    for check in corpora.keys() & set(checks):
        for name, texts in corpora[check]:
            frame = pd.DataFrame({"id": map(str, range(len(texts))), "content": [text for text, _ in texts]})
            findings = audit_memories(frame, checks=[check]).findings
            for place in findings.loc[findings["action"] != "none", "id"].unique():
                yield f"{check}, {name}", place, texts[int(place)][1]
    if "version" in checks:
        store = updates(1, "held_out")
        findings = audit_memories(store.memories, checks=["version"]).findings
        for row in findings[findings["action"] != "none"].itertuples():
            yield (
                "updates",
                f"{row.id} {row.related_id}",
                (row.id, row.related_id) in {*store.cued, *store.uncued},
            )


# Runs


def run(package: Path, checks: tuple[str, ...], real: Path | None) -> dict[tuple[str, str], bool | None]:
    """Claims of a copy of the package, in a process of its own."""
    command = [
        sys.executable,
        __file__,
        "--claims",
        ",".join(checks),
        *(["--real", str(real)] if real else []),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return {
        (corpus, claim): is_right for corpus, claim, is_right in map(json.loads, done.stdout.splitlines())
    }


def without(part: Part, real: Path | None) -> dict[tuple[str, str], bool | None]:
    """Claims without a part of the rules."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "memframe")
        shutil.copytree(ROOT / "memframe", copy, ignore=shutil.ignore_patterns("__pycache__"))
        silence(Path(folder, RULES, part.file), part)
        return run(Path(folder), part.checks, real)


def weigh(whole: dict, rest: dict) -> Worth:
    """Compare the claims of the whole with those without a part.

    >>> whole = {("a", "1"): True, ("real b", "2"): True, ("real b", "3"): False, ("c", "4"): None}
    >>> weigh(whole, {("a", "1"): True, ("d", "5"): False})
    Worth(right=1, wrong=1, guards=1, real=1, sources=2)
    """
    lost = {claim: is_right for claim, is_right in whole.items() if claim not in rest}
    right = [corpus for (corpus, _), is_right in lost.items() if is_right]
    wrong = sum(is_right is False for is_right in lost.values())
    guards = [
        corpus
        for (corpus, claim), is_right in rest.items()
        if is_right is False and (corpus, claim) not in whole
    ]
    good = right + guards
    n_real = sum(corpus.startswith("real ") for corpus in good)
    return Worth(len(right), wrong, len(guards), n_real, len(set(good)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--real", type=Path, metavar="DIR")
    parser.add_argument("--table", default="", help="beginning of the name of a table")
    parser.add_argument("--by", choices=("rule", "group"), default="rule")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--most", type=int, help="take away this many parts")
    parser.add_argument("--claims", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.claims:
        sys.argv = sys.argv[:1]  # the corpora's own program reads it, too
        for claim in claims(chosen.claims.split(","), chosen.real):
            print(json.dumps(claim))
        return
    parts = [part for part in parts_of(ROOT / RULES, chosen.by) if part.file.startswith(chosen.table)]
    parts = parts[: chosen.most]
    whole = {checks: run(ROOT, checks, chosen.real) for checks in {part.checks for part in parts}}
    print("".join(f"{name:>8}" for name in Worth._fields), " rule")
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for part, rest in zip(parts, pool.map(partial(without, real=chosen.real), parts), strict=True):
            worth = weigh(whole[part.checks], rest)
            mark = "  <- not in two sources" if worth.sources < 2 else ""
            print("".join(f"{number:8}" for number in worth), f" {part.file} {part.name}{mark}", flush=True)


if __name__ == "__main__":
    main()

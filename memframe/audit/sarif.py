"""Write findings as SARIF 2.1.0, which code scanners read: file, line and rule, and no text of a memory.

Each result is about one memory, so figures, which count many, are left out. A memory without a known line gets line 1,
because scanners require a line. A path outside the current folder is reduced to its last part.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from memframe.audit.evidence import FINDERS, is_sensitive
from memframe.audit.identity import RELATIVE_CHECKS
from memframe.display import printable
from memframe.frames import READ
from memframe.report.words import PROPOSAL_WORDS, check_words_of

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

LEVELS = {"high": "error", "medium": "warning", "low": "note", "info": "note"}
"""Levels of results, by severity."""

_DIGEST_CHARACTERS = 32


def files_and_lines(memories: pd.DataFrame) -> dict[str, tuple[str, int | None]]:
    """Return the file and, if known, the line of each memory; an empty dict for memories from a service.

    >>> from memframe.readers import read_memories
    >>> memories = read_memories("- Likes tea\\n- Rows\\n").assign(id=["m1", "m2"])
    >>> files_and_lines(memories)
    {'m1': ('the text', 1), 'm2': ('the text', 2)}
    """
    report = memories.attrs.get(READ, {})
    if (
        "line" not in memories.columns or report.get("format", "memframe") == "memframe"
    ):  # an archive keeps lines
        return {}
    base = report["file"]
    columns = (
        memories[name].astype(object).where(memories[name].notna(), None) for name in ("id", "file", "line")
    )
    return {
        memory_id: (str(Path(base, file or "")), line)
        for memory_id, file, line in zip(*columns, strict=True)
        if memory_id is not None
    }


def name_place(places: Mapping[str, tuple[str, int | None]], memory_id: str) -> str:
    """Return the file and line of a memory, or its id if it is from no file.

    >>> name_place({"m1": ("notes.md", 7)}, "m1"), name_place({}, "m1")
    ('notes.md:7', 'm1')
    """
    file, line = places.get(memory_id, ("", None))
    return f"{file}:{line}" if line else file or memory_id


def sarif_json(findings: pd.DataFrame, memories: pd.DataFrame, checks: Sequence[str]) -> bytes:
    """Return the findings of memories that were read from files, as SARIF."""
    rules = [_rule_of(check) for check in checks]
    run = {
        "tool": {"driver": {"name": "memframe", "version": version("memframe"), "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [*_iter_results(findings, memories, checks)],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1).encode()


def _rule_of(check: str) -> dict[str, Any]:
    words = check_words_of(check)
    about = {"text": words.about or words.title}
    return {"id": check, "shortDescription": {"text": words.title}, "fullDescription": about, "help": about}


def _iter_results(
    findings: pd.DataFrame, memories: pd.DataFrame, checks: Sequence[str]
) -> Iterator[dict[str, Any]]:
    places = files_and_lines(memories)
    found = findings[[memory_id in places for memory_id in findings["id"]]]
    texts = _texts_without_values(memories, {*found["id"]})
    n_before: Counter[tuple[Any, ...]] = Counter()
    rules = {check: number for number, check in enumerate(checks)}
    plain = found.astype(object).where(found.notna(), None)
    for finding in plain.to_dict("records"):
        check, kind, memory_id, field = (finding[name] for name in ("check", "kind", "id", "field"))
        key = (
            check,
            "" if check in RELATIVE_CHECKS else kind,
            field,
            _uri_of(places[memory_id][0]),
            texts[memory_id],
        )
        result = {
            "ruleId": check,
            "level": LEVELS[finding["severity"]],
            "message": {"text": _message_of(finding)},
            "locations": [_location_of(*places[memory_id])],
            "partialFingerprints": {"memframeFinding/v1": _digest((*key, n_before[key]))},
        }
        n_before[key] += 1
        if check in rules:
            result["ruleIndex"] = rules[check]
        if finding["related_id"] in places and finding["related_id"] != memory_id:
            related = _location_of(*places[finding["related_id"]])
            result["relatedLocations"] = [related | {"message": {"text": "Seen beside this memory."}}]
        yield result


def _message_of(finding: Mapping[Any, Any]) -> str:
    """Describe a finding without its evidence, which may quote words."""
    what = printable(str(finding["kind"] or "finding").replace("_", " "))
    field = f" in {printable(finding['field'])}" if finding["field"] else ""
    proposed = PROPOSAL_WORDS.get(finding["action"])
    return f"{check_words_of(finding['check']).title}: {what}{field}.{f' Proposed: {proposed}.' if proposed else ''}"


def _location_of(file: str, line: int | None) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": _uri_of(file)}, "region": {"startLine": int(line or 1)}}
    return {"physicalLocation": place}


def _uri_of(file: str) -> str:
    """Return a path as a relative reference from the current folder.

    >>> _uri_of("notes/my memories.md"), _uri_of("/somewhere/else/MEMORY.md")
    ('notes/my%20memories.md', 'MEMORY.md')
    """
    path = Path(os.path.relpath(file) if Path(file).is_absolute() else os.path.normpath(file))
    return quote((Path(path.name) if ".." in path.parts else path).as_posix())


def _texts_without_values(memories: pd.DataFrame, ids: set[str]) -> dict[str, str]:
    """Return the texts of memories without secrets and personal data, for the fingerprints of findings.

    A text with a word about secrets in which none was found is left out, because its digest could be guessed.
    """
    concerned = memories[memories["id"].isin(ids)].drop_duplicates("id")
    spans: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for find in FINDERS.values():
        values = find(concerned)
        values = values[(values["field"] == "content") & values["start"].notna()]
        for memory_id, start, end in zip(values["id"], values["start"], values["end"], strict=True):
            spans[memory_id].append((start, end))
    texts = {}
    for memory_id, content in zip(concerned["id"], concerned["content"], strict=True):
        text = content if isinstance(content, str) else ""
        pieces, n_read = [], 0
        for start, end in [*sorted(spans[memory_id]), (len(text), len(text))]:
            pieces.append(text[n_read : max(n_read, start)])
            n_read = max(n_read, end)
        texts[memory_id] = "" if not spans[memory_id] and is_sensitive(text) else "".join(pieces)
    return texts


def _digest(key: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]

"""Fetch real memories from public repositories, and shape them to frames that the audit reads.

    python benchmarks/real_memories.py DIR --out OUT

The sources are listed in `real_sources.toml`: repository, commit, files, how they are read, and a split. Rules may be
written with sources of the split "learn" in view; those of "measure" are only measured. DIR holds bare repositories
named ``owner+name`` (or ``owner+name/repo``); what is not there is cloned without blobs from GitHub. OUT gets one JSONL
file for each source, as ``learn/NAME.jsonl`` and ``measure/NAME.jsonl``. Texts are other people's: they never enter
this project.
"""

import argparse
import ast
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import memframe as mf

SOURCES = Path(__file__).with_name("real_sources.toml")
COLUMNS = ["id", "user_id", "title", "content", "source", "created_at", "updated_at", "replaces"]
MAX_CHARACTERS = 4_000
MIN_CHARACTERS = 12


class Memory(NamedTuple):
    """A text with whom it is about; those of one group (a file, a person) are taken together or not at all."""

    content: str
    user_id: str
    created_at: str | None = None
    group: str = ""
    title: str | None = None
    replaces: str | None = None
    """The older text that this one is known to replace."""


# Repositories


def run_git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], check=False, capture_output=True)  # noqa: S607 - the user's own git
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.stdout.decode("utf-8", "replace")


class Repository:
    """Files of one commit of a bare repository."""

    def __init__(self, folder: Path, name: str, commit: str) -> None:
        self.name, self.commit = name, commit
        self._path = folder / name.replace("/", "+")
        if (self._path / "repo").is_dir():
            self._path /= "repo"
        if not self._path.exists():
            address = f"https://github.com/{name}"
            run_git("clone", "-q", "--bare", "--filter=blob:none", address, str(self._path))
        if commit not in self._run("rev-list", "--all").split():
            self._run("fetch", "-q", "--filter=blob:none", "origin", commit)

    def _run(self, *arguments: str) -> str:
        return run_git("-C", str(self._path), *arguments)

    def paths(self, patterns: list[str]) -> list[str]:
        names = self._run("ls-tree", "-r", "-z", "--name-only", self.commit).split("\0")
        found = sorted(name for name in names if any(fnmatch(name, pattern) for pattern in patterns))
        if not found:
            raise SystemExit(f"{self.name} at {self.commit[:8]} has no file like {', '.join(patterns)}")
        return found

    def read(self, path: str) -> str:
        return self._run("show", f"{self.commit}:{path}").removeprefix("\ufeff")

    def committed_at(self) -> str:
        return self._run("log", "-1", "--format=%cI", self.commit).strip()


# Times

_DATE = re.compile(r"(20\d\d)[-_/年](\d\d?)[-_/月](\d\d?)日?(?:\D{0,5}?(\d\d?):(\d\d)(?::(\d\d))?)?")
_DAY_FIRST = re.compile(r"(\d\d)\.(\d\d)\.(20\d\d),? (\d\d):(\d\d)(?::(\d\d))?")


def parse_time(value: Any) -> str | None:
    """A time in UTC from what sources write: ISO, days first, Chinese, or milliseconds; None where there is none.

    >>> parse_time("29.12.2023, 22:42:04")
    '2023-12-29T22:42:04Z'
    >>> parse_time("memory/2026-03-27.md")
    '2026-03-27T00:00:00Z'
    """
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = str(value or "")
    if found := _DAY_FIRST.search(text):
        day, month, year, *clock = found.groups()
    elif found := _DATE.search(text):
        year, month, day, *clock = found.groups()
    else:
        return None
    hour, minute, second = (int(part or 0) for part in clock)
    try:
        moment = datetime(int(year), int(month), int(day), hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


# Shapes: files of one kind to memories

_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.S)
_CODE = re.compile(r"^```.*?^```[^\n]*\n?", re.S | re.M)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_HEADING = re.compile(r"^#{1,6}\s+(.*)$")
_BULLET = re.compile(r"^(?:[-*+•]|\d+[.)])\s+")


def read_sections(text: str, path: str, source: dict) -> Iterator[Memory]:
    """Sections of a daily note, each as an agent wrote it: heading and body."""
    when = parse_time(Path(path).name) or parse_time(text[:300])
    title, body = "", []
    for line in [*_COMMENT.sub("", text).splitlines(), "# "]:
        heading = _HEADING.match(line + " ")
        if heading is None:
            body.append(line)
            continue
        content = "\n".join(body).strip()
        if content and content != "---":
            yield Memory(f"{title}\n{content}".strip(), source["user"], parse_time(title) or when, path)
        title, body = heading[1].strip(), []


def read_bullets(text: str, path: str, source: dict) -> Iterator[Memory]:
    """Bullets (with what is indented below) and paragraphs of a list of facts; the heading says of what."""
    when = parse_time(Path(path).name)
    heading, parts = "", []

    def finished() -> Iterator[Memory]:
        content = "\n".join(parts).strip()
        if content and not re.fullmatch(r"[-*_\s|:]+", content):
            named = f"{heading}: {content}" if heading and source.get("headings", True) else content
            yield Memory(named, source["user"], parse_time(heading) or when, path)
        parts.clear()

    for line in _COMMENT.sub("", _CODE.sub("", _FRONT_MATTER.sub("", text))).splitlines():
        if found := _HEADING.match(line):
            yield from finished()
            heading = found[1].strip(" #*:")
        elif _BULLET.match(line) or not line.strip() or line.startswith("|"):
            yield from finished()
            parts.append(_BULLET.sub("", line))
        else:
            parts.append(line)
    yield from finished()


def read_whole(text: str, path: str, source: dict) -> Iterator[Memory]:
    """A file as one memory."""
    front = _FRONT_MATTER.match(text)
    found = re.search(r"^name:\s*(.+)$", front[1], re.M) if front else None
    body = _FRONT_MATTER.sub("", text).strip()
    when = parse_time(Path(path).name) or parse_time(front[1] if front else text[:300])
    yield Memory(body, source["user"], when, path, found[1].strip() if found else None)


def read_file(text: str, path: str, source: dict) -> Iterator[Memory]:
    """Memories of a file as `mf.read_memories` reads it."""
    with TemporaryDirectory() as folder:
        file = Path(folder, Path(path).name)  # the name says the day of a note
        file.write_text(text, "utf-8")
        read = mf.read_memories(file, zone="UTC")  # the notes do not say which
    for title, content, created_at in zip(read["title"], read["content"], read["created_at"], strict=True):
        when = None if pd.isna(created_at) else created_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        yield Memory(content, source["user"], when, path, None if pd.isna(title) else title)


def read_graph(text: str, path: str, source: dict) -> Iterator[Memory]:
    """Observations of a memory graph, as the reference server for MCP stores them."""
    try:
        entities = json.loads(text)["entities"]
    except (ValueError, KeyError):
        entities = [json.loads(line) for line in text.splitlines() if line.strip().startswith("{")]
    for entity in entities:
        for observation in entity.get("observations", ()):
            kept = {"text": observation} if isinstance(observation, str) else observation
            said = kept.get("text") or kept.get("content", "")
            yield Memory(f"{entity['name']}: {said}", source["user"], parse_time(kept.get("timestamp")), path)


def read_records(text: str, path: str, source: dict) -> Iterator[Memory]:
    """Records of a JSON or JSONL file; which fields hold text, time and person is said in the source.

    ``alone``: each record is about another person. ``paragraphs``: a record holds many memories.
    """
    if path.endswith(".jsonl"):
        records: Any = [json.loads(line) for line in text.splitlines() if line.strip()]
    else:
        records = json.loads(text)
        for key in source.get("below", ()):
            records = records[key]
        if isinstance(records, dict):
            records = list(records.values())
    for number, fields in enumerate(records):
        parts = [str(fields[name]) for name in source["text"] if fields.get(name)]
        user = str(number if source.get("alone") else fields.get(source.get("person"), source["user"]))
        when = parse_time(fields.get(source.get("time")))
        for content in "\n".join(parts).split("\n\n" if source.get("paragraphs") else "\0"):
            yield Memory(content, user, when, path)


def read_personas(text: str, path: str, source: dict) -> Iterator[Memory]:
    """Persona sentences of PersonaChat; each persona once."""
    seen = set()
    for row in csv.DictReader(io.StringIO(text)):
        for column in ("user 1 personas", "user 2 personas"):
            if row[column] not in seen:
                seen.add(row[column])
                user = hashlib.sha256(row[column].encode()).hexdigest()[:8]
                yield from (Memory(line, user, None, user) for line in row[column].splitlines())


def read_events(text: str, path: str, source: dict) -> Iterator[Memory]:
    """Events of two people, noted after each session of a chat (REALTALK)."""
    chat = json.loads(text)
    for number in range(1, 200):
        events = chat.get(f"events_session_{number}")
        when = parse_time(chat.get(f"session_{number}_date_time"))
        for side, speaker in (("agent_a", "speaker_1"), ("agent_b", "speaker_2")):
            for event in (events or {}).get(side, ()):
                yield Memory(event["sub-event"], chat["name"][speaker], when, f"{path} {side}")


def read_turns(text: str, path: str, source: dict) -> Iterator[Memory]:
    """What people said to an assistant, day by day (MemoryBank)."""
    for person, kept in json.loads(text).items():
        for day, turns in kept["history"].items():
            for turn in turns:
                yield Memory(turn["query"], person, parse_time(day), person)


def read_preferences(text: str, path: str, source: dict) -> Iterator[Memory]:
    """Preferences, each when it is first held: at the start, or after an event of some month (HaluMem)."""

    def points_of(preference: dict | None) -> list[str]:
        points = (preference or {}).get("memory_points", ())
        return [
            f"{point['type_description']}: {point['specific_item']}. {point['reason']}" for point in points
        ]

    for line in text.splitlines():
        record = json.loads(line)
        held: dict[str, tuple[int, str | None]] = {}
        for event in record["event_list"]:
            held |= {point: (0, None) for point in points_of(event["before_preference"]) if point not in held}
        for event in record["event_list"]:
            before = points_of(event["before_preference"])
            for place, point in enumerate(points_of(event["after_preference"])):
                changed = event["update_direction"] == "Modify" and place == event["changed_index"]
                if point not in held:
                    held[point] = (event["step"], before[place] if changed else None)
        for point, (step, older) in held.items():
            month = f"2025-{min(12, step + 1):02}-01"
            yield Memory(point, record["uuid"][:8], parse_time(month), record["uuid"], replaces=older)


def nearest(text: str, texts: list[str]) -> str | None:
    """The text with most words of another, which a benchmark cites in its own words; the first of equals."""
    words = set(text.lower().split())
    return max(texts, key=lambda other: len(words & set(other.lower().split())), default=None)


def read_profiles(text: str, path: str, source: dict) -> Iterator[Memory]:
    """Facts to be remembered after each session of a benchmark, some of which contradict older ones (MemoryBench)."""
    module = ast.parse(text)
    named = {node.targets[0].id: node.value for node in module.body if isinstance(node, ast.Assign)}
    for profile in ast.literal_eval(named["PROFILES"]):
        user, said = profile["user_id"], []
        for session in profile["sessions"]:
            when = parse_time(f"2026-01-{session['session_id']:02}")
            for fact in session["expected_memories_after"]:
                older = nearest(fact["contradicts"], said) if "contradicts" in fact else None
                said.append(fact["fact"])
                yield Memory(fact["fact"], user, when, user, replaces=older)


def read_stores(text: str, path: str, source: dict) -> Iterator[Memory]:
    """What a memory system had stored for each user at the end of a benchmark."""
    for profile in json.loads(text)["profile_results"]:
        user = f"{profile['user_id']}-{profile['memory_system']}"
        for memory in profile["all_memories_after"]:
            session = memory.get("metadata", {}).get("session_id")
            when = f"2026-01-{session:02}" if session else None
            yield Memory(memory["content"], user, parse_time(when), user)


def read_messages(text: str, path: str, source: dict) -> Iterator[Memory]:
    """Messages of a person to an assistant, with time (MemDaily)."""
    for trajectory in json.loads(text):
        user = f"{Path(path).stem}-{trajectory['tid']}"
        for message in trajectory["message_list"]:
            yield Memory(message["message"], user, parse_time(message["time"]), user)


def read_scripts(text: str, path: str, source: dict) -> Iterator[Memory]:
    """Statements of a scripted test of memory; questions are left out (GoodAI)."""
    script = json.loads(text)
    for line, asks in zip(
        script["script"], script["is_question"], strict=False
    ):  # dynamic tests have more to ask
        if not asks:
            yield Memory(line, path, None, path)


SHAPES: dict[str, Callable[[str, str, dict], Iterator[Memory]]] = {
    "sections": read_sections,
    "bullets": read_bullets,
    "whole": read_whole,
    "file": read_file,
    "graph": read_graph,
    "records": read_records,
    "personas": read_personas,
    "events": read_events,
    "turns": read_turns,
    "preferences": read_preferences,
    "stores": read_stores,
    "profiles": read_profiles,
    "messages": read_messages,
    "scripts": read_scripts,
}


# Sources


def read_sources(path: Path = SOURCES) -> list[dict]:
    return tomllib.loads(path.read_text("utf-8"))["source"]


def limit(memories: list[Memory], most: int) -> list[Memory]:
    """Whole groups in an order that only their names decide, until there are enough."""
    groups: dict[str, list[Memory]] = {}
    for memory in memories:
        groups.setdefault(memory.group, []).append(memory)
    names = sorted(groups, key=lambda name: hashlib.sha256(name.encode()).digest())
    return list(chain.from_iterable(groups[name] for name in names))[:most]


def shape(source: dict, folder: Path) -> pd.DataFrame:
    """Memories of a source as rows with the columns of a frame of memories; ``replaces`` is the id of an older one."""
    found = []
    for place in source["repositories"]:
        repository = Repository(folder, place["name"], place["commit"])
        known = {**source, "user": place["name"]}
        fallback = parse_time(repository.committed_at()) if source.get("dated", True) else None
        memories = [
            memory._replace(created_at=memory.created_at or fallback)
            for path in repository.paths(place["files"])
            for memory in SHAPES[source["shape"]](repository.read(path), path, known)
            if MIN_CHARACTERS <= len(memory.content.strip()) <= MAX_CHARACTERS
        ]
        found += limit(memories, source["most"] // len(source["repositories"]))
    rows, n_seen, known_ids = [], {}, {}
    for memory in found:
        text = f"{source['name']}\n{memory.user_id}\n{memory.content}"
        n_seen[text] = n_seen.get(text, -1) + 1
        rows.append(
            {
                "id": hashlib.sha256(f"{n_seen[text]}\n{text}".encode()).hexdigest()[:12],
                "user_id": f"{source['name']}/{memory.user_id}",
                "title": memory.title,
                "content": memory.content,
                "source": source["name"],
                "created_at": memory.created_at,
                "updated_at": memory.created_at,
            }
        )
        known_ids[memory.user_id, memory.content] = rows[-1]["id"]
    older = [known_ids.get((memory.user_id, memory.replaces)) for memory in found]
    return pd.DataFrame(rows).assign(replaces=older)


def read_frame(path: Path) -> pd.DataFrame:
    """A shaped source as a frame that the audit reads."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    frame = pd.DataFrame(rows, columns=COLUMNS).astype(
        dict.fromkeys(("id", "user_id", "title", "content", "source"), "str")
    )
    times = {name: pd.to_datetime(frame[name], utc=True) for name in ("created_at", "updated_at")}
    return frame.assign(**times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", help="name of one source")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for source in read_sources():
        if chosen.only in {None, source["name"]}:
            frame = shape(source, chosen.folder)
            path = chosen.out / source["split"] / f"{source['name']}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            frame.to_json(path, orient="records", lines=True, force_ascii=False)
            print(f"{source['split']:8} {source['kind']:8} {source['name']:22} {len(frame):5}")


if __name__ == "__main__":
    main()

"""Writing back: only what was decided changes in a file, and reading it again gives exactly that."""

# ruff: noqa: E501 - tables of files, a line each

import hashlib
import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memframe.archive.notes import digest_content
from memframe.readers import read_input
from memframe.readers.edits import (
    apply_edits,
    edit_documents,
    explain_undeletable,
    explain_unwritable,
    find_misread,
    find_writable,
)
from memframe.readers.rows import Collector
from memframe.readers.source import open_path
from tests.conftest import FEW_EXAMPLES
from tests.test_readers import SHAPES, file_of

NOW = pd.Timestamp("2026-06-01", tz="UTC").to_pydatetime()

MARKDOWN = """\
\ufeff# Ada
Some prose,
of two lines.

- Likes tea  \r
  - green
  - sencha
* [x] Rows
1. [2024-05-01] - Swims

## Rules:
- never `push`
  ```
  # not a heading
  ```

The end."""
HERMES = "Likes tea\n\u00a7\nRows\non Sunday\n\u00a7\nSwims"
NOTE = "---\ntitle: Tea\ntags: [a]\n---\n\n- [fact] Likes tea #green (since 2019)\n- [fact] Rows\n\nProse\n"
PRETTY = json.dumps(
    {"record_count": 3, "kind": "x", "records": [{"memory": f"Text {n} \u00e9", "hash": "h", "user_id": "u", "k": [n]} for n in range(3)]},
    indent=2,
)  # fmt: skip
FILES = {
    "note.md": MARKDOWN,
    "hermes.md": HERMES,
    "tea.md": NOTE,
    "records.json": PRETTY,
    "prose.md": "# Only\n\nprose\nhere\n",
    **{f"{shape[0]}.file": shape[1] for shape in SHAPES},
}


def reading_of(path):
    return read_input(open_path(path), "auto", now=NOW)


def is_editable(reading, row):
    place = reading.places[row]
    return "content" in place.columns and not explain_undeletable(place)


WRITABLE = {
    "note.md", "hermes.md", "tea.md", "records.json", "prose.md",
    *(f"{name}.file" for name in (
        "mem0 platform", "mem0 get_all", "mem0 list", "mem0 points", "mem0 migration", "mem0 plugin", "pasted", "langgraph",
        "graphiti", "mcp lines", "mcp one line", "mcp-memory-service", "supermemory", "pam", "basic-memory note", "json list",
        "json lines", "json list of texts", "json lists by subject", "json list of summaries", "mcp observations as objects",
        "mcp with a type of its own", "mcp with a loose text", "mem0 with a time of another name", "open webui", "a second list",
        "a profile", "a profile of keys and values", "a profile of single values", "entries under names of their own",
        "another list in a known format", "lines as ChatGPT's page has them", "dates without brackets",
        *(f"lines of ChatGPT's page {how}" for how in ("about a name", "without a subject", "in other languages")),
        "bullets within bullets", "hermes", "own download", "nothing", "csv", "csv with semicolons", "parquet",
    )),
}  # fmt: skip


def test_which_files_can_be_written_back(tmp_path):
    found = set()
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(file_of(content))
        if not explain_unwritable(reading_of(tmp_path / name)):
            found.add(name)
    assert found == WRITABLE


TEXTS = st.sampled_from(
    ["Other", "Two\nlines", "# Heading", "- bullet", "---", '"quoted" \\ back', "\u00e9\U0001f600", "\u00a7", "1. one", "{", "a: b",
     "[2024-05-01] - dated", "```", "x\n\ny", "  indented", "trailing  ", "`tick`\n- deep\n  - deeper", "[fact] one #tag (ctx)", "*"]
) | st.text(min_size=1, max_size=12)  # fmt: skip


@pytest.fixture
def reading(tmp_path, name):
    """A file as it was read, once for all plans."""
    (tmp_path / name).write_bytes(file_of(FILES[name]))
    return reading_of(tmp_path / name)


@pytest.mark.parametrize("name", sorted(WRITABLE))
@given(data=st.data())
@FEW_EXAMPLES
def test_a_random_plan_changes_its_spans_alone_and_is_read_as_it_says(tmp_path, reading, name, data):
    rows = [row for row in range(len(reading.places)) if is_editable(reading, row)]
    assert edit_documents(reading, {}, set()) == []
    deleted = data.draw(st.sets(st.sampled_from(rows))) if rows else set()
    texts = data.draw(st.dictionaries(st.sampled_from(rows), TEXTS)) if rows else {}
    changed = {row: {"content": text} for row, text in texts.items() if row not in deleted}
    while changed or deleted:
        edited = edit_documents(reading, changed, deleted)
        odd = find_misread(reading, edited, changed, deleted, Collector(None, NOW))
        if odd is None:
            break
        changed.pop(odd, None)
        deleted.discard(odd)
    else:
        return
    (each,) = edited
    if each.original.table is None:
        text = file_of(FILES[name]).decode("utf-8-sig")
        assert each.data == each.document.begin + apply_edits(text, each.edits).encode()
        n_kept = len(text) - sum(edit.end - edit.start for edit in each.edits)
        assert len(each.data.decode("utf-8-sig")) == n_kept + sum(len(edit.text) for edit in each.edits)
    left = [row for row in range(len(reading.places)) if row not in deleted]
    path = tmp_path / name
    path.write_bytes(each.data)
    source, form = open_path(path), reading.form
    if left and (
        form.matches(source.documents[0]) or form.name == "pasted"
    ):  # else too little is left to tell
        wanted = [changed.get(row, {}).get("content", reading.frame["content"][row]) for row in left]
        again = read_input(source, form.name, now=NOW).frame["content"].tolist()
        assert again == wanted or (form.name == "markdown" and len(again) == 1)  # a list without its bullets


def edited(tmp_path, name, content, changed, deleted=(), column="content"):
    """The new text of a file; what cannot be read again as it was decided is no text."""
    (tmp_path / name).write_bytes(content.encode())
    reading = reading_of(tmp_path / name)
    texts = {row: {column: text} for row, text in changed.items()}
    (each,) = edit_documents(reading, texts, {*deleted})
    odd = find_misread(reading, [each], texts, {*deleted}, Collector(None, NOW))
    return each.data.decode() if odd is None else None


BULLETS = "# A\n\n- one\n  - deep\n\n- two\n\n- three\n"
EDITS = [
    # file, content, new texts by row, deleted rows, and the new content
    ("a.md", BULLETS, {0: "one\n- other"}, [], "# A\n\n- one\n  - other\n\n- two\n\n- three\n"),
    ("a.md", BULLETS, {1: "two\nlines"}, [], "# A\n\n- one\n  - deep\n\n- two\n  lines\n\n- three\n"),
    ("a.md", BULLETS, {0: "one"}, [1], "# A\n\n- one\n\n- three\n"),
    ("a.md", BULLETS, {}, [0, 2], "# A\n\n- two\n"),
    ("a.md", BULLETS, {1: "# no heading"}, [], "# A\n\n- one\n  - deep\n\n- # no heading\n\n- three\n"),
    ("a.md", BULLETS, {1: "a\n\n\nb"}, [], "# A\n\n- one\n  - deep\n\n- a\n\n\n  b\n\n- three\n"),
    ("a.md", BULLETS.replace("\n", "\r\n"), {1: "two\nlines"}, [0], "# A\r\n\r\n- two\r\n  lines\r\n\r\n- three\r\n"),
    ("a.md", "- a\n\nprose\n\n- b", {1: "# Title"}, [], None),
    ("a.md", "- a\n\nprose\n\n- b", {1: "- item"}, [], None),
    ("a.md", "- a\n\nprose\n\n- b", {1: "x\n\ny"}, [], None),
    ("a.md", "- a\n\nprose\n\n- b", {}, [2], "- a\n\nprose\n"),
    ("n.md", "---\ntitle: x\n---\n- [fact] a #t\n- [fact] b\n", {0: "c #t"}, [1], "---\ntitle: x\n---\n- [fact] c #t\n"),
    ("n.md", "---\ntitle: x\n---\nOne:\n- a\n- b\n", {0: "One:\n- a\n- c"}, [], "---\ntitle: x\n---\nOne:\n- a\n- c\n"),
    ("h.txt", "a\n\u00a7\nb\n\u00a7\nc\n", {0: "x\ny"}, [2], "x\ny\n\u00a7\nb\n"),
    ("h.txt", "a\n\u00a7\nb\n\u00a7\nc\n", {1: "\u00a7"}, [], None),
    ("a.jsonl", '{"content": "a", "x": 1.50}\n\n{"content":"b"}\n{"content": "c"}', {0: 'q"\n'}, [1],
     '{"content": "q\\"\\n", "x": 1.50}\n\n{"content": "c"}'),
    ("a.jsonl", '{"content": "a"}\n{"content":"b"}', {}, [1], '{"content": "a"}'),
    ("a.jsonl", '{"content": "a"}\n{"content":"b"}', {}, [0, 1], ""),
    ("a.csv", "k;content\r\n1;a\r\n\r\n2;\"b\"\"\"\r\n3;c", {0: "x;y", 1: "d"}, [2], 'k;content\r\n1;"x;y"\r\n\r\n2;"d"\r\n'),
    ("a.csv", "content,k\n'=a,1\n\u200b=b,2\n", {0: "'=c"}, [], "content,k\n'=c,1\n\u200b=b,2\n"),
    ("a.csv", "content,k\n'=a,1\n\u200b=b,2\n", {1: "=b"}, [], None),
    ("a.json", '[ "a",\n  "b", "c" ]', {}, [0], '[ "b", "c" ]'),
    ("a.json", '[ "a",\n  "b", "c" ]', {}, [0, 1], '[ "c" ]'),
    ("a.json", '[ "a",\n  "b", "c" ]', {}, [1, 2], '[ "a" ]'),
    ("a.json", '[ "a",\n  "b", "c" ]', {}, [0, 2], '[ "b" ]'),
    ("a.json", '["a", "b\\u00e9"]', {0: "\u00e4"}, [], '["\\u00e4", "b\\u00e9"]'),
    ("a.json", '["a", "b\u00e9"]', {0: "\u00e4"}, [], '["\u00e4", "b\u00e9"]'),
    ("m.jsonl", '{"type":"entity","name":"Ada","entityType":"p","observations":["a", "b"]}', {1: "c"}, [0],
     '{"type":"entity","name":"Ada","entityType":"p","observations":["c"]}'),
    ("c.json", '{"count": 2, "next": null, "previous": null, "results": [{"memory": "a", "hash": "x"}, {"memory": "b"}]}', {}, [1],
     '{"count": 1, "next": null, "previous": null, "results": [{"memory": "a", "hash": "x"}]}'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "changed", "deleted", "wanted"), EDITS)
def test_what_stands_around_a_change_stays(tmp_path, name, content, changed, deleted, wanted):
    assert edited(tmp_path, name, content, changed, deleted) == wanted


def test_only_cells_and_rows_that_were_decided_change_in_parquet(tmp_path):
    rows = {"content": ["a", None, "b\u2028\n", "c"], "n": [1.5, None, 3, 4], "vector": [[0.5] * 40] * 4}
    frame = pd.DataFrame(rows, index=pd.Index(["w", "x", "y", "z"], name="key")).astype(
        {"content": "category"}
    )
    frame.to_parquet(tmp_path / "a.parquet")
    reading = reading_of(tmp_path / "a.parquet")
    (each,) = edit_documents(reading, {1: {"content": "c"}}, {0})
    assert find_misread(reading, [each], {1: {"content": "c"}}, {0}, Collector(None, NOW)) is None
    (tmp_path / "b.parquet").write_bytes(each.data)
    wanted = frame.iloc[1:].astype({"content": "str"})
    wanted.loc["y", "content"] = "c"
    found = pd.read_parquet(tmp_path / "b.parquet")
    assert found["content"].dtype == "category"
    pd.testing.assert_frame_equal(found.astype({"content": "str"}), wanted)


def test_a_digest_that_was_right_is_right_again(tmp_path):
    for digest in (
        lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
        lambda text: hashlib.sha256(text.encode()).hexdigest(),
        digest_content,
    ):
        entries = [
            {"content": "Old", "content_hash": digest("Old"), "own": "Old"},
            {"content": "b", "hash": "odd"},
        ]
        found = json.loads(edited(tmp_path, "a.json", json.dumps(entries), {0: "New", 1: "c"}))
        assert found == [
            {"content": "New", "content_hash": digest("New"), "own": "Old"}, {"content": "c", "hash": "odd"}
        ]  # fmt: skip


TITLES = [
    # file, content, new titles by row, deleted rows, and the new content
    ("a.json", '[{"title": "A", "content": "a"}]', {0: "B"}, [], '[{"title": "B", "content": "a"}]'),
    ("a.md", "# A #\r\n- a\r\n- b\r\n\r\nRules:\r\n- c\r\n", {0: "B", 1: "B", 2: "C"}, [], "# B #\r\n- a\r\n- b\r\n\r\nC:\r\n- c\r\n"),
    ("a.md", "# A\n- a\n- b\n", {0: "B"}, [1], "# B\n- a\n"),
    ("a.md", "# A\n- a\n", {0: "B\n- c"}, [], None),
    ("a.md", "# A\n[2024-05-01] - a\n[2024-05-01] - b\n", {0: "B", 1: "B"}, [], "# B\n[2024-05-01] - a\n[2024-05-01] - b\n"),
    ("a.md", "---\r\nx: \u00e9\U0001f600\r\ntitle: 'A'\r\ntags: [a]\r\n---\r\nText\r\n", {0: 'B: "c" # d'}, [],
     '---\r\nx: \u00e9\U0001f600\r\ntitle: "B: \\"c\\" # d"\r\ntags: [a]\r\n---\r\nText\r\n'),
    ("a.md", "---\ntitle: A\n---\n- [fact] a\n- [fact] b\n", {0: "B\n---", 1: "B\n---"}, [],
     '---\ntitle: "B\\n---"\n---\n- [fact] a\n- [fact] b\n'),
    ("a.md", "---\ntitle: |\n  A\n  b\nx: 1\n---\nText\n", {0: "B"}, [], '---\ntitle: "B"\nx: 1\n---\nText\n'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "changed", "deleted", "wanted"), TITLES)
def test_titles_change_where_they_stand(tmp_path, name, content, changed, deleted, wanted):
    assert edited(tmp_path, name, content, changed, deleted, column="title") == wanted


def test_a_title_that_others_keep_is_not_written(tmp_path):
    for name, text in (
        ("a.md", "# A\n- a\n- b\n"),
        ("m.jsonl", '{"name": "Ada", "entityType": "p", "observations": ["a"]}'),
    ):
        (tmp_path / name).write_text(text)
        texts = {0: {"title": "B", "content": "c"}}
        assert find_writable(reading_of(tmp_path / name), texts, set()) == {0: ["content"]}
    assert find_writable(reading_of(tmp_path / "a.md"), texts, {1}) == {0: ["title", "content"]}


def test_a_single_entry_that_is_the_whole_file_is_not_deleted(tmp_path):
    (tmp_path / "a.json").write_text('{"content": "a"}')
    assert "no entry that is this memory alone" in explain_undeletable(
        reading_of(tmp_path / "a.json").places[0]
    )


def test_a_note_that_is_one_memory_goes_as_a_whole(tmp_path):
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("---\ntitle: x\n---\nSame\n")
    reading = reading_of(tmp_path)
    (each,) = edit_documents(reading, {}, {1})
    assert (each.document.name, each.is_removed) == ("b.md", True)
    assert find_misread(reading, [each], {}, {1}, Collector(None, NOW)) is None


def test_all_but_one_of_many_entries_can_go(tmp_path):
    for name, line in (("a.jsonl", '{"content": "x%d"}\n'), ("a.md", "- x%d\n"), ("a.json", '"x%d",\n')):
        body = "".join(line % n for n in range(5_000))
        (tmp_path / name).write_text(f"[{body}0]" if name == "a.json" else body)
        reading = reading_of(tmp_path / name)
        deleted = {row for row in range(5_000) if row != 7}
        (each,) = edit_documents(reading, {}, deleted)
        assert find_misread(reading, [each], {}, deleted, Collector(None, NOW)) is None
        assert len(each.data) < 40

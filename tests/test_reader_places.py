"""Places: each memory of a file knows the line and the characters that it came from, and notes are read by bullets."""

import csv
import io
import json
import warnings
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memframe as mf
from memframe.readers import read_input
from memframe.readers.places import Lines, Node, Original, find_spans, unquote_cell
from memframe.readers.source import decode_document, open_path, open_text
from tests.test_readers import SHAPES, file_of

PLACELESS = {"chatgpt", "mem0-markdown", "download"}
"""Formats whose texts are put together, so that no span is theirs."""


def read_at(given):
    return read_input(open_path(given) if isinstance(given, Path) else open_text(given), "auto")


def text_at(at, spans):
    if isinstance(at, Lines):
        return "\n".join(at.original.text[start:end] for start, end in at.spans)
    cell = at.original.text[slice(*spans[at.path])]
    return unquote_cell(cell) if at.original.separator else json.loads(cell)


@pytest.mark.parametrize("shape", SHAPES, ids=[shape[0] for shape in SHAPES])
def test_what_stands_at_a_place_is_the_text(tmp_path, shape):
    path = tmp_path / "anything"
    path.write_bytes(file_of(shape[1]))
    reading = read_at(path)
    contents = reading.frame["content"].tolist()
    assert len(reading.places) == len(contents)
    n_placed = 0
    for place, content, line in zip(reading.places, contents, reading.frame["line"], strict=True):
        if place.at is None:
            assert line is pd.NA
            continue
        n_placed += 1
        paths = [at.path for at in place.columns.values() if isinstance(at, Node)]
        spans = find_spans(place.original, paths) if paths else {}
        assert text_at(place.at, spans) == content
        if place.original.table is not None:
            assert line is pd.NA
            continue
        start = spans[place.at.path][0] if paths else place.at.spans[0][0]
        assert line == 1 + place.original.text.count("\n", 0, start)
    if reading.form.name not in PLACELESS and contents and not contents[-1].startswith("{"):
        assert n_placed == len(contents)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def paths_of(value, path=()):
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths_of(each, (*path, key))


CELLS = st.text(st.sampled_from('a,;"\r\n\t =\u2028'), max_size=5)


@given(rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=4), data=st.data())
def test_every_cell_of_a_table_is_found_by_its_path(rows, data):
    separator, end = data.draw(st.sampled_from(",;\t")), data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    file = io.StringIO()
    quoting = data.draw(st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
    csv.writer(file, delimiter=separator, lineterminator=end, quoting=quoting).writerow(["content", "b", "c"])
    for row in rows:
        file.write(end * data.draw(st.integers(0, 1)))  # blank lines are no rows
        csv.writer(file, delimiter=separator, lineterminator=end, quoting=quoting).writerow(row)
    text = file.getvalue()[: -len(end) if rows and data.draw(st.booleans()) else None]
    document = decode_document(text.encode(), "a.csv")
    cells = {cell.at.path: cell for row in document.value if isinstance(row, dict) for cell in row.values()}
    spans = find_spans(document.original, cells)
    assert {path: text_at(cell.at, spans) for path, cell in cells.items()} == cells
    is_quoted = end != "\r" and not any("\r" in cell for row in rows for cell in row)  # else `csv` may not
    assert len(cells) == 3 * len(rows) or not is_quoted
    assert all(text[spans[number,][0] - 1] in "\r\n" for number, _ in cells)


@given(value=st.lists(JSONS) | st.dictionaries(st.text(max_size=4), JSONS), data=st.data())
def test_every_value_of_json_is_found_by_its_path(value, data):
    text = json.dumps(
        value, indent=data.draw(st.sampled_from([None, 1, "\t"])), ensure_ascii=data.draw(st.booleans())
    )
    paths = [*paths_of(value)]
    spans = find_spans(Original(text), paths)
    assert spans.keys() == {*paths}
    for path in paths:
        found = value
        for key in path:
            found = found[key]
        assert json.loads(text[slice(*spans[path])]) == found


NOTES = [
    # a note, and of each memory its line, title and content
    ("# Food\r\n\r\n- Likes tea\r\n  - green\r\n    - sencha\r\n\r\n* Hates soup\r\n",
     [(3, "Food", "Likes tea\n- green\n  - sencha"), (7, "Food", "Hates soup")]),
    ("# A\n1. One\n2. Two\n   goes on\nlazily\n\n## B ##\nProse here,\nand there.\n\nMore.\n",
     [(2, "A", "One"), (3, "A", "Two\ngoes on\nlazily"), (8, "B", "Prose here,\nand there."), (11, "B", "More.")]),
    ("- a\n\n  second paragraph of a\n\n- b\n---\n- c\n",
     [(1, None, "a\n\nsecond paragraph of a"), (5, None, "b"), (7, None, "c")]),
    ("Rules:\n- use tabs\n\n**Never**:\n\n- push\n\nText.\n- free\n",
     [(2, "Rules", "use tabs"), (6, "Never", "push"), (8, None, "Text."), (9, None, "free")]),
    ("- run this:\n  ```sh\n  # no heading\n\n  - no bullet\n  ```\n- next\n",
     [(1, None, "run this:\n```sh\n# no heading\n\n- no bullet\n```"), (7, None, "next")]),
    ("- a\n```\n# b\n- c\n```\n", [(1, None, "a\n```\n# b\n- c\n```")]),
    ("- a\n```\n\n# B\n- c\n", [(1, None, "a\n```"), (5, "B", "c")]),
    ("- [x] bought milk\n- [ ] buy tea\n- [Site](http://x.de) is slow\n",
     [(1, None, "[x] bought milk"), (2, None, "[ ] buy tea"), (3, None, "[Site](http://x.de) is slow")]),
    ("Intro is long,\nand no lead:\n- a\n+ b\n",
     [(1, None, "Intro is long,\nand no lead:"), (3, None, "a"), (4, None, "b")]),
    ("| a | b |\n|---|---|\n| 1 | 2 |\n\n- x\n", [(1, None, "| a | b |\n|---|---|\n| 1 | 2 |"), (5, None, "x")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), NOTES)
def test_bullets_and_paragraphs_of_a_note_are_memories_of_their_own(tmp_path, text, expected):
    path = tmp_path / "MEMORY.md"
    path.write_bytes(text.encode())
    frame = mf.read_memories(path, format="markdown")
    found = zip(frame["line"], frame["title"].replace("MEMORY", None), frame["content"], strict=True)
    assert [(line, None if pd.isna(title) else title, content) for line, title, content in found] == expected


def test_dates_of_lines_and_headings_are_when_a_bullet_was_written(tmp_path):
    path = tmp_path / "2024-05-03.md"
    path.write_text(
        "- free\n# 2024-05-01\n- Likes tea\nSome prose.\n# Else\n- [2024-05-02]: Rows\n\n2024-05-04: Swims\n"
    )
    frame = mf.read_memories(path, format="markdown")
    assert frame["created_at"].dt.strftime("%d").tolist() == ["03", "01", "02", "04"]
    assert frame["content"].tolist() == ["free", "Likes tea\nSome prose.", "Rows", "Swims"]


def test_a_note_with_frontmatter_or_without_a_bullet_is_one_memory(tmp_path):
    for text in ("---\ntitle: Tea\n---\n- green\n- black\n", "# Tea\n\nGreen.\n\nBlack.\n"):
        (tmp_path / "a.md").write_text(text)
        assert len(mf.read_memories(tmp_path / "a.md")) == 1


def test_observations_and_relations_are_read_without_frontmatter_too(tmp_path):
    (tmp_path / "a.md").write_text(
        "# Tea\n- [fact] Likes it #green (since 2019)\n- from [[China]]\n- In a tin\n"
    )
    with pytest.warns(UserWarning, match=r"relation \(1, first at line 3"):
        frame = mf.read_memories(tmp_path / "a.md")
    assert frame["content"].tolist() == ["Likes it #green", "In a tin"]
    assert frame["tags"].tolist() == [("fact", "green"), ()]
    assert frame["context"].tolist()[0] == "since 2019"


def test_file_and_line_of_each_memory_of_a_folder(tmp_path):
    (tmp_path / "a.md").write_text("---\ntitle: x\n---\n\nLikes tea")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.md").write_text("\ufeff# Rows\n- on Sunday\n", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = mf.read_memories(tmp_path)
    assert frame[["file", "line"]].values.tolist() == [["a.md", 5], ["b/c.md", 2]]
    audit = mf.audit_memories(frame)
    assert audit.memories[["file", "line"]].equals(frame[["file", "line"]])
    mf.export_memories(frame, tmp_path / "out.parquet")

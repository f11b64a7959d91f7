"""Frames that nobody edited plan nothing, wherever they have been; what was edited is planned to the cell."""

import pickle
import warnings
from contextlib import closing
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest

import memframe as mf
from memframe.plan.edited_frame import EditedFrame, RowErrors, find_edits
from memframe.sample import load_sample
from memframe.wire import GET_MEMORY, LIST_MEMORIES
from tests.conftest import User
from tests.faults import FaultProxy
from tests.plan.conftest import picture_of, sent, with_cells


def through_parquet(memories, folder):
    memories.to_parquet(folder / "memories.parquet")
    return pd.read_parquet(folder / "memories.parquet")


def through_arrow(memories, folder):
    memories.to_parquet(folder / "memories.parquet")
    return pd.read_parquet(folder / "memories.parquet", dtype_backend="pyarrow")


def through_archive(extension):
    def through(memories, folder):
        mf.export_memories(memories, folder / f"memories{extension}")
        return mf.load_archive(folder / f"memories{extension}")

    return through


def through_file(name, *changes, **options):
    """A file that pandas wrote after some changes, as `memframe plan` and a script read it."""

    def through(memories, folder):
        for change in changes:
            memories = change(memories)
        write = {
            "mine.parquet": memories.to_parquet,
            "mine.csv": memories.to_csv,
            "mine.jsonl": memories.to_json,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of times as numbers
            write[name](folder / name, **options)
        return mf.load_archive(folder / name)

    return through


LINES = {"orient": "records", "lines": True}


def through_read_json(memories, folder):
    memories.to_json(folder / "mine.jsonl", **LINES, date_format="iso")
    return pd.read_json(folder / "mine.jsonl", lines=True)


def regrouped(memories, folder):
    columns = [name for name in memories.columns if name not in {"id", "tags"}]
    grouped = memories.explode("tags").groupby("id", as_index=False, sort=True)
    return grouped.agg(dict.fromkeys(columns, "first") | {"tags": list})


ROADS = {
    "nowhere": lambda memories, folder: memories,
    "filtered": lambda memories, folder: memories[memories.importance > 0.5],
    "shuffled": lambda memories, folder: memories.sample(frac=1, random_state=1, ignore_index=True),
    "the id as index beside the column": lambda memories, folder: memories.set_index("id", drop=False),
    "some columns": lambda memories, folder: memories[["importance", "id"]],
    "no rows": lambda memories, folder: memories.head(0),
    "more columns": lambda memories, folder: memories.assign(n_chars=memories.content.str.len(), note="x"),
    "concatenated": lambda memories, folder: pd.concat([memories[40:], memories[:40]]),
    "exploded and grouped again": regrouped,
    "Parquet": through_parquet,
    "Parquet to Arrow dtypes": through_arrow,
    "our Parquet": through_archive(".parquet"),
    "our JSON Lines": through_archive(".jsonl"),
    "JSON that pandas reads": through_read_json,
    "our CSV": through_archive(".csv"),
    "a Parquet of pandas, sorted": through_file("mine.parquet", lambda m: m.sort_values("content")),
    "a Parquet of pandas, by id": through_file("mine.parquet", lambda m: m.set_index("id")),
    "a CSV of pandas": through_file("mine.csv", lambda m: m.sample(frac=1, random_state=1)),
    "a CSV of pandas, by id": through_file("mine.csv", lambda m: m.set_index("id")),
    "a CSV of pandas without its index": through_file("mine.csv", index=False),
    "JSON Lines of pandas": through_file("mine.jsonl", date_format="iso", date_unit="us", **LINES),
    "JSON Lines of pandas, times as numbers": through_file("mine.jsonl", **LINES),
    "pickle": lambda memories, folder: pickle.loads(pickle.dumps(memories)),  # noqa: S301 - it is our own
    "records": lambda memories, folder: pd.DataFrame(memories.to_dict("records")),
    "nullable dtypes": lambda memories, folder: memories.convert_dtypes(),
    "Arrow dtypes": lambda memories, folder: memories.convert_dtypes(dtype_backend="pyarrow"),
    "objects with None": lambda memories, folder: memories.astype(object).where(memories.notna(), None),
    "categories": lambda memories, folder: memories.astype({"source": "category", "title": "category"}),
    "fewer bits": lambda memories, folder: memories.astype(
        {"importance": "float32", "confidence": "float32"}
    ),
    "tags as lists": lambda memories, folder: memories.assign(tags=memories.tags.map(list)),
    "tags as arrays": lambda memories, folder: memories.assign(tags=memories.tags.map(np.array)),
    "tags as sets": lambda memories, folder: memories.assign(tags=memories.tags.map(set)),
    "tags backwards and twice": lambda memories, folder: memories.assign(
        tags=memories.tags.map(lambda tags: [*reversed(tags), *tags])
    ),
    "no tags as missing": lambda memories, folder: memories.assign(
        tags=memories.tags.map(lambda tags: tags or None)
    ),
    "times elsewhere": lambda memories, folder: memories.assign(
        updated_at=memories.updated_at.dt.tz_convert("Asia/Kolkata")
    ),
    "times to the nanosecond": lambda memories, folder: memories.assign(
        updated_at=memories.updated_at.dt.as_unit("ns"), created_at=memories.created_at.astype(str)
    ),
}


WHOLE = [road for road in ROADS if road not in {"some columns", "no rows", "fewer bits"}]


@pytest.fixture(scope="module")
def watched(service):
    """An access through a proxy that records requests, and the loaded sample."""
    with closing(User(service, f"{uuid4()}@example.org")) as user, FaultProxy(service.base_url) as proxy:
        service.import_memories(user.user_id, load_sample()[:100])
        request = user.ask()
        service.decide(request.id, "approved")
        client = mf.connect(proxy.base_url, api_key=service.api_key)
        access = mf.open_access(client, request.id)
        yield access, mf.load_memories(access, progress=False), proxy


@pytest.mark.parametrize("road", ROADS)
def test_a_frame_that_was_only_moved_about_plans_nothing_and_asks_nothing(watched, tmp_path, road):
    access, memories, proxy = watched
    moved = ROADS[road](memories, tmp_path)
    n_before = len(proxy.requests)
    before = picture_of(moved)
    plan = mf.plan_changes(access, moved)
    assert len(plan) == 0
    assert not plan
    assert len(proxy.requests) == n_before
    assert picture_of(moved) == before


CELLS = {"title": "Another title", "tags": ("another",), "importance": 0.75}


@pytest.mark.parametrize("road", WHOLE)
def test_edited_cells_are_the_whole_plan_whichever_way_the_frame_has_gone(watched, tmp_path, road):
    access, memories, _ = watched
    edited = ROADS[road](memories, tmp_path).copy()
    for place, (name, cell) in enumerate(CELLS.items()):
        column = edited[name].astype(object)
        column.iloc[place] = cell
        edited[name] = column
    plan = mf.plan_changes(access, edited)
    assert [change.id for change in plan.records] == edited.id.to_list()[:3]
    assert [change.after for change in plan.records] == [{name: cell} for name, cell in CELLS.items()]
    loaded = memories.set_index("id")
    for change, label in zip(plan.records, edited.index, strict=False):
        ((name, before),) = change.before.items()
        was = loaded.loc[change.id, name]
        assert before == (was if name == "tags" or pd.notna(was) else None)
        assert change.row in {label, str(label)}


def test_rows_that_differ_are_read_again_and_no_others(watched):
    access, memories, proxy = watched
    edited = memories.copy()
    edited.loc[[3, 7], "title"] = "new"
    n_read, n_listed = (len(proxy.requests_to(endpoint)) for endpoint in (GET_MEMORY, LIST_MEMORIES))
    assert set(sent(mf.plan_changes(access, edited))) == {3, 7}
    assert len(proxy.requests_to(GET_MEMORY)) == n_read + 2
    edited.loc[50:80, "title"] = "new"
    assert len(mf.plan_changes(access, edited)) == 33
    assert len(proxy.requests_to(GET_MEMORY)) == n_read + 2
    assert len(proxy.requests_to(LIST_MEMORIES)) == n_listed + 1


def test_every_field_is_planned_to_the_cell(writers):
    cells = {
        "title": "Green tea",
        "summary": "What Ada likes",
        "content": "Ada likes green tea.",
        "tags": ("drinks",),
        "importance": 5,
        "confidence": 1,
        "source": "mail",
    }
    for name, cell in cells.items():
        assert sent(writers.plan(writers.edited(**{name: cell}))) == {"a": {name: cell}}
    assert sent(writers.plan(writers.edited(**cells))) == {"a": cells}


def test_text_is_compared_to_the_letter(writers):
    assert sent(writers.plan(with_cells(writers.memories, "c", content="Zoe\u0308 schläft, 猫も。"))) == {
        "c": {"content": "Zoe\u0308 schläft, 猫も。"}
    }
    assert sent(writers.plan(writers.edited(title="Tea "))) == {"a": {"title": "Tea "}}
    assert sent(writers.plan(writers.edited(title=""))) == {"a": {"title": ""}}


def test_an_edit_in_place_of_the_loaded_frame_is_seen(writers):
    writers.memories.loc["a", "title"] = "Coffee"
    assert sent(writers.plan(writers.memories)) == {"a": {"title": "Coffee"}}


def test_tags_are_sent_once_each_without_blanks_in_the_order_given(writers):
    plan = writers.plan(writers.edited(tags=[" zoo ", "food", "zoo", "food"]))
    assert sent(plan) == {"a": {"tags": ("zoo", "food")}}
    assert len(writers.plan(writers.edited(tags=["home ", "food"]))) == 0


def test_fewer_bits_do_not_become_more_digits(writers):
    edited = writers.memories.astype({"importance": "float32"})
    edited.loc["a", "importance"] = 0.3
    assert sent(writers.plan(edited)) == {"a": {"importance": 0.3}}


@pytest.mark.parametrize("was_loaded", [True, False])
def test_scores_may_be_cut_to_ten_decimals_as_pandas_writes_json(writers, was_loaded):
    writers.theirs(0, confidence=1 / 3)
    memories = writers.load()
    access = writers.access if was_loaded else writers.stranger()

    def at(n_decimals):
        return memories.assign(confidence=memories.confidence.round(n_decimals))

    assert sent(mf.plan_changes(access, at(10))) == {}
    assert sent(mf.plan_changes(access, at(9))) == {"a": {"confidence": 0.333333333}}


def test_times_of_the_service_in_the_wrong_order_are_no_edit(writers):
    memories = writers.memories
    states = memories.assign(created_at=memories["updated_at"] + pd.Timedelta(days=1))
    assert find_edits(EditedFrame(states), states, RowErrors()) == []
    edited = states.assign(title="edited")
    assert len(find_edits(EditedFrame(edited), states, RowErrors())) == len(states)

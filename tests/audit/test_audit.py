"""The audit as a whole: what it returns, what it writes, and what nobody may read in any of it."""

import html
import json
import re
import stat
import string

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import memframe as mf
from memframe.audit import (
    CHECKS,
    SEVERITIES,
    Audit,
    Comparison,
    find_scores,
    find_sealed,
    find_tags,
)
from memframe.audit.findings import DTYPES
from memframe.cli import main
from memframe.errors import ConfigError, FrameError
from memframe.frames import MEMORY_KINDS, FrameBuilder
from memframe.report.words import CHECK_WORDS
from tests.conftest import FEW_EXAMPLES
from tests.rows import sample_frame


@pytest.fixture(scope="module")
def sample():
    return sample_frame()


@pytest.fixture(scope="module")
def audit(sample):
    return mf.audit_memories(sample)


@pytest.fixture(scope="module")
def files(audit, tmp_path_factory):
    """The folder of what it writes."""
    folder = tmp_path_factory.mktemp("audit")
    audit.to_html(folder / "audit.html")
    audit.to_json(folder / "audit.json")
    return folder


def rows(*contents, **columns):
    ids = [f"m{place}" for place in range(len(contents))]
    return pd.DataFrame({"id": ids, "content": list(contents)} | columns)


def test_findings_have_the_same_columns_always(audit):
    for found in (
        audit.findings,
        mf.audit_memories(rows()).findings,
        mf.audit_memories(rows("Likes tea")).findings,
    ):
        assert dict(found.dtypes.astype(str)) == dict(DTYPES)
    assert audit.findings["score"].between(0, 1).all()
    assert set(audit.findings["check"]) <= set(CHECKS)
    assert audit.findings["severity"].map(SEVERITIES.index).is_monotonic_decreasing  # the worst comes first


def test_rows_and_groups_are_of_one_check(audit):
    for check in CHECKS:
        found = audit.findings[audit.findings["check"] == check]
        each = audit.by_memory[audit.by_memory["check"] == check]
        assert set(audit.rows(check)["id"]) == set(each["id"]) >= set(found["id"].dropna())
        groups = audit.groups(check)
        assert groups["n_memories"].is_monotonic_decreasing
        assert groups["n_memories"].tolist() == groups["ids"].map(len).tolist()
    with pytest.raises(ConfigError, match="there is exact_duplicate"):
        audit.rows("duplicates")


def test_what_comes_in_is_not_changed(sample):
    some = sample.head(60)
    before = some.copy(deep=True)
    mf.audit_memories(some)
    pd.testing.assert_frame_equal(some, before)


def test_a_frame_without_memories_has_no_findings():
    audit = mf.audit_memories(FrameBuilder(MEMORY_KINDS).frame())
    assert audit.findings.empty
    assert audit.summary.empty
    assert "There are no memories" in audit._repr_html_()


@pytest.mark.parametrize(
    "columns", [[], ["created_at"], ["updated_at", "tags"], ["title", "source", "importance"]]
)
def test_a_frame_with_few_columns_is_audited_and_the_others_named(sample, columns):
    audit = mf.audit_memories(sample[["id", "content", *columns]].head(20))
    absent = next(said for said in audit.not_checked if said.startswith("Columns"))
    assert {name for name in ("title", "summary", "tags", "source", "created_at") if name in absent} == (
        {"title", "summary", "tags", "source", "created_at"} - set(columns)
    )
    assert audit._repr_html_()


@pytest.mark.parametrize(
    "frame", [None, [], pd.DataFrame({"id": ["m1"]}), pd.DataFrame({"content": ["tea"]})]
)
def test_what_is_no_frame_of_memories_is_refused(frame):
    with pytest.raises(FrameError):
        mf.audit_memories(frame)


@pytest.mark.parametrize("checks", ["secret", ["secrets"], {"secrets": find_scores}])
def test_checks_that_are_none_are_refused(checks):
    with pytest.raises(ConfigError):
        mf.audit_memories(rows("Likes tea"), checks=checks)


def shouting(memories):
    found = memories[memories["content"].str.isupper()]
    return pd.DataFrame({"id": found["id"], "evidence": found["content"]})


def test_a_check_of_ones_own_has_its_place_in_every_output(tmp_path):
    memories = rows("LIKES TEA", "likes milk", "THE PIN OF THE CARD IS 4711")
    audit = mf.audit_memories(memories, checks=["secret", shouting])
    found = audit.findings[audit.findings["check"] == "shouting"]
    assert found[["id", "kind", "severity", "action"]].values.tolist() == [
        ["m0", "shouting", "low", "review"],
        ["m2", "shouting", "low", "review"],
    ]
    assert audit.rows("shouting")["id"].tolist() == ["m0", "m2"]
    assert audit.summary["check"].tolist() == ["secret", "shouting"]
    assert not found["evidence"].str.contains("4711").any()
    audit.to_html(tmp_path / "audit.html")
    audit.to_json(tmp_path / "audit.json")
    assert "Shouting" in (tmp_path / "audit.html").read_text("utf-8")
    assert audit.compare(tmp_path / "audit.json").new.empty


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "a frame with a column 'id'"),
        (pd.DataFrame({"kind": ["x"]}), "a frame with a column 'id'"),
        (pd.DataFrame({"id": ["m9"]}), "an id that no memory has"),
        (pd.DataFrame({"id": ["m0"], "remark": ["x"]}), "the column 'remark'"),
        (pd.DataFrame({"id": ["m0"], "severity": ["awful"]}), "severity='awful'"),
        (pd.DataFrame({"id": ["m0"], "action": ["delete"]}), "action='delete'"),
    ],
)
def test_a_check_of_ones_own_that_returns_no_findings_is_refused(found, message):
    def own(_):
        return found

    with pytest.raises(ConfigError, match=f"'own'.*{message}"):
        mf.audit_memories(rows("Likes tea"), checks=[own])


def test_a_function_without_a_name_of_its_own_is_no_check():
    with pytest.raises(ConfigError, match="needs a name"):
        mf.audit_memories(rows("Likes tea"), checks=[lambda memories: memories])


def test_what_was_not_looked_for_is_said():
    memories = rows("Likes tea", None, content_error=[None, "wrong key, or changed after it was sealed"])
    memories.attrs["memframe"] = {"complete": False}
    said = " ".join(mf.audit_memories(memories, checks=["secret", "personal_data"]).not_checked)
    for words in (
        "not run: exact_duplicate",
        "Names and postal addresses",
        "could not be opened",
        "beyond the limit",
    ):
        assert words in said
    assert "not run" not in " ".join(mf.audit_memories(memories).not_checked)


# One number for one thing, in memories


def numbers_of(text, pattern):
    """The numbers that a text gives, by check."""
    titles = {words.title: check for check, words in CHECK_WORDS.items()}
    found = re.findall(pattern, text)
    return {titles[title]: int(n.replace(",", "")) for title, n in found if title in titles}


def test_every_output_gives_the_same_number_of_memories_for_a_check(audit, files, sample, tmp_path):
    listed = audit.findings.groupby("check")["id"].nunique()
    n_of = {check: int(n) for check, n in listed.items() if n}  # without figures, which are sentences
    cell, last = r"<td class=['\"]n[^>]*>[\d,]*</td>", r"<td class=['\"]n['\"]>"
    row = rf"<tr><td>(?:<a [^>]*>)?([^<]+)(?:</a>)?</td>(?:{cell})*?{last}([\d,]+)</td>{last}[^<]*%"
    assert numbers_of((files / "audit.html").read_text(), row) == n_of
    assert numbers_of(audit._repr_html_(), row) == n_of
    summed = audit.summary.groupby("check")["n_memories"].sum()
    assert summed.to_dict() == {check: len(audit.rows(check)) for check in summed.index}

    mf.export_memories(sample, tmp_path / "memories.parquet")
    told = CliRunner().invoke(main, ["audit", "--archive", str(tmp_path / "memories.parquet")]).output
    assert numbers_of(told, r"(?m)^([A-Z][a-z ]+?) +([\d,]+) +\S+ \d* ?%") == n_of

    said = {}
    for sentence in audit.verdict:
        n, words = re.match(r"([\d,]+) memor\w+ \([^)]*\) ([^:]*?)[:.]", sentence).groups()
        said |= {check: int(n) for check, one in CHECK_WORDS.items() if words in (one.one, one.many)}
    assert len(said) == len(audit.verdict) > 5
    assert said.items() <= n_of.items()

    ax = mf.plot.findings(audit)
    drawn = [int(text.get_text().replace(",", "")) for text in ax.texts]
    bars = [tick.get_text().replace(" ", "_") for tick in ax.get_yticklabels()]
    assert dict(zip(bars, drawn, strict=True)) == n_of


def test_a_report_says_and_draws_what_is_to_be_decided_alone(tmp_path):
    texts = ["Call the vet on Friday.", "Ada lives in Leeds.", "Ada no longer lives in Leeds.", "Likes tea."]
    days = pd.to_datetime(["2026-03-02", "2026-03-02", "2026-03-05", "2026-03-05"], utc=True)
    frame = pd.DataFrame({"id": ["a", "b", "c", "d"], "content": texts}, columns=list(MEMORY_KINDS))
    frame = frame.assign(created_at=days, updated_at=days)
    audit = mf.audit_memories(frame, now=pd.Timestamp("2026-11-01", tz="UTC"))
    assert audit.verdict == [
        "2 memories (50 %) have older or newer versions.",
        "1 memory (25 %) may be out of date.",
    ]
    alone = mf.audit_memories(frame.iloc[:1], now=pd.Timestamp("2026-11-01", tz="UTC"))
    for one, n_pictures in ((audit, 3), (alone, 1)):
        one.to_html(tmp_path / f"{n_pictures}.html")
        assert (tmp_path / f"{n_pictures}.html").read_text("utf-8").count("<svg") == n_pictures


def test_severities_count_each_memory_once(audit):
    worst = audit.findings["severity"].map(SEVERITIES.index).groupby(audit.findings["id"]).max()
    expected = ", ".join(
        f"{(worst == rank).sum():,} {name}" for rank, name in reversed([*enumerate(SEVERITIES)])
    )
    assert repr(audit) == f"<memframe.Audit of 389 memories: {expected}>"
    sums = sum(int(said.rpartition(" ")[2]) for said in audit.proposals)
    actionable = audit.by_memory[audit.by_memory["action"] != "none"]
    assert sums == actionable["id"].nunique()


def test_each_source_counts_its_memories_by_their_worst_finding(audit, files, sample):
    by_source = audit.by_source.set_index("source")
    assert by_source["n_memories"].to_dict() == sample["source"].value_counts().to_dict()
    assert by_source[[*reversed(SEVERITIES)]].sum(axis=1).equals(by_source["n_found"])
    found = audit.findings[audit.findings["severity"] == "high"]
    high = sample["source"][sample["id"].isin(found["id"])].value_counts()
    assert by_source["high"][by_source["high"] > 0].to_dict() == high.to_dict()
    assert by_source["high"].is_monotonic_decreasing
    assert "By source" in (files / "audit.html").read_text("utf-8")


def test_a_memory_without_a_source_is_counted_and_a_frame_without_sources_has_none():
    memories = pd.DataFrame({"id": ["m1", "m2"], "content": ["Door code: 2580#", "Likes tea"]})
    assert mf.audit_memories(memories, checks=["secret"]).by_source.empty
    audit = mf.audit_memories(memories.assign(source=["chat", None]), checks=["secret"])
    assert audit.by_source[["n_memories", "n_found", "high"]].to_numpy().tolist() == [[1, 1, 1], [1, 0, 0]]
    assert audit.by_source["source"].isna().tolist() == [False, True]
    assert "(no source)" in audit.html()


def test_empty_fields_and_old_memories_are_figures_and_their_rows_are_still_there():
    old = ["2019-01-01T00:00:00Z"] * 3 + ["2026-01-01T00:00:00Z"]
    memories = rows(*"abcd", title=["A", None, None, None], created_at=old, updated_at=old)
    options = {"checks": ["missing", "stale"], "now": pd.Timestamp("2026-06-01")}
    audit = mf.audit_memories(memories, **options)
    assert audit.findings[["kind", "score", "action"]].values.tolist() == [
        ["title", 0.75, "none"],
        ["never_updated", 0.75, "none"],
    ]
    assert audit.findings["id"].isna().all()
    assert audit.findings["evidence"].tolist() == [
        "3 of 4 memories: no title",
        "3 of 4 memories: older than 730 days and never changed",
    ]
    assert audit.rows("missing")["id"].tolist() == ["m1", "m2", "m3"]
    assert audit.rows("stale")["id"].tolist() == ["m0", "m1", "m2"]
    fewer = mf.audit_memories(memories.head(3), **options).compare(audit)
    assert (len(fewer.new), len(fewer.gone), len(fewer.stayed)) == (0, 0, 2)


# Files and comparisons


def test_a_page_says_whose_memories_which_service_and_when_and_names_each(tmp_path):
    memories = rows(
        "Door code: 2580#",
        "Ada moves house tomorrow, with all of her things and both of the cats, and nobody knows how the piano goes",
        "The safe of the shop opens as it always does, Friday",
        "Ada moves house tomorrow",
        title=[None, None, None, "Piano"],
        user_id="4f0c-whole",
        created_at="2025-03-04T10:00:00Z",
    ).assign(id=[f"5f0c9b1e-0000-4000-8000-00000000000{n}" for n in range(4)])
    memories.attrs["memframe"] = {"base_url": "https://memory.example.org/api/v1"}
    audit = mf.audit_memories(memories, now=pd.Timestamp("2026-06-01T12:30:00Z"))
    audit.to_html(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    for shown in (page, audit._repr_html_()):
        for words in ("user 4f0c-whole at https://memory.example.org/api/v1", "1 June 2026, 12:30 UTC"):
            assert words in shown
    for name in (
        "2025-03-04 Door code: (5 characters) <code>5f0c9b1e-0000-4000-8000-000000000000</code>",
        "2025-03-04 Ada moves house tomorrow, with all of her things and both of the cats,… <code>",
        "2025-03-04 Piano <code>5f0c9b1e-0000-4000-8000-000000000003</code>",
    ):
        assert name in page
    assert "2580" not in page
    targets = re.findall(r'href="#(\w+)"', page)
    assert len(targets) > 1
    assert set(targets) == set(re.findall(r'<h2 id="(\w+)"', page))


def test_a_page_shows_the_words_around_a_secret_and_masks_all_that_is_secret_or_personal_among_them():
    long = "all of the cats and the piano go first, " * 3
    audit = mf.audit_memories(
        rows(
            "In the old flat, VM password: Xk%9wQe!mvSG42 and mail to ada@lovelace.name, says Ada",
            f"{long}then the door opens with the code 77801# at night",
            "The PIN of the card is 2580,\nand the wifi password is Hunter2!xy",
        )
    )
    page = audit.html()
    for quote in (
        "In the old flat, VM password: Xk… (14 characters) and mail to ad… (17 characters), says Ada",
        "… and the piano go first, then the door opens with the code (6 characters) at night",
        "The PIN of the card is (4 characters), and the wifi password is (10 characters)",
    ):
        assert f'<div class="soft">{quote}</div>' in page
    for secret in ("wQe", "lovelace", "2580", "Hunter2", "778"):
        assert secret not in page


def test_a_text_that_speaks_of_a_secret_that_was_not_found_is_no_name(tmp_path):
    audit = mf.audit_memories(
        rows("the combination is the year of the wedding, tomorrow", created_at="2025-03-04")
    )
    assert audit.findings["kind"].isin(["expired"]).any()
    audit.to_html(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    assert "wedding" not in page
    assert "not shown, as it speaks of a secret" in page


def test_findings_of_a_file_join_with_the_memories_of_the_audit(tmp_path):
    (tmp_path / "notes.md").write_text("- Likes tea\n- Lives in Lyon\n- Likes tea\n")
    memories = mf.read_memories(tmp_path / "notes.md")
    audit = mf.audit_memories(memories, checks=["exact_duplicate"])
    joined = audit.findings.merge(audit.memories, on="id")
    assert sorted(joined["line"]) == [1, 3]
    assert audit.memories.index.equals(memories.index)


def test_findings_beyond_those_on_the_page_are_where_the_page_says(audit, files, tmp_path):
    page = (files / "audit.html").read_text()
    n_more = [int(n) for n in re.findall(r"and (\d+) findings? more: <code>audit.to_json\(path\)", page)]
    by_check = page[page.index('<h2 id="') :]  # behind those to begin with
    n_rows = by_check.count("<tr><td class=")
    shown = audit.listed.groupby("check").head(20)
    assert n_rows == len(shown)
    n_counted = by_check[by_check.index("<h2>Counted") :].count("<li>")
    assert (
        shown["n_times"].sum() + sum(n_more) + n_counted
        == len(audit.findings)
        == len(json.loads((files / "audit.json").read_bytes())["findings"])
    )


def test_files_are_for_their_owner_alone_and_whole(audit, files, tmp_path):
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.iterdir()} == {0o600}
    saved = json.loads((files / "audit.json").read_bytes())
    assert len(saved["findings"]) == len(audit.findings)
    with pytest.raises(FrameError, match="cannot be written"):
        audit.to_html(tmp_path / "no" / "such" / "folder.html")


def test_an_audit_compares_with_itself_and_with_its_file(audit, files):
    for previous in (audit, files / "audit.json", str(files / "audit.json")):
        comparison = audit.compare(previous)
        assert isinstance(comparison, Comparison)
        assert len(comparison.stayed) == len(audit.findings)
        assert comparison.new.empty
        assert comparison.gone.empty


def test_a_comparison_says_what_came_and_went():
    earlier = mf.audit_memories(rows("PIN 4711", "Likes tea"), checks=["secret"])
    later = mf.audit_memories(rows("Likes coffee", "Door code: 2580#"), checks=["secret"])
    comparison = later.compare(earlier)
    assert comparison.new["id"].tolist() == ["m1"]
    assert comparison.gone["id"].tolist() == ["m0"]


@pytest.mark.parametrize(
    "text", [b"", b"{}", b'{"format": "memframe-audit/9"}', b"\xff\xfe", b'{"a":' * 100_000]
)
def test_another_file_is_no_audit(audit, tmp_path, text):
    (tmp_path / "other").write_bytes(text)
    with pytest.raises(FrameError):
        audit.compare(tmp_path / "other")
    with pytest.raises(FrameError, match="cannot be read"):
        audit.compare(tmp_path / "absent")


def test_a_page_loads_nothing_and_runs_nothing(files):
    page = (files / "audit.html").read_text()
    assert "default-src 'none'" in html.unescape(page)
    for word in ("<script", "<link", "http://", "https://", "onload", "javascript:"):
        assert word not in page.replace("http://www.w3.org", "")
    assert "Not looked for" in page


def test_a_page_holds_what_memories_say_as_plain_text(tmp_path):
    hostile = "<script>alert(1)</script> HEARTBEAT_OK <img src=x onerror=alert(1)>"
    audit = mf.audit_memories(rows(*[hostile] * 9).assign(id=[f"<i>{n}</i>" for n in range(9)]))
    audit.to_html(tmp_path / "audit.html")
    for shown in ((tmp_path / "audit.html").read_text(), audit._repr_html_()):
        assert "<script>alert" not in shown
        assert "<img" not in shown
        assert "<i>0" not in shown


def test_a_page_of_ten_thousand_memories_is_small(audit, tmp_path):
    many = Audit(
        memories=pd.concat([audit.memories] * 26, ignore_index=True),
        findings=pd.concat([audit.findings] * 26, ignore_index=True),
        checks=audit.checks,
        not_checked=audit.not_checked,
    )
    many.to_html(tmp_path / "audit.html")
    assert (tmp_path / "audit.html").stat().st_size < 300_000


# Secrets stay in the memories


LETTERS = st.text(string.ascii_letters, min_size=3, max_size=6)
DIGITS = st.permutations("9371846520").map("".join)
SECRETS = st.one_of(
    st.tuples(LETTERS, st.sampled_from("!#$%&*+?@_"), DIGITS.map(lambda text: text[:4]), LETTERS).map(
        "".join
    ),
    DIGITS.map(lambda text: text[:7]),
    st.tuples(DIGITS, DIGITS, st.permutations("ABCDefghIJKLmnop").map("".join))
    .map("".join)
    .map("ghp_{}".format),
)


def written(audit, path):
    """Everything that an audit shows or writes."""
    audit.to_html(path / "audit.html")
    audit.to_json(path / "audit.json")
    frames = [
        audit.findings,
        audit.summary,
        *(audit.groups(check) for check in CHECKS),
        *audit.compare(audit),
    ]
    shown = [frame.to_csv() + repr(frame) for frame in frames]
    files = [(path / name).read_text("utf-8") for name in ("audit.html", "audit.json")]
    return "\n".join(
        [repr(audit), audit._repr_html_(), *audit.not_checked, repr(audit.compare(audit)), *files, *shown]
    )


@given(secret=SECRETS)
@FEW_EXAMPLES
def test_no_output_holds_the_secret(tmp_path_factory, secret):
    told = f"The wifi password is {secret}"
    around = (told, told, f"{told} ", told.upper(), f"Memory stored: {told}", f"{told}, since 2024")
    assigned = [f"Password: {secret}"] * 6
    memories = rows(
        *around,
        *assigned,
        title=assigned * 2,
        tags=[(f"password: {secret}",), (f"Password: {secret}",)] * 6,
        source=["chat"] * 12,
    )
    audit = mf.audit_memories(memories)
    assert "secret" in set(audit.findings["check"])
    everything = written(audit, tmp_path_factory.mktemp("audit"))
    assert secret not in everything
    assert secret.upper() not in everything


# Scores, tags, sealed, missing


def test_importance_on_two_scales_is_told_and_brought_to_one():
    memories = rows(*"abcdef", importance=[0.2, 0.9, 1.0, 2.0, 5.0, np.nan])
    found = find_scores(memories)
    assert found[["kind", "id", "action"]].values.tolist() == [
        ["mixed_scale", "m3", "rescale"],
        ["mixed_scale", "m4", "rescale"],
    ]
    assert found["evidence"].str.endswith((": 0.4", ": 1")).all()
    assert set(find_scores(rows(*"abc", importance=[1.0, 3.0, 5.0]))["kind"]) == {"scale_1_to_5"}
    assert find_scores(rows(*"abc", importance=[0.0, 0.5, 1.0])).empty


@pytest.mark.parametrize(
    ("field", "value"), [("importance", -0.1), ("importance", 5.1), ("confidence", 1.1), ("confidence", -1)]
)
def test_scores_that_cannot_be_are_named(field, value):
    found = find_scores(rows("a", "b", **{field: [0.5, value]}))
    assert found[["kind", "id", "field"]].values.tolist() == [["out_of_range", "m1", field]]


def test_a_confidence_that_never_changes_tells_nothing():
    memories = rows(
        *["x"] * 20,
        confidence=[0.9] * 10 + [0.1 * (n % 9) for n in range(10)],
        source=["a"] * 10 + ["b"] * 10,
    )
    found = find_scores(memories)
    assert set(found["kind"]) == {"constant_confidence"}
    assert set(found["id"]) == {f"m{n}" for n in range(10)}


def test_names_of_tags_that_mean_the_same_are_brought_together():
    cells = [("recipe",)] * 3 + [("Recipes",), ("café",), ("cafe",), ("cafe",), ("q1-2024",), ("q2-2024",)]
    found = find_tags(rows(*"abcdefghi", tags=cells))
    assert found[["id", "kind", "action"]].values.tolist() == [
        ["m3", "near_identical", "retag"],
        ["m4", "near_identical", "retag"],
    ]


def test_tags_are_compared_with_the_list_of_the_user():
    tags = pd.DataFrame({"name": ["work", "old", "unused"], "is_enabled": [True, False, True]})
    found = find_tags(rows(*"abc", tags=[("work",), ("old",), ("nowhere",)]), tags)
    assert dict(zip(found["kind"], found["id"].fillna(""), strict=True)) == {
        "disabled": "m1",
        "unknown": "m2",
        "unused": "",
    }


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("sealed with key_version 1, these credentials hold 2", "key_version"),
        ("a lone surrogate was replaced", "surrogate"),
        ("sealed as AES-CBC iv:ct, which does not show changes", "layout"),
        ("wrong key, or changed after it was sealed", "undecryptable"),
    ],
)
def test_content_that_could_not_be_opened_is_told_by_its_cause(error, kind):
    found = find_sealed(rows(None, "tea", content_error=[error, None]))
    assert found[["kind", "id"]].values.tolist() == [[kind, "m0"]]


def test_what_is_closed_is_not_missing():
    memories = rows(None, None, "  ", content_error=["wrong key", None, None])
    found = mf.audit_memories(memories, checks=["missing"]).findings
    assert found[["kind", "evidence"]].values.tolist() == [["content", "2 of 3 memories: no content"]]

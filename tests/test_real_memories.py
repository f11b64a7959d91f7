"""Real memories: how sources are shaped, and the arithmetic of what the audit proposes about them."""

import doctest
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import ablation  # noqa: E402 - a benchmark, not a package
import audit_history  # noqa: E402 - likewise
import audit_real  # noqa: E402 - likewise
import real_memories  # noqa: E402 - likewise

NAME = "ada/notes"
FILES = {
    "memory/2026-03-01.md": "# 1 March\n\n## Decided\n- Invoices leave on Fridays\n\n## Learned 2026-02-28\nTea helps.",
    "MEMORY.md": "<!-- none -->\n# Preferences:\n- Likes strong tea\n  in the morning\n- No e-mail on Sundays\n\nShort",
    "feedback_tests.md": "---\nname: Tests first\ntype: feedback\n---\nWrite the test before the code.",
    "graph.jsonl": json.dumps({"name": "Ada", "observations": ["Rides to work by bicycle", "Likes"]}),
    "records.json": json.dumps({"kept": [{"said": "Moved to Lisbon", "on": "2026-01-05", "who": "bo"}]}),
}


@pytest.fixture
def repository(tmp_path):
    """A folder of bare repositories as the fetching program leaves it, with the commit of its only one."""
    work = tmp_path / "work"
    for path, text in FILES.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(text, "utf-8")
    who = ("-c", "user.name=ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        ("commit", "-q", "-m", "notes", "--date=2026-04-01T00:00:00Z"),
    ):
        real_memories.run_git("-C", str(work), *who, *arguments)
    bare = tmp_path / "bare" / NAME.replace("/", "+")
    real_memories.run_git("clone", "-q", "--bare", str(work), str(bare))
    return bare.parent, real_memories.run_git("-C", str(work), "rev-parse", "HEAD").strip()


def shaped(repository, shape, files, **options):
    folder, commit = repository
    place = {"name": NAME, "commit": commit, "files": files}
    source = {"name": "notes", "shape": shape, "most": 50, "dated": False, "repositories": [place], **options}
    return real_memories.shape(source, folder)


RECORDS = {"below": ["kept"], "text": ["said"], "time": "on", "person": "who"}
WRITTEN = [
    # shape, files, options, contents with their times
    ("sections", "memory/*.md", {}, [("Decided\n- Invoices leave on Fridays", "2026-03-01T00:00:00Z"),
                                     ("Learned 2026-02-28\nTea helps.", "2026-02-28T00:00:00Z")]),
    ("bullets", "MEMORY.md", {"most": 2}, [("Preferences: Likes strong tea\n  in the morning", None),
                                           ("Preferences: No e-mail on Sundays", None)]),
    ("whole", "feedback_*.md", {}, [("Write the test before the code.", None)]),
    ("graph", "graph.jsonl", {}, [("Ada: Rides to work by bicycle", None)]),
    ("records", "records.json", RECORDS, [("Moved to Lisbon", "2026-01-05T00:00:00Z")]),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "file", "options", "expected"), WRITTEN)
def test_files_of_a_repository_become_memories(repository, shape, file, options, expected):
    frame = shaped(repository, shape, [file], **options)
    assert [(row.content, row.created_at) for row in frame.itertuples()] == expected
    assert frame["id"].is_unique
    assert set(frame["source"]) == {"notes"}


def test_a_repository_that_is_not_there_is_cloned(repository, tmp_path, monkeypatch):
    folder, commit = repository
    hub = tmp_path / "hub" / NAME
    hub.parent.mkdir(parents=True)
    (folder / NAME.replace("/", "+")).rename(hub)
    real_memories.run_git("-C", str(hub), "config", "uploadpack.allowFilter", "true")
    settings = {
        "COUNT": "1",
        "KEY_0": f"url.file://{tmp_path / 'hub'}/.insteadOf",
        "VALUE_0": "https://github.com/",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    assert len(shaped((tmp_path / "new", commit), "whole", ["feedback_*.md"])) == 1
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "url.file:///nowhere/.insteadOf")
    with pytest.raises(SystemExit, match=r"git clone .*ada/notes"):
        shaped((tmp_path / "other", commit), "whole", ["feedback_*.md"])


STATES = [
    ["**Invoices:** leave on Friday evenings by post to the old office", "Likes strong tea in the morning"],
    ["**Invoices:** leave on Monday evenings by train to the new office", "Likes strong tea in the morning"],
    ["**Invoices:** leave on Monday evenings by train to the new office"],
]


@pytest.fixture
def history(tmp_path, monkeypatch):
    """A folder with one repository, in which a commit rewrites a line of a memory file and the next removes one."""
    work = tmp_path / "histories" / "ada+memory"
    work.mkdir(parents=True)
    who = ("-c", "user.name=ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    real_memories.run_git("-C", str(work), "init", "-q")
    for day, lines in enumerate(STATES, 1):
        (work / "MEMORY.md").write_text("# Work\n\n" + "".join(f"- {line}\n" for line in lines), "utf-8")
        real_memories.run_git("-C", str(work), "add", "-A")
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"2026-04-0{day}T00:00:00Z")
        real_memories.run_git("-C", str(work), *who, "commit", "-qm", "notes")
    return work.parent


def test_a_history_says_what_its_owner_removed_and_wrote_anew(history):
    found = audit_history.read_history(history / "ada+memory")
    text_of = found.memories.set_index("id")["content"]
    assert {text_of[one] for one in found.gone} == set(STATES[0])
    assert [(text_of[older], text_of[newer]) for older, newer in found.rewrites] == [
        (STATES[0][0], STATES[1][0])
    ]
    assert found.memories["created_at"].dt.day.tolist() == [1, 1, 2]


@pytest.fixture
def printed(monkeypatch, capsys):
    """Runs a benchmark, and returns the lines that it has printed."""

    def printed(benchmark, *arguments):
        monkeypatch.setattr("sys.argv", [benchmark.__file__, *map(str, arguments)])
        benchmark.main()
        return capsys.readouterr().out.splitlines()

    return printed


def test_versions_are_compared_with_the_history(history, tmp_path, printed):
    counts, sheet = audit_history.measure(audit_history.read_history(history / "ada+memory"))
    assert counts["rewrites"] == counts["value"] == counts["value gone"] == 1
    assert counts["rewrites as versions"] == counts["rewrites named"] == 1
    assert [one["kind"] for one in sheet] == ["value"]
    lines = printed(audit_history, history, "--only", "ada/memory", "--sheet", tmp_path / "sheet")
    assert "ada+memory" in "".join(lines)
    assert (tmp_path / "sheet").read_text("utf-8").count("\n") == 1


def test_every_source_can_be_read_and_none_is_in_both_splits():
    sources = real_memories.read_sources()
    splits = {}
    for source in sources:
        assert source["shape"] in real_memories.SHAPES
        for place in source["repositories"]:
            assert len(place["commit"]) == 40
            splits.setdefault(place["name"], set()).add(source["split"])
    assert {name for name, kinds in splits.items() if len(kinds) > 1} == set()
    n_whole = sum(source["memories"] for source in sources)
    assert n_whole >= 3_000
    assert max(source["memories"] for source in sources) <= n_whole / 5


CORPUS = {
    "learn/a.jsonl": [
        "The wifi password is Tr0ub4dor&3x",
        "Ring ada@lovelace.name about the loom",
        "Likes tea in the morning",
    ],
    "measure/b.jsonl": [
        "My door code is 4471, the password is xK9!vLq2",
        "Ring bo@boole.name about the loom",
    ],
}


@pytest.fixture
def corpus(tmp_path):
    for name, texts in CORPUS.items():
        path = tmp_path / name
        path.parent.mkdir()
        rows = [
            {"id": f"{name}{place}", "user_id": "u", "title": None, "content": text, "source": name}
            | {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}
            for place, text in enumerate(texts)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return tmp_path


def label_all(corpus, verdicts):
    """Labels for the proposals about the texts that begin so; each is a verdict of both readers."""
    lines = ["key,check,source,reader1,reader2"]
    for path in sorted(corpus.glob("*/*.jsonl")):
        memories = real_memories.read_frame(path)
        for row in audit_real.propose(memories).itertuples():
            for start, said in verdicts.items():
                if row.text.startswith(start):
                    lines.append(f"{row.key},{row.check},{path.stem},{said}")
        for text in memories["content"]:
            yes = "yes" if "password" in text or "morning" in text else "no"
            lines.append(f"{audit_real.key_of('has_secret', text)},has_secret,{path.stem},{yes},{yes}")
    path = corpus / "labels.csv"
    path.write_text("\n".join(dict.fromkeys(lines)) + "\n", "utf-8")
    return path


def test_proposals_are_counted_by_their_labels_and_the_rest_goes_to_a_sheet(corpus, printed):
    labels = label_all(corpus, {"The wifi": "right,right", "Ring ada": "right,wrong", "Ring bo": "right,"})
    options = ("--labels", labels, "--sheet", corpus / "sheet.jsonl")
    lines = [line.split() for line in printed(audit_real, corpus, *options)]
    of_all = ["personal_data", "5", "2", "2", "1", "0", "0.50"]
    assert of_all in lines  # where readers differ, it is not right
    assert ["personal_data", "learn", "3", "1", "1", "0", "0", "0.00"] in lines
    assert ["has_secret", "5", "3", "2", "0.67"] in lines  # a yes that no check finds is missed
    rows = [json.loads(line) for line in (corpus / "sheet.jsonl").read_text("utf-8").splitlines()]
    assert {row["source"] for row in rows} == {"b"}
    assert {row["check"] for row in rows} == {"secret"}
    assert ["personal_data", "1", "0.00", "0.00"] in lines
    assert ["has_secret", "5", "1.00", "1.00"] in lines


def test_a_wrong_merge_is_a_lost_fact():
    proposals = real_memories.pd.DataFrame({"key": ["k1", "k2"], "action": ["merge", "delete"]})
    labels = {"k1": audit_real.Verdict("wrong", ""), "k2": audit_real.Verdict("right", "right")}
    expected = {"proposals": 2, "labelled": 2, "right": 1, "lost": 1}
    assert audit_real.count_proposals(proposals, labels) == expected


def test_labels_are_hashes_with_verdicts():
    labels = audit_real.read_labels(audit_real.LABELS)
    checks = audit_real.read_checks(audit_real.LABELS)
    former = {name for names in audit_real.FORMER.values() for name in names}
    assert set(checks.values()) <= {*audit_real.CHECKS, *former, *audit_real.QUESTIONS}
    assert all(len(key) == 16 for key in labels)
    answers = {"yes", "no"}
    for key, verdict in labels.items():
        allowed = answers if checks[key] in audit_real.QUESTIONS else {"right", "wrong"}
        assert verdict.reader1 in allowed
        assert verdict.reader2 in {*allowed, ""}


TABLE = """
[define]
tea = "green tea, black tea"

[[rule]]
group = "drink"
pattern = '\\b{tea}\\b'
finds = ["Likes green tea."]
misses = ["Likes coffee."]
options = { read = "after", most = 3 }

[[rule]]
group = "drink"
words = "coffee"
finds = ["Likes coffee."]
misses = []

[[rule]]
group = "food"
words = "cake"
finds = ["Baked a cake."]
misses = []
"""


def test_each_rule_and_each_list_of_words_can_be_taken_away(tmp_path):
    (tmp_path / "junk_taste.toml").write_text(TABLE, "utf-8")
    (tmp_path / "secrets.txt").write_text("# words\n[places]\nlisbon\n[names]\nada\n", "utf-8")
    rules = list(ablation.parts_of(tmp_path, "rule"))
    assert [part.places for part in rules] == [(0,), (1,), (2,), (0,), (1,)]
    assert [part.checks for part in rules[::4]] == [("junk",), ("secret",)]
    groups = list(ablation.parts_of(tmp_path, "group"))
    ablation.silence(tmp_path / "junk_taste.toml", groups[0])
    ablation.silence(tmp_path / "secrets.txt", rules[-1])
    table = ablation.tomllib.loads((tmp_path / "junk_taste.toml").read_text("utf-8"))
    assert [rule.get("pattern", rule.get("words")) for rule in table["rule"]] == [ablation.NOTHING] * 2 + [
        "cake"
    ]
    assert table["rule"][0]["options"] == {"read": "after", "most": 3}
    assert table["define"] == {"tea": "green tea, black tea"}
    assert (tmp_path / "secrets.txt").read_text("utf-8") == "# words\n[places]\nlisbon\n[names]\n"


@pytest.mark.parametrize("module", [ablation, audit_real, real_memories])
def test_examples_run(module):
    tried = doctest.testmod(module)
    assert tried.attempted
    assert not tried.failed

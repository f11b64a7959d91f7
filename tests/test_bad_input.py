"""Whatever is wrong with what is set or passed, the error names thing, cause and next step, and no secret.

One case a line: what is wrong, and words that the message must have: the thing, the cause, the next step.
"""

import functools
import re
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import memframe as mf
from memframe import wire
from memframe.errors import MemframeError
from memframe.runtime import Runtime
from memframe.settings import Sources, find_client_settings, find_oauth_settings
from tests.clear_errors import Case, assert_clear, refused_setting
from tests.strangers import CREDENTIALS, SECRETS, USER_ID, client_of

KEY = SECRETS["api key"]
MEMORY_KEY = SECRETS["memory key"]
HTTPS = "https://api.example.com/api/v1"


# What the developer sets


def settings(base_url=HTTPS, api_key=KEY, **environ):
    return find_client_settings(base_url, api_key=api_key, sources=Sources(environ))


def variables(**environ):
    named = {f"MEMFRAME_{name.upper()}": text for name, text in environ.items()}
    return find_client_settings(
        sources=Sources({"MEMFRAME_API_KEY": KEY, "MEMFRAME_BASE_URL": HTTPS} | named)
    )


def oauth_variables(**environ):
    right = {
        "auth_url": "https://auth.example",
        "client_id": "app",
        "client_secret": SECRETS["client secret"],
    }
    named = {f"MEMFRAME_{name.upper()}": text for name, text in (right | environ).items()}
    return find_oauth_settings(sources=Sources(named))


SETTINGS = {
    "api key: quoted": (lambda: settings(api_key=f'"{KEY}"'), "api_key | quotation marks | leave them out"),
    "address: a password": (lambda: settings(f"https://me:{KEY}@x.com"), "base_url | broken host or port | write it"),
    "address: the key by mistake": (lambda: settings(KEY, KEY), "base_url | begin with https:// | give the whole"),
    "variable: base url": (lambda: variables(base_url="nonsense"), "MEMFRAME_BASE_URL | does not begin | give the"),
    "variable: empty base url": (lambda: variables(base_url=" "), "MEMFRAME_BASE_URL | is empty | unset it"),
    "variable: client secret": (
        lambda: oauth_variables(client_secret=f" {SECRETS['client secret']}"), "MEMFRAME_CLIENT_SECRET | blank | copy"
    ),
    "variable: redirect uri": (
        lambda: oauth_variables(redirect_uri="callback"), "MEMFRAME_REDIRECT_URI | does not begin | give the whole"
    ),
} | {
    f"lifetime: {value!r}": (
        lambda value=value: client_of(HTTPS, token_lifetime_s=value),
        re.escape(f"token_lifetime_s={value!r}") + " | whole seconds | or None",
    )
    for value in (0, "60", True)
}  # fmt: skip


@pytest.mark.parametrize("case", SETTINGS.values(), ids=SETTINGS)
def test_a_setting_that_is_refused(case):
    attempt, words = case
    assert_clear(refused_setting(attempt, *words.split(" | ")))


def test_a_line_end_after_a_key_is_dropped_and_the_address_has_one_spelling():
    found = settings("HTTPS://API.example.com:443/api/v1/", f"{KEY}\n")
    assert (found.base_url, found.api_key.reveal()) == (HTTPS, KEY)


# What is passed to a call: refused before anything is sent


def client_call(name, *args, **options):
    def attempt(stranger):
        with stranger.client() as client:
            try:
                getattr(client, name)(*args, **options)
            finally:
                assert not stranger.requests

    return attempt


def ask(memory_key):
    return client_call("create_access_request", memory_key, "why")


def create(**fields):
    return client_call("create_memory_blob", USER_ID, memory_key=MEMORY_KEY, **({"content": "x"} | fields))


def wait(**options):
    def attempt(stranger):
        client = stranger.client()
        client.runtime = Runtime(sleep=lambda seconds: pytest.fail("slept"))
        return mf.wait_for_decision(client, "r1", **({"timeout_s": 1} | options))

    return attempt


HALF = "\ud83d"


def get(memory_id):
    return client_call("memory_blob", USER_ID, memory_id)


def delete(memory_id, user_id=USER_ID):
    return client_call("delete_memory_blob", user_id, memory_id)


def find(**filters):
    return client_call("memory_blobs", USER_ID, **filters)


PASSED = {
    "id: empty": (get(""), "memory_id='' | not the id of anything | pass the id"),
    "id: two dots": (delete(".."), "memory_id='..' | not the id | pass the id"),
    "id: nan of a frame": (delete(float("nan")), "memory_id | text, not float | pass the id"),
    "id: half a surrogate pair": (get(HALF), "memory_id | not valid Unicode | correct"),
    "user: blank": (delete("m1", " "), "user_id=' ' | not the id | pass the id"),
    "filter: comma in a tag": (find(tags=["a,b"]), "tags | commas | leave it out"),
    "filter: no tag": (find(tags=[]), "tags | is empty | leave tags out"),
    "filter: a number as a tag": (find(tags=[1]), "tag name | not int | pass a str"),
    "filter: importance of 5": (find(min_importance=5), "min_importance=5 | outside 0 to 1 | pass"),
    "filter: search half a pair": (find(search=HALF), "search | not valid Unicode | correct"),
    "field: nan": (create(importance=float("nan")), "importance=nan | not a JSON number | or None to clear"),
    "field: tags as one text": (create(tags="work"), "tags | one text | pass a list"),
    "field: half a surrogate pair": (create(title=HALF), "title | not valid Unicode | correct"),
    "field: in a tag too": (create(tags=[HALF]), "tags | not valid Unicode | correct"),
    "field: an object": (create(source=object()), "type object | no form in JSON | pass text, numbers or None"),
    "memory key: empty": (ask(""), "memory_key | empty | pass it as the service gave it"),
    "memory key: broken": (ask(MEMORY_KEY + HALF), "memory_key | not Unicode | pass it"),
    "wait: nan seconds": (wait(timeout_s=float("nan")), "timeout_s=nan | give seconds from 0"),
    "wait: without a pause": (wait(poll_s=0), "poll_s=0 | give seconds above 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", PASSED.values(), ids=PASSED)
def test_what_is_passed_is_refused_before_anything_is_sent(case, stranger):
    attempt, words = case
    assert_clear(refused_setting(attempt, *words.split(" | ")), stranger)


def test_a_key_or_layout_of_an_access_is_refused_by_name(stranger):
    for options, kind, words in (
        ({"content_format": "rot13"}, mf.ConfigError, ("no content format 'rot13'", "there are memframe, ")),
        ({"write_format": "cbc-iv:ct"}, mf.ConfigError, ("cbc-iv:ct", "only be read", "write")),
        ({}, mf.SealError, ("encryption key", "63 characters, an odd number", "need 64 hexadecimal")),
    ):
        key = CREDENTIALS["encryption_key"][: None if options else 63]
        stranger.answer(wire.GET_CREDENTIALS, encryption_key=key)
        attempt = functools.partial(mf.open_access, stranger.client(), "r1", **options)
        assert_clear(Case(attempt, kind, ValueError, words))


def test_a_tilde_is_the_home_folder(access, tmp_path, monkeypatch):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(elsewhere)
    quiet = {"progress": False}
    first = pd.DataFrame({"content": ["Likes tea", "Likes tea"]})
    run = mf.push_memories(access, first, journal="~/run.journal", **quiet)
    assert run.journal == home / "run.journal"
    assert mf.resume_run(access, "~/run.journal", **quiet).counts["done"] == 2
    plan = mf.plan_undo(access, "~/run.journal")
    plan.save("~/undo.plan")
    assert mf.Plan.load("~/undo.plan") == plan
    mf.export_memories(access, "~/mine", sealed=True, **quiet)
    mf.refresh_archive(access, "~/mine", **quiet)
    (home / "list.txt").write_text("- Likes tea\n")
    assert len(mf.read_memories("~/list.txt")) == 1
    audit = mf.audit_memories(mf.load_archive("~/mine", key=access))
    audit.to_json("~/audit.json")
    audit.to_html("~/audit.html")
    assert len(audit.compare("~/audit.json").new) == 0
    assert len(mf.plan_cleanup(access, "~/audit.json")) == 1
    assert {path.name for path in home.iterdir()} >= {
        "run.journal", "undo.plan", "mine", "audit.json", "audit.html"
    }  # fmt: skip
    assert [*elsewhere.iterdir()] == []
    with pytest.raises(mf.JournalError, match="~nobody-of-that-name/x"):
        mf.plan_undo(access, "~nobody-of-that-name/x")


# What is passed in the place of something else


OTHERS = {
    "a client": lambda access: access.client,
    "an id": lambda access: access.request_id,
    "an access request": lambda access: access.client.access_request(access.request_id),
    "an access": lambda access: access,
    "a frame": lambda access: mf.load_memories(access, progress=False),
    "a frame of polars": lambda access: pl.DataFrame({"id": ["m1"], "content": ["tea"]}),
    "a mask": lambda access: mf.load_memories(access, progress=False).content == "tea",
    "records": lambda access: [{"id": "m1", "content": "tea"}],
    "a path": lambda access: Path("memories.parquet"),
    "a plan": lambda access: mf.plan_deletes(access, []),
    "a run": lambda access: mf.apply_plan(access, mf.plan_deletes(access, []), progress=False),
    "an audit": functools.cache(lambda access: mf.audit_memories(mf.load_memories(access, progress=False))),
    "nothing": lambda access: None,
}

NEW = pd.DataFrame({"content": ["tea"]})


def calls(*names, module=mf):
    """Calls with the odd thing as their first argument; behind a name stand the others."""
    named = [(name, ()) if isinstance(name, str) else (name[0], name[1:]) for name in names]
    return {
        name: lambda other, access, name=name, rest=rest: getattr(module, name)(other, *(
            part(access) if callable(part) else part for part in rest
        ))
        for name, rest in named
    }  # fmt: skip


def of_access(*names):
    """Calls with the odd thing behind the access."""
    return {name: lambda other, access, name=name: getattr(mf, name)(access, other) for name in names}


ACCESS = calls(
    "load_memories", "iter_memories", ("load_memory", "m1"), "load_tags", ("load_tag", "t1"), ("plan_changes", NEW),
    ("plan_deletes", ["m1"]), ("plan_cleanup", OTHERS["an audit"]), ("plan_undo", "run.journal"), "plan_reseal",
    ("apply_plan", OTHERS["a plan"]), ("resume_run", "run.journal"), ("push_memories", NEW), ("create_memories", NEW),
    ("update_memories", pd.DataFrame({"id": ["m1"]})), ("refresh_archive", "memories"),
)  # fmt: skip
CLIENT = calls(
    ("open_access", "r1"),
    "load_access_requests",
    "load_fleet",
    ("audit_fleet", "fleet"),
    ("export_fleet", "fleet"),
) | {"wait_for_decision": lambda other, access: mf.wait_for_decision(other, "r1", timeout_s=0)}
FRAME = (
    of_access("plan_changes", "push_memories", "create_memories", "update_memories")
    | calls("audit_memories")
    | calls("timeline", "tags", "sources", "scores", "lengths", "overview", module=mf.plot)
)
PLAN, RUN = of_access("apply_plan"), of_access("resume_run", "plan_undo")
AUDIT = of_access("plan_cleanup") | {
    "compare": lambda other, access: OTHERS["an audit"](access).compare(other)
}
DRAWN_AUDIT = calls("findings", "duplicates", module=mf.plot)
REQUEST = {"open_access": lambda other, access: mf.open_access(access.client, other)}
ENDS = (
    r"load_memories\(access\)|load_archive|pd\.DataFrame\(records\)|memories\[mask\]|\.to_pandas\(\)|"
    r"run\.outcomes|audit\.memories|plan\.changes"
)

WRONG = [
    (called, right, f"not {wanted}.*: .*({way})")
    for called, right, wanted, way in [
        (ACCESS, {"an access"}, "an Access", r"open_access\(client, request_id\)"),
        (CLIENT, {"a client"}, "a Client", r"connect\(\)"),
        (FRAME, {"a frame"}, "a pandas DataFrame", ENDS),
        (PLAN, {"a plan"}, "a Plan", r"plan_changes|Plan\.load"),
        (RUN, {"a run", "an id", "a path"}, "a Run, or the path", r"apply_plan\(access, plan\)"),
        (AUDIT, {"an audit", "an id", "a path"}, "an Audit, or the path", "audit_memories"),
        (DRAWN_AUDIT, {"an audit", "a frame"}, "an Audit", "audit_memories"),
        (REQUEST, {"an id", "an access request"}, "an AccessRequest or its id", "load_access_requests"),
    ]
]


@pytest.mark.parametrize(("called", "right", "says"), WRONG)
def test_an_argument_of_another_type_is_named_with_the_way_to_the_right_one(
    access, tmp_path, monkeypatch, called, right, says
):
    monkeypatch.chdir(tmp_path)
    others = {name: make(access) for name, make in OTHERS.items() if name not in right}
    for name, other in others.items():
        for title, call in called.items():
            with pytest.raises(MemframeError) as refused:
                call(other, access)
            assert re.search(says, str(refused.value)), (title, name)
    assert not any(tmp_path.iterdir())


TAKE_PATHS = {
    "read_memories": mf.read_memories,
    "load_archive": mf.load_archive,
    "Plan.load": mf.Plan.load,
    "list_snapshots": mf.list_snapshots,
    "export_memories": lambda path: mf.export_memories(pd.DataFrame(), path),
    "purge_runs": lambda path: mf.purge_runs(journals=[path]),
    "clean_file": mf.clean_file,
}


@pytest.mark.parametrize("name", TAKE_PATHS)
@pytest.mark.parametrize("path", [7, None, b"x", "a\0b", "~nobody-of-that-name/x", "a" * 300])
def test_what_is_no_path_is_refused_everywhere(name, path):
    with pytest.raises(MemframeError):
        TAKE_PATHS[name](path)


def test_a_request_opens_its_access(access):
    request = access.client.access_request(access.request_id)
    again = mf.open_access(access.client, request)
    assert (again.request_id, again.user_id) == (access.request_id, access.user_id)
    assert mf.wait_for_decision(access.client, request, timeout_s=0).status == "approved"


def test_a_frame_of_memories_is_no_audit(access):
    memories = mf.load_memories(access, progress=False)
    for draw in DRAWN_AUDIT.values():
        with pytest.raises(mf.FrameError, match=r"contains no findings: .*audit_memories\(memories\)"):
            draw(memories, access)

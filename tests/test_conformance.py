"""`memframe service check`: what it says of the embedded service, and of services that break the specification."""

import json
import re
import subprocess
import sys

import pandas as pd
import pytest

import memframe as mf
from memframe import wire
from memframe.conformance import REQUIREMENTS, Probe, check_service
from memframe.envelope import Envelope
from memframe.secret import Secret
from tests.canaries import found_in
from tests.cli.conftest import invoke
from tests.faults import answered, html, refused
from tests.faults import changed as changed_always
from tests.strangers import MEMORY, SECRETS, USER_ID, at_once

HEADINGS = {
    "Resources and their fields",
    "States and transitions",
    "Authentication",
    "Errors",
    "Limits",
    "Versioning",
    "POST {auth_url}/oauth/token",
}
"""Sections of the specification with requirements, besides its endpoints; of events it says nothing."""

STORE = pd.DataFrame(
    {
        "title": [f"Walk {n} along the river" for n in range(14)],
        "content": [f"Ada walked {n} miles." for n in range(14)],
        "summary": "A walk",
        "tags": [("rivers", "walks")] * 7 + [("walks",)] * 7,
        "importance": [n / 20 for n in range(14)],
        "confidence": 0.5,
    }
)

AUTHORIZED = {"oauth-exchange", "oauth-wrong-code", "approval", "request-created"}
"""Requirements that need a user who takes part."""


@pytest.fixture
def approved(service, own_user):
    """A user with memories, who has approved one request of a developer and not yet decided on another."""
    request = own_user.ask()
    own_user.service.decide(request.id, "approved")
    own_user.ask("a second one")
    own_user.service.import_memories(own_user.user_id, STORE)
    return own_user, request.id


def probe_of(user, request_id, url=None, **options):
    api_key = Secret(user.service.api_key)
    return Probe(url or user.service.base_url, api_key, request_id=request_id, transport=at_once(), **options)


def check(probe, **options):
    """The outcome of each requirement."""
    return {each.requirement.id: each.outcome for each in check_service(probe, **options)}


def failing(outcomes):
    return {name for name, outcome in outcomes.items() if outcome == "fails"}


def store_of(user, request_id):
    access = mf.open_access(user.client, request_id)
    memories = mf.load_memories(access, progress=False)
    return memories.assign(tags=memories["tags"].map(list)).to_dict("records"), mf.load_tags(access).to_dict(
        "records"
    )


def test_every_endpoint_and_section_of_the_specification_is_covered():
    def without_names(text):
        return re.sub(r"\{[a-zA-Z_]+\}", "{}", text)

    endpoints = {without_names(str(each)) for each in vars(wire).values() if isinstance(each, wire.Endpoint)}
    sections = {without_names(each.section) for each in REQUIREMENTS.values()}
    assert sections == endpoints | {without_names(each) for each in HEADINGS}
    assert {each.level for each in REQUIREMENTS.values()} == {"must", "needed", "free"}
    assert all(each.sentence and each.id == name for name, each in REQUIREMENTS.items())


def test_without_leave_to_write_a_service_is_only_read(approved, proxy):
    outcomes = check(probe_of(*approved, proxy.base_url))
    assert failing(outcomes) == set()
    calls = {request.method for request in proxy.requests if not request.path.endswith("/auth/token")}
    assert calls == {"GET"}
    not_tried = {name for name, outcome in outcomes.items() if outcome == "not tried"}
    writing = {"created", "created-is-read", "create-requires", "wrong-memory-key", "token-required-to-write"}
    patching = {"patch-keeps-others", "patch-replaces-tags", "patch-requires", "deleted"}
    assert not_tried == writing | patching | AUTHORIZED | {"tag-created", "foreign-request"}


def test_the_embedded_service_meets_every_requirement(service, approved, user, proxy):
    """Nothing is left untried, and the service is left as it was but for what the check names."""
    ours, request_id = approved
    before, tags_before = store_of(ours, request_id)
    flow = ours.flow()
    redirected = Secret(ours.person.authorize(flow.authorization_url()))
    asked = []

    def approve_second_read(request, forward):
        asked.append(request.path.rpartition("/")[2])
        if asked.count(asked[-1]) > 1 and ours.client.access_request(asked[-1]).status == "pending":
            ours.service.decide(asked[-1], "approved")
        return forward(request)

    proxy.always(wire.GET_REQUEST, approve_second_read)
    probe = probe_of(
        ours,
        request_id,
        proxy.base_url,
        other_request_id=user.ask().id,
        flow=flow,
        redirected=redirected,
        writes=True,
        new_tag="of the check",
        wait_s=30,
    )
    outcomes = check(probe)
    assert outcomes == {
        name: "found" if each.level == "free" else "holds" for name, each in REQUIREMENTS.items()
    }
    after, tags_after = store_of(ours, request_id)
    assert after == before
    assert [tag for tag in tags_after if tag["name"] != "of the check"] == tags_before
    assert [re.sub(r"[0-9a-f-]{36}", "ID", trace) for trace in probe.left_behind] == [
        "the access request ID stays: no call of the protocol withdraws one",
        "the tag of the check stays: no call of the protocol deletes one",
    ]


# Services that break the specification, each in several ways


def changed(change):
    """Like that of `tests.faults`, for successes alone."""

    def fault(request, forward):
        reply = forward(request)
        return changed_always(change)(request, lambda _: reply) if reply.status < 300 else reply

    return fault


def repeat_cursor(page):
    if page["next_cursor"] is not None:
        page["next_cursor"] = "the-same"


def without_cursor(request, forward):
    """A listing that takes its own odd cursor for none."""
    query = {name: text for name, text in request.query.items() if name != "cursor"}
    return changed(repeat_cursor)(request._replace(query=query), forward)


def with_query(**fixed):
    """A service that knows better than the query."""
    return lambda request, forward: forward(request._replace(query={**request.query, **fixed}))


def with_body(**fixed):
    def fault(request, forward):
        body = {**json.loads(request.body), **fixed}
        return forward(request._replace(body=json.dumps(body).encode()))

    return fault


def without_header(name):
    def fault(request, forward):
        reply = forward(request)
        kept = {each: text for each, text in reply.headers.items() if each.lower() != name}
        return reply._replace(headers=kept)

    return fault


def with_status(old, new):
    def fault(request, forward):
        reply = forward(request)
        return reply._replace(status=new) if reply.status == old else reply

    return fault


def first_in_plain_text(page):
    for memory in page["memoryBlobs"][:1]:
        memory["content"] = "Likes tea, hates coffee."


def of_another(page):
    for memory in page["memoryBlobs"]:
        memory["user_id"] = USER_ID


def careless(proxy, user_id):
    proxy.always(wire.CREATE_MEMORY, with_status(201, 200))
    proxy.always(wire.GET_REQUEST, with_status(404, 200))
    proxy.always(wire.LIST_REQUESTS, without_header("www-authenticate"))
    proxy.always(wire.TAG, changed(lambda tag: tag.update(is_enabled="yes")))
    return {"created", "unknown-request", "challenge", "tag-read"}


def leaky(proxy, user_id):
    proxy.always(wire.LIST_MEMORIES, with_query(user_id=user_id))
    proxy.always(wire.GET_CREDENTIALS, with_status(403, 200))
    return {"other-user", "list-requires-user", "credentials-withheld"}


def forgetful(proxy, user_id):
    proxy.always(wire.LIST_MEMORIES, without_cursor)
    proxy.always(wire.UPDATE_MEMORY, with_body(summary=None))
    return {"cursors-end", "patch-keeps-others"}


def strange(proxy, user_id):
    proxy.always(wire.LIST_MEMORIES, changed(of_another))
    proxy.always(wire.DELETE_MEMORY, answered(200, {"success": False}))
    proxy.always(wire.ISSUE_TOKEN, changed(lambda token: token.update(expires_at="in an hour")))
    return {"token-response"}


@pytest.mark.parametrize("broken", [careless, leaky, forgetful, strange])
def test_a_service_that_breaks_the_specification_is_named_for_exactly_that(approved, proxy, broken):
    user, request_id = approved
    expected = broken(proxy, user.user_id)
    before = store_of(user, request_id)
    assert failing(check(probe_of(user, request_id, proxy.base_url, writes=True))) == expected
    assert store_of(user, request_id) == before


FAULTS = {
    "listed-of-user": (wire.LIST_MEMORIES, changed(of_another)),
    "listed": (wire.LIST_MEMORIES, changed(lambda page: page.pop("next_cursor"))),
    "default-limit": (wire.LIST_MEMORIES, with_query(limit="100")),
    "importance-filter": (wire.LIST_MEMORIES, with_query(importance="0")),
    "tags-filter": (wire.LIST_MEMORIES, with_query(tags="rivers,walks")),
    "search": (wire.LIST_MEMORIES, with_query(searchQuery="")),
    "requests-listed": (wire.LIST_REQUESTS, changed(lambda page: page.update(total=0))),
    "request-read": (wire.GET_REQUEST, changed(lambda request: request.update(id="another"))),
    "invalid-token": (wire.GET_REQUEST, with_status(401, 403)),
    "credentials-given": (wire.GET_CREDENTIALS, changed(lambda keys: keys.update(encryption_key="no hex"))),
    "credentials-of-request": (wire.GET_CREDENTIALS, changed(lambda keys: keys.update(memory_key="else"))),
    "content-opens": (wire.GET_CREDENTIALS, changed(lambda keys: keys.update(encryption_key="ab" * 32))),
    "token-is-jwt": (wire.ISSUE_TOKEN, changed(lambda answer: answer.update(token="opaque"))),
    "memory-read": (wire.GET_MEMORY, changed(lambda memory: memory.update(title="another"))),
    "unknown-memory": (wire.GET_MEMORY, with_status(404, 500)),
    "tags-listed": (wire.LIST_TAGS, answered(200, [])),
    "wrong-api-key": (wire.ISSUE_TOKEN, with_status(401, 500)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_by_its_requirement(approved, proxy, name):
    user, request_id = approved
    endpoint, fault = FAULTS[name]
    proxy.always(endpoint, fault)
    assert name in failing(check(probe_of(user, request_id, proxy.base_url)))


WRITE_FAULTS = {
    "created-is-read": (wire.CREATE_MEMORY, with_body(summary="another")),
    "content-is-sealed": (
        wire.LIST_MEMORIES,
        changed(first_in_plain_text),
    ),
    "token-required-to-write": (wire.DELETE_MEMORY, with_status(401, 500)),
    "patch-requires": (wire.UPDATE_MEMORY, with_status(400, 200)),
    "deleted": (wire.DELETE_MEMORY, answered(200, {"success": True})),
    "create-requires": (wire.CREATE_MEMORY, with_body(content="Tea")),
}


@pytest.mark.parametrize("name", WRITE_FAULTS)
def test_each_fault_of_a_write_is_found_by_its_requirement(approved, proxy, name):
    user, request_id = approved
    endpoint, fault = WRITE_FAULTS[name]
    proxy.always(endpoint, fault)
    assert name in failing(check(probe_of(user, request_id, proxy.base_url, writes=True)))


def test_what_cannot_be_deleted_is_named(approved, proxy):
    user, request_id = approved
    proxy.always(wire.DELETE_MEMORY, refused)
    probe = probe_of(user, request_id, proxy.base_url, writes=True)
    check(probe)
    left = {each["id"] for each in store_of(user, request_id)[0] if "memframecheck" in each["title"]}
    assert len(left) == 3
    assert {trace.split()[2] for trace in probe.left_behind} == left


def test_a_memory_whose_creation_was_not_answered_in_json_is_found_and_deleted(approved, proxy):
    user, request_id = approved
    before = store_of(user, request_id)

    def created_in_html(request, forward):
        forward(request)
        return html(request, forward)

    proxy.always(wire.CREATE_MEMORY, created_in_html)
    probe = probe_of(user, request_id, proxy.base_url, writes=True)
    assert "created" in failing(check(probe))
    assert (store_of(user, request_id), probe.left_behind) == (before, [])


def test_a_memory_of_the_user_is_not_deleted_for_one_of_the_check(approved, proxy):
    """A service that answers a create with the id of another memory."""
    user, request_id = approved
    before = store_of(user, request_id)
    proxy.always(wire.CREATE_MEMORY, changed(lambda memory: memory.update(id=before[0][0]["id"])))
    probe = probe_of(user, request_id, proxy.base_url, writes=True)
    assert "created" in failing(check(probe))
    assert (store_of(user, request_id), probe.left_behind) == (before, [])


@pytest.mark.parametrize(("layout", "outcome"), [("gcm-iv:tag:ct", "holds"), ("cbc-iv:ct", "fails")])
def test_a_stranger_is_judged_by_what_it_answers(stranger, layout, outcome):
    """A service that was written by somebody else: its ids are no UUIDs, and it has no tags of its own."""
    keys = {"user_id": USER_ID, "key_version": 1}
    key = Secret(SECRETS["encryption key"])
    sealed = Envelope(key, **keys, write_format="gcm-iv:tag:ct").seal("Tea")
    content = sealed if outcome == "holds" else "00" * 16 + ":" + "11" * 32
    stranger.answer(wire.LIST_MEMORIES, memoryBlobs=[{**MEMORY, "content": content}])
    stranger.answer(wire.GET_MEMORY, content=content, confidence=1)
    probe = Probe(stranger.base_url, Secret(SECRETS["api key"]), request_id="r1", transport=at_once())
    outcomes = check(probe)
    assert outcomes["content-opens"] == outcome
    assert {"token-is-jwt", "token-required", "unknown-request", "invalid-token"} <= failing(outcomes)


# The command


@pytest.fixture
def run(approved, tmp_path):
    user, request_id = approved
    key_file = tmp_path / "key.txt"
    key_file.write_text(user.service.api_key)

    def run(url, *options, **given):
        options = ("--api-key-file", key_file, "--request", request_id[:13], *options)
        return invoke("service", "check", url, *options, **given)

    return run


def test_the_command_prints_a_line_for_each_requirement_and_no_secret(service, approved, run, proxy):
    user, request_id = approved
    proxy.always(wire.GET_CREDENTIALS, with_status(403, 401))
    done = run(proxy.base_url, "--write", code=1)
    lines = done.stdout.splitlines()
    assert len(lines) == len(REQUIREMENTS) + 2
    (failed,) = (line for line in lines if "FAILS" in line)
    assert failed == (
        "must    FAILS      credentials-withheld     answered 401, not 403 "
        "(States and transitions: “for `pending`, `rejected` or `revoked` it answers 403”)"
    )
    assert re.fullmatch(
        r"must: 32 hold, 1 fails, 5 not tried; needed: 8 hold, 0 fail, 1 not tried.", lines[-1]
    )
    keys = user.client.credentials(request_id)
    secrets = {
        "api key": user.service.api_key,
        "memory": keys.memory_key.reveal(),
        "key": keys.encryption_key.reveal(),
    }
    assert found_in(done.output, secrets) == []


def test_expected_failures_pass_and_must_fail(run, proxy, tmp_path):
    proxy.always(wire.GET_CREDENTIALS, with_status(403, 401))
    expected = tmp_path / "expected.txt"
    expected.write_text("# known\ncredentials-withheld  # answers 401\n")
    document = json.loads(run(proxy.base_url, "--expected-failures", expected, "--json").stdout)
    assert (document["holds"], document["left_behind"]) == (True, [])
    (failed,) = (each for each in document["requirements"] if each["outcome"] == "fails")
    assert failed == {
        "id": "credentials-withheld",
        "level": "must",
        "section": "States and transitions",
        "sentence": "for `pending`, `rejected` or `revoked` it answers 403",
        "outcome": "fails",
        "found": "answered 401, not 403",
        "is_expected": True,
    }
    proxy.always(wire.GET_CREDENTIALS, with_status(403, 403))
    done = run(proxy.base_url, "--expected-failures", expected, code=1)
    assert "[expected to fail: remove it from the file]" in done.stdout
    expected.write_text("no-such-thing\n")
    assert (
        "there is no requirement 'no-such-thing'"
        in run(proxy.base_url, "--expected-failures", expected, code=1).output
    )


def test_writing_needs_the_name_of_a_user(service, tmp_path):
    key_file = tmp_path / "key.txt"
    key_file.write_text(service.api_key)
    done = invoke("service", "check", service.base_url, "--api-key-file", key_file, "--write", code=2)
    assert "give --request ID" in done.output


def test_a_key_of_nobody_leaves_the_rest_untried(service, tmp_path):
    key_file = tmp_path / "key.txt"
    key_file.write_text("wrong")
    done = invoke("service", "check", service.base_url, "--api-key-file", key_file, code=1)
    assert re.search(r"must +FAILS +token-response +answered 401", done.stdout)
    assert "not tried  requests-listed          no token was given" in done.stdout


def test_a_user_authorizes_in_a_browser(own_user, tmp_path, monkeypatch):
    for name in ("base_url", "auth_url", "api_key", "client_id", "client_secret", "redirect_uri"):
        monkeypatch.setenv(f"MEMFRAME_{name.upper()}", getattr(own_user.service, name))
    command = [sys.executable, "-m", "memframe", "service", "check", own_user.service.base_url, "--authorize"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes, text=True) as running:
        assert "browser" in running.stderr.readline()
        redirected = own_user.person.authorize(running.stderr.readline().strip())
        out, err = running.communicate(redirected + "\n", timeout=60)
    assert running.returncode == 0, err
    assert re.search("must +holds +oauth-exchange +all five fields", out)
    assert re.search("needed +holds +oauth-wrong-code", out)

"""The user's pages: only their user decides, only from them, and strangers' words stay words."""

import re
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from itertools import chain
from threading import Barrier
from urllib.parse import urlsplit

import pytest
import requests
from argon2 import PasswordHasher, extract_parameters
from msgspec import structs

from memframe.secret import Secret
from memframe.service import run_local
from memframe.service.pages import harmless
from memframe.service.store.accounts import Developer, User
from tests.conftest import CHEAP_HASHER
from tests.pages.conftest import PASSWORD, Browser
from tests.service.conftest import assert_problem

LINK = re.compile(r'href="([^"#]*)')


@pytest.fixture
def ask_for_access(call):
    """A developer's access request to the user in a browser; its id."""

    def ask(browser, reason="weekly review"):
        if browser.memory_key is None:
            browser.memory_key = browser.exchange(browser.consent()["code"]).json()["memory_key"]
        answer = call.post("/access-requests", {"memoryKey": browser.memory_key, "reason": reason})
        assert answer.status_code == 201
        return answer.json()["id"]

    return ask


@pytest.fixture
def status_of(service):
    return lambda request_id: service._deployment.store.requests.get(request_id).status


# Passwords


@pytest.mark.asvs("6.2.1", "6.2.2", "6.2.3", "6.2.12", "7.4.3", "7.5.1")
def test_people_change_their_own_password(service, reader, email):
    elsewhere = Browser(service)
    elsewhere.sign_in(email)

    def change(current, new, again=None):
        reader.open("/dashboard/password")
        return reader.send(reader.form("/password"), current=current, new=new, again=again or new)

    for current, new, again, reason in [
        ("wrong", "a new long password", None, "current password"),
        (PASSWORD, "1234567", None, "8 to 1024"),
        (PASSWORD, "x" * 1025, None, "8 to 1024"),
        (PASSWORD, " " * 12, None, "blank"),
        (PASSWORD, " PASSWORD1 ", None, "most common"),
        (PASSWORD, "a new long password", "another", "differ"),
    ]:
        page = change(current, new, again)
        assert (page.status_code, reason in page.text) == (403, True)
        assert not new.strip() or new not in page.text, "nor is it repeated to anybody"
    assert elsewhere.open("/dashboard").url.endswith("/dashboard")
    assert change(PASSWORD, "a new long password").url.endswith("/dashboard")
    assert reader.open("/dashboard").url.endswith("/dashboard"), "signed in here"
    assert "/login" in elsewhere.open("/dashboard").url, "signed out there"
    assert Browser(service).sign_in(email).status_code == 403
    assert Browser(service).sign_in(email, "a new long password").status_code == 200


@pytest.mark.asvs("6.2.2", "6.4.1")
def test_a_password_of_the_operators_is_changed_before_anything_else(service, new_email):
    address, new = new_email(), "a password of my own"
    service._deployment.add_user(address, Secret(PASSWORD), must_change_password=True)
    browser = Browser(service)
    page = browser.sign_in(address)
    assert urlsplit(page.url).path == "/dashboard/password"
    assert "The operator of this service chose your password" in page.text
    token = browser.form("/password").fields["csrf_token"]
    consent = urlsplit(browser.ask(follow=False).url)
    for method, path in (
        ("GET", "/dashboard"),
        ("GET", f"{consent.path}?{consent.query}"),
        ("POST", f"{consent.path}?{consent.query}"),
        ("POST", "/dashboard/requests/any"),
        ("POST", "/dashboard/developers/any/disconnect"),
    ):
        data = {"csrf_token": token, "status": "approved", "decision": "allow"} if method == "POST" else None
        options = {"data": data, "allow_redirects": False, "timeout": 20}
        answer = browser.session.request(method, service.auth_url + path, **options)
        assert (answer.status_code, urlsplit(answer.headers["Location"]).path) == (303, "/dashboard/password")
    assert "operator of this service chose" in browser.ask().text
    same = browser.send(browser.form("/password"), current=PASSWORD, new=PASSWORD, again=PASSWORD)
    assert "same as the current one" in same.text
    changed = browser.send(browser.form("/password"), current=PASSWORD, new=new, again=new)
    assert "/oauth/authorize" in changed.url, "on to where the sign-in was to lead"
    assert Browser(service).sign_in(address, new).url.endswith("/dashboard")


# Disconnecting


@pytest.mark.asvs("10.4.9", "10.7.3")
def test_who_is_disconnected_keeps_nothing(service, call, reader, ask_for_access, status_of):
    approved = ask_for_access(reader)
    service.decide(approved, "approved")
    old = reader.exchange(reader.consent()["code"]).json()
    user_id = call.get(f"/access-requests/{approved}").json()["user_id"]
    pending = ask_for_access(reader)
    code = reader.consent()["code"]
    page = reader.open("/dashboard").text
    assert "Connected applications" in page
    gone = reader.send(reader.form("/disconnect"), follow=False)
    assert (gone.status_code, gone.headers["Location"]) == (303, "/dashboard")
    assert (status_of(approved), status_of(pending)) == ("revoked", "rejected")
    assert reader.exchange(code).json()["error"] == "invalid_grant"
    assert reader.refresh(old["refresh_token"]).json()["error"] == "invalid_grant"
    assert_problem(call.get("/memory-blobs", user_id=user_id), 403, "no_grant")
    body = {"memoryKey": old["memory_key"], "reason": "again"}
    assert_problem(call.post("/access-requests", body), 403, "wrong_memory_key")
    assert "Connected applications" not in reader.open("/dashboard").text

    new = reader.exchange(reader.consent()["code"]).json()
    assert new["memory_key"] != old["memory_key"]
    reader.memory_key = new["memory_key"]
    assert reader.exchange(reader.consent()["code"]).json()["memory_key"] == new["memory_key"]
    service.decide(ask_for_access(reader), "approved")
    write = {"user_id": user_id, "content": "Likes tea", "memoryKey": old["memory_key"]}
    assert_problem(call.post("/memory-blobs", write), 403, "wrong_memory_key")
    assert call.post("/memory-blobs", write | {"memoryKey": new["memory_key"]}).status_code == 201


def test_each_section_of_the_dashboard_comes_in_pages(service, reader, ask_for_access, monkeypatch):
    monkeypatch.setattr("memframe.service.dashboard.REQUESTS_PER_PAGE", 4)
    asked = [ask_for_access(reader, f"reason number {number}.") for number in range(11)]
    for request_id in asked[:5]:
        service.decide(request_id, "rejected")
    page = reader.open("/dashboard").text
    assert page.count("reason number") == 8
    assert all(f"reason number {number}." in page for number in [*range(1, 5), *range(7, 11)])
    older = next(link for link in LINK.findall(page) if "pending=" in link)
    page = reader.open(older).text
    assert all(f"reason number {number}." in page for number in [5, 6, *range(1, 5)])
    assert page.count("reason number") == 6
    assert "pending=" not in page
    for place in ("of-nobody", "%00"):
        assert reader.open(f"/dashboard?past={place}").status_code == 400


# Deciding


@pytest.mark.asvs("2.3.1", "10.7.3")
def test_the_way_from_pending_over_approved_to_revoked(reader, ask_for_access, status_of):
    request_id = ask_for_access(reader, "to find duplicates")
    page = reader.open("/dashboard").text
    assert "My application" in page
    assert "to find duplicates" in page
    assert ">Pending<" in page
    answer = reader.send(reader.form(request_id, "approved"), follow=False, status="approved")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/dashboard")
    assert status_of(request_id) == "approved"
    assert ">Approved<" in reader.open("/dashboard").text
    reader.send(reader.form(request_id, "revoked"), status="revoked")
    assert status_of(request_id) == "revoked"
    assert ">Revoked<" in reader.open("/dashboard").text


def test_a_decision_that_was_taken_meanwhile_stands(service, reader, ask_for_access, status_of):
    request_id = ask_for_access(reader)
    for status in ("pending", "open", "", "APPROVED"):
        reader.open("/dashboard")
        assert reader.send(reader.form(request_id), status=status).status_code in {400, 409}
        assert status_of(request_id) == "pending"
    reader.open("/dashboard")
    form = reader.form(request_id, "approved")
    service.decide(request_id, "rejected")
    answer = reader.send(form, status="approved")
    assert (answer.status_code, "Already decided" in answer.text) == (409, True)
    assert status_of(request_id) == "rejected"
    assert f"/dashboard/requests/{request_id}" not in reader.open("/dashboard").text


@pytest.mark.asvs("8.2.2", "8.4.1")
def test_nobody_decides_or_disconnects_for_another(service, reader, new_email, ask_for_access, status_of):
    request_id = ask_for_access(reader)
    reader.open("/dashboard")
    forms = reader.form(request_id, "approved"), reader.form("/disconnect")
    other = Browser(service)
    service.add_user(address := new_email(), PASSWORD)
    assert request_id not in other.sign_in(address).text
    token = other.form("/logout").fields["csrf_token"]
    nowhere = structs.replace(forms[0], action="/dashboard/requests/%00")
    assert other.send(nowhere, status="approved", csrf_token=token).status_code == 400
    for form in forms:
        assert other.send(form, status="approved", csrf_token=token).status_code == 404
        assert reader.send(form, status="approved", csrf_token="x").status_code == 403
    assert status_of(request_id) == "pending"


@pytest.mark.asvs("3.5.3")
def test_looking_changes_nothing(reader, ask_for_access, status_of):
    request_id = ask_for_access(reader)
    address = f"/dashboard/requests/{request_id}?status=approved"
    assert reader.open(address).status_code == 405
    assert reader.open("/logout").status_code == 405
    assert status_of(request_id) == "pending"
    assert "Sign out" in reader.open("/dashboard").text


@pytest.mark.asvs("10.7.1", "10.7.2")
def test_the_consent_page_tells_whether_the_application_has_access(service, reader, ask_for_access):
    request_id = ask_for_access(reader)
    assert "cannot read your memories yet" in reader.ask().text
    service.decide(request_id, "approved")
    assert "It can read and change your memories" in reader.ask().text


# Signing in


def test_an_unknown_user_gets_the_same_refusal_after_the_same_work(run_for_ada):
    checked = []

    class RecordingHasher(PasswordHasher):
        def verify(self, stored, password):
            checked.append((password, extract_parameters(stored)))
            return super().verify(stored, password)

    with run_for_ada(hasher=RecordingHasher(time_cost=1, memory_cost=8, parallelism=1)) as local:
        pages = [
            Browser(local).sign_in(address, "wrong password")
            for address in ("ada@pages.example", "nobody@pages.example", "", "x" * 5000, "\x00")
        ]
    said = [(page.status_code, "The e-mail address or the password is wrong" in page.text) for page in pages]
    assert said == [(403, True)] * 4 + [(400, False)]
    assert checked == checked[:1] * 4


@pytest.mark.any_database
@pytest.mark.asvs("3.7.2")
@pytest.mark.rfc("6749 10.15a", "9700 2.1b")
@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "/login\r\nX: y"]
)
def test_the_sign_in_leads_only_to_our_own_pages(stranger, email, target):
    stranger.open("/login", params={"next": target})
    answer = stranger.send(stranger.form("/login"), follow=False, email=email, password=PASSWORD, next=target)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/dashboard")


@pytest.mark.asvs("7.2.1", "7.2.2", "7.2.4", "7.4.1", "14.3.1")
def test_the_session_gets_another_name_at_the_sign_in_and_at_the_sign_out(stranger, email):
    names = ["A" * 43]  # somebody else's choice
    stranger.session.cookies.set("memframe", names[0], domain="127.0.0.1")
    stranger.sign_in(email)
    names.append(stranger.session.cookies["memframe"])
    answer = stranger.send(stranger.form("/logout"), follow=False)
    assert answer.headers["Clear-Site-Data"] == '"cache", "storage"'
    names.append(stranger.session.cookies["memframe"])
    assert len(set(names)) == 3
    for old in names:
        stranger.session.cookies.clear()
        stranger.session.cookies.set("memframe", old)
        assert "/login" in stranger.open("/dashboard").url


@pytest.mark.asvs("7.4.2")
@pytest.mark.parametrize("kind", [User, Developer])
def test_an_account_that_is_opened_again_does_not_revive_sessions_and_tokens(service, reader, email, kind):
    other = service._deployment.add_developer("Another")
    as_other = {"client_id": other.client_id, "client_secret": other.client_secret.reveal()}
    tokens = reader.exchange(reader.consent(client_id=other.client_id)["code"], **as_other).json()
    code = reader.consent(client_id=other.client_id)["code"]
    own = reader.exchange(reader.consent()["code"]).json()
    accounts = service._deployment.store.accounts
    account_id = other.id if kind is Developer else accounts.user_by_email(email).id
    for disabled in (True, False):
        accounts.set_disabled(kind, account_id, disabled=disabled)
    assert reader.refresh(tokens["refresh_token"], **as_other).json()["error"] == "invalid_grant"
    assert reader.exchange(code, **as_other).json()["error"] == "invalid_grant"
    is_elsewhere_open = reader.refresh(own["refresh_token"]).status_code == 200
    is_signed_in = reader.open("/dashboard", allow_redirects=False).status_code == 200
    assert is_elsewhere_open == is_signed_in == (kind is Developer)
    again = Browser(service)
    again.sign_in(email)
    code = again.consent(client_id=other.client_id)["code"]
    assert again.exchange(code, **as_other).json()["memory_key"] == tokens["memory_key"]


@pytest.mark.asvs("6.2.10", "7.2.1", "7.3.2", "7.4.1")
def test_a_session_lasts_twelve_hours_and_a_password_does_not_age(timed, set_clock):
    browser = Browser(timed)
    browser.sign_in("ada@pages.example")
    set_clock.advance(hours=11, minutes=59)
    assert browser.open("/dashboard").url.endswith("/dashboard")
    set_clock.advance(minutes=1)
    assert "/login" in browser.open("/dashboard").url
    set_clock.advance(days=3650)
    assert Browser(timed).sign_in("ada@pages.example").url.endswith("/dashboard")


def failures(browser, n, email="ada@pages.example"):
    """Statuses of sign-ins with a wrong password, each from a browser that forgets."""
    return [browser.sign_in(email, "wrong").status_code for _ in range(n)]


@pytest.mark.asvs("2.4.1", "6.3.1")
def test_after_twenty_failed_sign_ins_each_further_one_waits_twice_as_long(timed, set_clock):
    browser = Browser(timed)
    assert failures(browser, 20) == [403] * 20
    browser.open("/login")
    for minutes in (1, 2, 4, 8, 15, 15):
        refused = browser.sign_in("ADA@pages.example")
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, str(60 * minutes))
        assert "Too many attempts" in refused.text
        set_clock.advance(seconds=60 * minutes - 1)
        assert browser.sign_in("ada@pages.example").status_code == 429
        set_clock.advance(seconds=1)
        browser.open("/login")
        assert failures(browser, 1) == [403]
    assert browser.sign_in("bob@pages.example").status_code == 403, "others go on"
    set_clock.advance(hours=1)
    assert browser.sign_in("ada@pages.example").url.endswith("/dashboard")


@pytest.mark.asvs("6.3.1")
def test_whoever_tries_many_accounts_has_to_wait(timed, set_clock):
    browser = Browser(timed)
    assert [failures(browser, 1, f"{n}@pages.example") for n in range(101)] == [[403]] * 100 + [[429]]
    assert Browser(timed).sign_in("ada@pages.example").status_code == 429
    set_clock.advance(seconds=60)
    assert Browser(timed).sign_in("ada@pages.example").url.endswith("/dashboard")


@pytest.mark.asvs("6.3.1")
def test_a_stranger_who_guesses_does_not_lock_out_a_browser_that_is_known(timed, set_clock):
    own, stranger = Browser(timed), Browser(timed)
    own.sign_in("ada@pages.example")
    own.open("/dashboard")
    own.send(own.form("/logout"))
    assert failures(stranger, 21) == [403] * 20 + [429]
    assert own.sign_in("Ada@pages.example").url.endswith("/dashboard"), "behind the same address"
    assert Browser(timed).sign_in("ada@pages.example").status_code == 429
    own.open("/dashboard")
    own.send(own.form("/logout"))
    assert failures(own, 21) == [403] * 20 + [429], "it is counted, too, for itself"
    stolen = {cookie.name: cookie.value for cookie in own.session.cookies}
    assert stolen.keys() == {"memframe", "memframe-known"}
    timed.add_user("eve@pages.example", PASSWORD)
    stranger.session.cookies.set("memframe-known", stolen["memframe-known"])
    assert failures(stranger, 1, "eve@pages.example") == [403], "it is bound to the person: this one counts"


@pytest.mark.asvs("6.3.1")
def test_failed_sign_ins_are_counted_for_all_processes_together(backend, set_clock, tmp_path):
    database = backend.new_database() or f"sqlite:///{tmp_path / 'service.db'}"
    options = {"database": database, "now": set_clock, "password_hasher": CHEAP_HASHER}
    with run_local(tmp_path, **options) as one, run_local(tmp_path, **options) as other:
        one.add_user("ada@pages.example", PASSWORD)
        with ThreadPoolExecutor(4) as pool:
            browsers = [Browser(local) for local in (one, other) * 2]
            statuses = pool.map(lambda browser: failures(browser, 7), browsers)
        assert sorted(chain.from_iterable(statuses)) == [403] * 20 + [429] * 8
        with one._deployment.store.engine.connect() as connection:
            stored = str(connection.exec_driver_sql("SELECT * FROM attempts").all())
        assert "ada@" not in stored
        assert "127.0.0.1" not in stored


@pytest.mark.asvs("15.2.2")
def test_passwords_are_checked_two_at_once(run_for_ada):
    now, most, gate = [0], [0], Barrier(2)

    class SlowHasher(PasswordHasher):
        def verify(self, stored, password):
            now[0] += 1
            most[0] = max(most[0], now[0])
            gate.wait()  # two have to be here
            now[0] -= 1
            return super().verify(stored, password)

    hasher = SlowHasher(time_cost=1, memory_cost=8, parallelism=1)
    with run_for_ada(hasher=hasher) as local, ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(lambda _: Browser(local).sign_in("ada@pages.example"), range(8)))
    assert [page.url.rpartition("/")[2] for page in pages] == ["dashboard"] * 8
    assert most == [2]


@pytest.mark.asvs("6.2.8", "6.2.9")
def test_a_password_counts_exactly_as_it_was_chosen(service, new_email):
    chosen = "A long Phrase, of more letters than the 72 that some hashes look at, with a blank at its end "
    service.add_user(address := new_email(), chosen)
    for typed in (chosen.lower(), chosen.strip(), chosen[:72], f"{chosen[:-2]}X "):
        assert Browser(service).sign_in(address, typed).status_code == 403
    assert Browser(service).sign_in(address, chosen).url.endswith("/dashboard")


@pytest.mark.asvs("6.2.6", "6.2.7", "6.4.2", "7.4.4")
def test_the_sign_in_form_helps_password_managers_and_every_page_offers_to_sign_out(stranger, email):
    page = stranger.open("/login").text
    assert set(stranger.form("/login").fields) == {"csrf_token", "next", "email", "password"}
    assert '<input id="password" name="password" type="password" autocomplete="current-password"' in page
    assert "onpaste" not in page
    stranger.sign_in(email)
    for page in (stranger.open("/dashboard"), stranger.open("/dashboard/nothing"), stranger.ask()):
        assert '<button class="link" form="sign-out">Sign out</button>' in page.text
        assert stranger.form("/logout")


# Addresses without a page


@pytest.mark.any_database
@pytest.mark.asvs("4.1.1")
def test_people_are_told_so_by_a_page_and_programs_by_a_problem_document(service):
    html = {"Accept": "text/html,*/*;q=0.8"}
    for method, path, headers, status in (
        ("GET", "/dashboard/nothing", {}, 404), ("GET", "/static/nothing.css", {}, 404), ("GET", "/logout", {}, 405),
        ("PUT", "/oauth/authorize", {}, 405), ("GET", "/nothing", html, 404),
    ):  # fmt: skip
        answer = requests.request(method, service.auth_url + path, headers=headers, timeout=20)
        assert (answer.status_code, answer.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
        assert "There is no page at this address." in answer.text
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert ("Allow" in answer.headers) == (status == 405)
    for path in ("/nothing", "/api/v1/nothing", "/api/v2/tags", "/schema/x", "/.well-known/x"):
        headers = {} if path == "/nothing" else html
        answer = requests.get(service.auth_url + path, headers=headers, timeout=20)
        assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")


# Forms that are not ours


@pytest.mark.any_database
@pytest.mark.asvs("3.5.1", "7.6.2")
@pytest.mark.rfc("6749 10.12b")
@pytest.mark.parametrize("form", ["/login", "/logout", "/dashboard/requests/", "/oauth/authorize"])
def test_a_form_without_its_token_changes_nothing(reader, stranger, email, ask_for_access, form):
    if form.startswith("/dashboard"):
        ask_for_access(reader)
    browser = stranger if form == "/login" else reader
    for token in (None, "0" * 64, "é"):
        browser.open("/login" if form == "/login" else "/dashboard")
        if form == "/oauth/authorize":
            browser.ask()
        before = browser.session.cookies["memframe"]
        fields = {"csrf_token": token, "email": email, "password": PASSWORD, "decision": "allow"}
        answer = browser.send(browser.form(form), follow=False, status="approved", **fields)
        assert (answer.status_code, "Location" in answer.headers) == (403, False)
        assert browser.session.cookies["memframe"] == before
        assert ("Sign out" in browser.open("/dashboard").text) == (browser is reader)
        assert ">Approved<" not in browser.page.text


@pytest.mark.any_database
@pytest.mark.asvs("3.5.1")
def test_a_form_is_taken_only_from_our_own_pages(service, reader, stranger):
    reader.open("/dashboard")
    stranger.open("/login")
    foreign = stranger.form("/login").fields["csrf_token"]
    assert reader.send(reader.form("/logout"), csrf_token=foreign).status_code == 403, "of another browser"
    for headers, is_accepted in (
        ({"Sec-Fetch-Site": "cross-site"}, False), ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "null"}, False), ({"Origin": "https://evil.example"}, False),
        ({"Origin": "http://127.0.0.1:1"}, False), ({"Origin": "http://["}, False),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True), ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, True),
        ({"Origin": "null"}, True), ({"Origin": service.auth_url}, True),
    ):  # fmt: skip
        reader.open("/dashboard/password")
        answer = reader.send(reader.form("/password"), follow=False, headers=headers)
        said = (answer.status_code, "current password" in answer.text)
        assert said == (403, is_accepted), headers


# Strangers' words

XSS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</p></li><form action=https://evil.example><input name=password>",
    "<style>*{display:none}</style>",
    "{{ 7*7 }}{% raw %}${7*7}#{7*7}",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<!-- --!><script>alert(1)</script>",
    "<scr\x01ipt>alert(1)</script>",
    "\u202egnissim eb llahs gnihton\u2066",
]


class Tags(HTMLParser):
    """The tags and attributes that a page really has, and the text that a reader sees."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, sorted(name for name, _ in attributes)))

    def handle_data(self, data):
        self.text += data


@pytest.mark.any_database
@pytest.mark.asvs("1.1.2", "1.2.1", "1.3.7", "3.2.2")
def test_reasons_and_names_of_strangers_stay_text(service, reader, new_email, ask_for_access):
    service.add_user(address := new_email(), PASSWORD)
    other = Browser(service)
    other.sign_in(address)
    plain = Tags(reader.ask().text)
    for words in XSS:
        ask_for_access(reader, words)
        ask_for_access(other, "plain words")
        developer = service._deployment.add_developer(words)
        page = Tags(reader.ask(client_id=developer.client_id).text)
        assert (page.tags, harmless(words) in page.text) == (plain.tags, True)
    page, plain_page = (Tags(browser.open("/dashboard").text) for browser in (reader, other))
    assert page.tags == plain_page.tags
    assert [words for words in XSS if harmless(words) not in page.text] == []


@pytest.mark.asvs("1.3.3")
def test_characters_that_reorder_or_hide_text_are_taken_out_and_all_languages_stay():
    for words in ("a\u202eb", "a\u2066b", "a\u200eb", "a\x1b[31mb", "a\u2028b", "a\ud800b", "a\ufeffb"):
        assert "\ufffd" in harmless(words)
    for words in ("naïve 日本語 עברית", "می‌خواهم", "two\nlines", "👩\u200d🔬"):
        assert harmless(words) == words


# Headers


@pytest.mark.any_database
@pytest.mark.asvs("3.3.2", "3.3.4", "3.4.3", "3.4.5", "3.4.6", "14.3.2")
@pytest.mark.rfc("6749 10.13a", "9700 4.16a", "9700 4.2.4a")
def test_every_page_protects_itself(stranger, reader):
    for path in ("/", "/login", "/dashboard", "/oauth/authorize?client_id=none"):
        headers = stranger.open(path, allow_redirects=False).headers
        policy = headers["Content-Security-Policy"]
        for rule in ("default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert rule in policy
        assert policy.endswith("form-action 'self'")
        assert "script" not in policy
        assert headers.items() >= {
            "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store",
        }.items()  # fmt: skip
    stranger.session.cookies.clear()
    cookie = set(stranger.open("/login").headers["Set-Cookie"].lower().split("; "))
    assert cookie >= {"httponly", "samesite=lax", "path=/"}
    assert "secure" not in cookie
    policy = reader.ask().headers["Content-Security-Policy"]
    assert policy.endswith("form-action 'self' http://127.0.0.1:51004"), "and to the client alone"


@pytest.mark.asvs("3.7.1", "14.2.3", "14.3.3")
def test_pages_have_no_script_and_load_nothing_from_elsewhere(reader, ask_for_access):
    class Sources(HTMLParser):
        def handle_starttag(self, tag, attributes):
            assert tag not in {"script", "style", "iframe", "object"}
            for name, value in attributes:
                assert not name.startswith("on")
                assert name != "style"
                if name in {"src", "href", "action"}:
                    assert value.startswith(("/", "#"))
                    assert not value.startswith("//")

    ask_for_access(reader)
    for page in (reader.open("/dashboard"), reader.open("/login"), reader.ask()):
        Sources().feed(page.text)

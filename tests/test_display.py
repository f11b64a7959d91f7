"""What people see of things: calm, escaped, masked, in plain text and in notebooks."""

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

import memframe as mf
from memframe.display import html_card
from memframe.secret import Secret
from memframe.wire import AccessRequest, Credentials
from tests.canaries import found_in
from tests.rows import memories_of

HOSTILE = "<script>alert(1)</script>\u202e'\"&\x1b[2J"
SECRET = "canary-of-a-secret"


def shown():
    request = AccessRequest(
        id="r1",
        status="pending",
        reason=HOSTILE,
        memory_key=Secret(SECRET),
        created_at=datetime(2026, 3, 9, 14, 5, tzinfo=UTC),
    )
    credentials = Credentials("u1", Secret(SECRET), Secret(SECRET), 3)
    return {"AccessRequest": request, "Credentials": credentials}


class Page(HTMLParser):
    """Tags and text of a piece of HTML."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.text += " "

    def handle_data(self, data):
        if self.cdata_elem is None:  # in a stylesheet
            self.text += data


@pytest.mark.parametrize("name", shown())
def test_a_record_shows_its_fields_and_no_secret(name):
    record = shown()[name]
    plain, html = repr(record), record._repr_html_()
    assert plain.startswith(f"<memframe.{name} ")
    assert "••••••" in plain
    assert "••••••" in html
    assert found_in(plain + html, {"secret": SECRET}) == []


def test_a_request_is_told_in_plain_words_and_words_of_strangers_neither_act_nor_disturb():
    request = shown()["AccessRequest"]
    page = Page(request._repr_html_())
    assert "status: pending" in repr(request)
    assert "created_at: 9 March 2026, 14:05 UTC" in repr(request)
    assert "user_id" not in repr(request)
    assert page.tags == {"div", "style", "b", "span"}
    for text in (repr(request), page.text):
        assert "pending" in text
        assert not {"\x1b", "\u202e"} & {*text}
    assert "<script>alert(1)</script>" in page.text


def test_no_card_sets_a_colour_that_a_theme_might_not_bear(user):
    access = user.access()
    for subject in (user.client, access, access.credentials, user.ask()):
        html = subject._repr_html_()
        assert not re.search(r"\bcolor:|#[0-9a-f]{3}", html)
        assert set(re.findall(r"background: (\w+)", html)) <= {"none", "rgba"}  # layers over the page's own
    assert user.service.base_url in user.client._repr_html_()
    assert access.user_id in access._repr_html_()
    assert found_in(access._repr_html_(), {"key": access.credentials.encryption_key.reveal()}) == []


def test_what_is_not_known_is_left_out():
    assert "OAuth" not in mf.connect("http://127.0.0.1:1", api_key="mf_key")._repr_html_()
    assert Page(html_card("A", {"b": 0})).text.split() == ["A", "b", "0"]


def test_what_a_cell_shows_is_a_card_of_the_same_facts(service, tmp_path):
    audit = mf.audit_memories(memories_of([]))
    for value, text in (
        (service, service.base_url),
        (mf.SignIn(), "next"),
        (mf.Changes(added=("m1",)), "added"),
        (audit.compare(audit), "stayed"),
        (mf.FleetFolder(tmp_path / "<b>"), "&lt;b&gt;"),
    ):
        assert repr(value).startswith(f"<memframe.{type(value).__name__}")
        assert text in value._repr_html_()
        assert "<b>" in value._repr_html_()

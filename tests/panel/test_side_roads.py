"""What the panel says when something goes wrong, and that there is a way out of it."""

from threading import Event

import pytest
from msgspec.structs import replace

import memframe as mf
from memframe.wire import CREATE_REQUEST, GET_REQUEST, ISSUE_TOKEN, LIST_MEMORIES
from tests.faults import answered, cut, passed
from tests.panel.conftest import SOON_S, answer, approve, ask


def signing_in(show, base_url, key):
    seen = show()
    seen.type("Address of the API", base_url)
    seen.type("API key", key)
    seen.click("Sign in")
    return seen


def test_a_key_that_is_refused(bare, user, show):
    seen = signing_in(show, user.service.base_url, "mf_live_wrong")
    assert "The service does not accept this API key." in seen.text
    assert 'role="alert"' in seen.html
    seen.type("API key", user.service.api_key)
    seen.click("Sign in")
    assert "Step 2 of 5" in seen.text
    assert "does not accept" not in seen.text


def test_a_key_of_the_environment_that_is_refused_can_be_typed(environment, show, monkeypatch):
    monkeypatch.setenv("MEMFRAME_API_KEY", "mf_live_wrong")
    seen = show()
    assert "does not accept this API key" in seen.text
    seen.type("API key", environment.service.api_key)
    seen.click("Sign in")
    assert seen.panel.way.client is not None


@pytest.mark.parametrize(
    ("base_url", "key", "asked"),
    [
        ("", "", "Type the address of the API first."),
        ("http://127.0.0.1:9/api/v1", "", "Type or paste the API key"),
    ],
)
def test_what_is_not_typed_is_asked_for(bare, show, base_url, key, asked):
    assert asked in signing_in(show, base_url, key).text


def test_an_address_that_is_unsafe_is_refused_in_words(bare, show):
    seen = signing_in(show, "http://memory.example/api/v1", "mf_live_x")
    assert "plain http to another machine" in seen.text


def test_a_service_that_cannot_be_reached_is_tried_again(bare, user, show, proxy):
    proxy.script(ISSUE_TOKEN, cut, cut, cut)
    seen = signing_in(show, proxy.base_url, user.service.api_key)
    assert "broke off" in seen.text
    seen.click("Sign in")
    assert "Step 2 of 5" in seen.text


def test_nothing_pasted(connected):
    connected.click("Continue")
    assert "Paste the address to which the link led" in connected.text


def test_an_address_of_another_attempt(connected, user):
    redirected = user.person.authorize(connected.link)
    connected.type("Redirected address, or its code", redirected.replace("state=", "state=x"))
    connected.click("Continue")
    assert "That address belongs to another attempt." in connected.text
    connected.type("Redirected address, or its code", redirected)
    connected.click("Continue")
    assert "Step 3 of 5" in connected.text


def test_a_code_that_was_used(connected, user):
    first = connected.link
    redirected = user.person.authorize(first)
    code = redirected.partition("code=")[2].partition("&")[0]
    connected.panel.way.finish(redirected)
    connected.panel.way.authorize()
    connected.type("Redirected address, or its code", code)
    connected.click("Continue")
    assert "was used already, or has expired. Open the link again: it is a new one." in connected.text
    assert connected.link != first
    answer(connected, user)
    assert "Step 3 of 5" in connected.text


def test_a_consent_that_is_denied(connected, user):
    connected.type("Redirected address, or its code", user.person.authorize(connected.link, allow=False))
    connected.click("Continue")
    assert "The user chose not to allow the connection. Nothing was shared." in connected.text
    connected.click("Back")
    assert "Connect a user" in connected.labels()


def test_a_client_secret_that_is_refused_can_be_typed_again(bare, user, show):
    service = user.service
    seen = show(user.client)

    def connect(secret):
        seen.type("Client id", service.client_id)
        seen.type("Redirect address, as registered", service.redirect_uri)
        seen.type("Client secret", secret)
        seen.click("Connect a user")
        answer(seen, user)

    connect("mfs_wrong")
    assert "does not know this application. Go back" in seen.text
    seen.click("Back")
    connect(service.client_secret)
    assert "Step 3 of 5" in seen.text


def test_a_setting_of_the_flow_that_is_not_typed_is_asked_for(bare, user, show):
    seen = show(user.client)
    seen.click("Connect a user")
    assert "Type the client id first." in seen.text


def test_a_reason_is_asked_for(user, show):
    seen = show(user.client, flow=user.flow())
    seen.panel.way.authorize()
    answer(seen, user)
    seen.click("Send the request")
    assert "Write your reason first" in seen.text
    seen.type("Your reason", "because")
    seen.click("Send the request")
    assert "Step 4 of 5" in seen.text


def test_a_request_that_is_rejected(connected, user):
    ask(connected, user)
    user.service.decide(connected.panel.way.request.id, "rejected")
    connected.until("rejected")
    assert "The user declined" in connected.text
    assert "Nothing was shared." in connected.text
    connected.click("Choose again")
    assert "Rejected a test" in connected.text


def test_an_approval_that_is_taken_back_after_the_load(connected, user):
    approve(connected, user).click("Load the memories")
    user.service.decide(connected.panel.way.request.id, "revoked")
    connected.click("Load again")
    assert connected.panel.way.state == "revoked"
    assert "The user took the approval back" in connected.text
    assert "still in panel.memories" in connected.text
    assert connected.panel.access is None
    assert connected.panel.memories is not None


def test_a_busy_service_says_when_it_is_asked_again(far, user, proxy):
    proxy.script(GET_REQUEST, answered(429, Retry_After="120"))
    ask(far, user)
    far.until_it_says("The service is busy. Next check at")
    assert 'role="alert"' not in far.html
    far.click("Check now")
    assert "busy" not in far.text


def test_a_key_that_is_withdrawn_while_waiting(far, user, proxy):
    ask(far, user)
    proxy.always(GET_REQUEST, answered(401))
    proxy.always(ISSUE_TOKEN, answered(401))
    far.click("Check now")
    assert "the API key is not accepted any more. Sign out" in far.text
    assert "Checking" not in far.labels()
    far.click("Sign out")
    assert far.panel.way.state == "signed_out"


def test_a_load_that_breaks_off_can_be_repeated(far, user, proxy):
    approve(far, user)
    proxy.script(LIST_MEMORIES, *[cut] * 3)
    far.click("Load the memories")
    assert "broke off" in far.text
    assert far.panel.memories is None
    far.click("Load the memories")
    assert far.panel.memories is not None


def test_checking_can_be_stopped_and_begun_again(connected, user):
    ask(connected, user)
    connected.click("Stop checking")
    assert "Checking has stopped." in connected.text
    assert "Stop checking" not in connected.labels()
    user.service.decide(connected.panel.way.request.id, "approved")
    connected.click("Check now")
    assert connected.panel.way.state == "approved"


def test_what_nobody_foresaw_is_told_all_the_same(connected):
    connected.panel._desk.press(lambda: {}["nothing"])
    assert "Something unforeseen went wrong (KeyError)." in connected.text
    connected.panel.way._turns.stand = replace(connected.panel.way.stand, state="nowhere")
    connected.panel._draw()
    assert "The panel could not be drawn (KeyError)." in connected.text


# While something is under way


@pytest.fixture
def held(far, user, proxy):
    """A panel whose request is being sent, and does not get through before it is released."""
    came, release = Event(), Event()

    def hold(request, forward):
        came.set()
        assert release.wait(SOON_S)
        return passed(request, forward)

    proxy.script(CREATE_REQUEST, hold)
    answer(far, user).click("Send the request", wait=False)
    assert came.wait(SOON_S)
    yield far, release
    release.set()


def test_a_button_never_waits_for_the_service(held):
    seen, release = held
    assert "Sending the request …" in seen.text
    assert seen.labels() == ["Sign out", "Cancel"]
    release.set()
    seen.settle()
    assert "Step 4 of 5" in seen.text


def test_what_is_under_way_can_be_cancelled(held):
    seen, _ = held
    seen.click("Cancel")
    assert "Step 3 of 5" in seen.text
    assert "Sending" not in seen.text
    assert "Send the request" in seen.labels()


def test_whoever_signs_out_meanwhile_is_signed_out(held):
    seen, release = held
    seen.click("Sign out")
    release.set()
    assert seen.panel.way.state == "signed_out"
    assert "Step 1 of 5" in seen.text


def test_a_second_click_is_none(far, user, proxy):
    answer(far, user)
    (button,) = [each for each in far.buttons() if each.description == "Send the request"]
    button.click()
    button.click()
    far.settle()
    assert len(proxy.requests_to(CREATE_REQUEST)) == 1


def test_a_load_that_is_cancelled_ends(far, user, proxy):
    approve(far, user)
    came, release = Event(), Event()

    def hold(request, forward):
        came.set()
        assert release.wait(SOON_S)
        return passed(request, forward)

    proxy.script(LIST_MEMORIES, hold)
    far.click("Load the memories", wait=False)
    assert came.wait(SOON_S)
    assert "0 memories so far" in far.text
    far.click("Cancel")
    release.set()
    assert far.panel.memories is None
    assert far.panel.access is not None
    far.click("Load the memories")
    assert far.panel.memories is not None


def test_the_answer_can_be_received_where_the_kernel_is_local(connected, user, monkeypatch):
    for name in mf.loopback.SIGNS_OF_ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    connected.panel._draw()
    way, listening = connected.panel.way, Event()
    first = way.stand.address
    way.subscribe(lambda: way.stand.address != first and listening.set())
    connected.click("Receive the answer here", wait=False)
    assert listening.wait(SOON_S)
    assert "Waiting for the answer on this computer" in connected.text
    answer(connected, user)
    assert "Step 3 of 5" in connected.text


def test_a_hub_is_not_offered_to_listen(connected, monkeypatch):
    monkeypatch.setenv("JUPYTERHUB_API_URL", "http://hub")
    connected.panel._draw()
    assert "Receive the answer here" not in connected.labels()

"""What the panel says when something goes wrong, and that there is a way out of it."""

import socket
from threading import Event
from urllib.parse import quote

import pytest
import requests
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
    assert seen.panel.sign_in.client is not None


@pytest.mark.parametrize(
    ("base_url", "key", "asked"),
    [
        ("", "", "Fill in “Address of the API” first."),
        ("http://127.0.0.1:9/api/v1", "", "Fill in “API key” first."),
    ],
)
def test_what_is_not_typed_is_asked_for(bare, show, base_url, key, asked):
    assert asked in signing_in(show, base_url, key).text


def test_an_address_that_is_unsafe_is_refused_in_words(bare, show):
    seen = signing_in(show, "http://memory.example/api/v1", "mf_live_x")
    assert "“Address of the API” is plain http to another machine" in seen.text
    assert "base_url" not in seen.text


def test_a_service_that_cannot_be_reached_is_tried_again(bare, user, show, proxy):
    proxy.script(ISSUE_TOKEN, cut, cut, cut)
    seen = signing_in(show, proxy.base_url, user.service.api_key)
    assert "broke off" in seen.text
    seen.click("Sign in")
    assert "Step 2 of 5" in seen.text


def test_nothing_pasted(connected):
    connected.click("Continue")
    assert "Fill in “Redirected address, or its code” first" in connected.text


def test_a_code_that_was_used(connected, user):
    first = connected.link
    redirected = user.person.authorize(first)
    code = redirected.partition("code=")[2].partition("&")[0]
    connected.panel.sign_in.finish(redirected)
    connected.panel.sign_in.authorize()
    connected.type("Redirected address, or its code", code)
    connected.click("Continue")
    assert "was already used, or has expired. Open the link again: it is a new one." in connected.text
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
    assert "Fill in “Client id” first." in seen.text


def test_a_reason_is_asked_for(user, show):
    seen = show(user.client, flow=user.flow())
    seen.panel.sign_in.authorize()
    answer(seen, user)
    seen.click("Send the request")
    assert "Fill in “Your reason” first" in seen.text
    seen.type("Your reason", "because")
    seen.click("Send the request")
    assert "Step 4 of 5" in seen.text


def test_a_request_that_is_rejected(connected, user):
    ask(connected, user)
    user.service.decide(connected.panel.sign_in.request.id, "rejected")
    connected.until("rejected")
    assert "The user declined" in connected.text
    assert "Nothing was shared." in connected.text
    assert connected.fields()["Your new reason"].value == "a test"
    connected.type("Your new reason", "")
    connected.click("Ask again")
    assert "Fill in “Your new reason” first" in connected.text
    connected.type("Your new reason", "the duplicates alone")
    connected.click("Ask again")
    assert "Step 4 of 5" in connected.text
    assert connected.panel.sign_in.request.reason == "the duplicates alone"
    user.service.decide(connected.panel.sign_in.request.id, "rejected")
    connected.until("rejected")
    connected.click("Choose again")
    assert "Rejected the duplicates alone" in connected.text


def test_whoever_was_rejected_before_is_asked_again_from_the_list(user, show):
    user.service.decide(user.ask("the first").id, "rejected")
    seen = show(user.client, flow=user.flow())
    assert "Rejected the first" in seen.text
    (again,) = [each for each in seen.buttons() if each.tooltip == "Ask again the first"]
    again.click()
    seen.settle()
    seen.type("Your new reason", "the second")
    seen.click("Ask again")
    assert (seen.panel.sign_in.state, seen.panel.sign_in.request.reason) == ("pending", "the second")
    seen.click("Back")
    assert "Ask again" not in seen.labels()  # as one request of this user waits already


def test_a_memory_key_that_is_not_accepted_any_more_leads_to_a_new_connection(far, user, proxy):
    ask(far, user)
    user.service.decide(far.panel.sign_in.request.id, "rejected")
    far.until("rejected")
    proxy.script(CREATE_REQUEST, answered(403))
    far.click("Ask again")
    assert "no longer accepts the key of this user's earlier connection. Connect the user" in far.text
    assert "Step 2 of 5" in far.text
    far.click("Connect a user")
    assert "does not accept" not in far.text
    ask(far, user)
    assert far.panel.sign_in.state == "pending"


def test_an_approval_that_is_taken_back_after_the_load(connected, user):
    approve(connected, user).click("Load the memories")
    user.service.decide(connected.panel.sign_in.request.id, "revoked")
    connected.click("Load again")
    assert connected.panel.sign_in.state == "revoked"
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


def test_a_service_that_is_away_for_a_while_after_the_load_alarms_nobody(far, user, proxy):
    approve(far, user).click("Load the memories")
    proxy.script(GET_REQUEST, answered(503))
    with pytest.raises(mf.ServiceError):
        far.panel.sign_in.check()
    assert "The service is busy. Next check at" in far.text
    assert 'role="alert"' not in far.html
    assert "0 memories in panel.memories" in far.text


def test_a_key_that_is_withdrawn_while_waiting(far, user, proxy):
    ask(far, user)
    proxy.always(GET_REQUEST, answered(401))
    proxy.always(ISSUE_TOKEN, answered(401))
    far.click("Check now")
    assert "the API key is no longer accepted. Sign out" in far.text
    assert "Checking" not in far.labels()
    far.click("Sign out")
    assert far.panel.sign_in.state == "signed_out"


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
    user.service.decide(connected.panel.sign_in.request.id, "approved")
    connected.click("Check now")
    assert connected.panel.sign_in.state == "approved"


def test_what_nobody_foresaw_is_told_all_the_same(connected):
    connected.panel._controller.press(lambda: {}["nothing"])
    assert "An unexpected error occurred (KeyError)." in connected.text
    connected.panel.sign_in._steps.snapshot = replace(connected.panel.sign_in.snapshot, state="nowhere")
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
    assert seen.panel.sign_in.state == "signed_out"
    assert "Step 1 of 5" in seen.text


def test_a_second_click_is_none(far, user, proxy):
    answer(far, user)
    (button,) = [each for each in far.buttons() if each.description == "Send the request"]
    button.click()
    button.click()
    far.settle()
    assert len(proxy.requests_to(CREATE_REQUEST)) == 1


def test_enter_twice_is_once(bare, user, show, proxy):
    seen = show()
    seen.type("Address of the API", proxy.base_url)
    field, enter = seen.fields()["API key"], seen.panel._enter
    for _ in range(2):
        field._handle_custom_msg({"event": "submit"}, [])
    field.value = user.service.api_key
    for number in (1, 2):
        enter._returned.value = number
    seen.settle()
    assert seen.panel.sign_in.state == "signed_in"
    assert len(proxy.requests_to(ISSUE_TOKEN)) == 1


def test_enter_while_something_is_under_way_does_nothing(bare, user, show, proxy):
    came, release = Event(), Event()

    def hold(request, forward):
        came.set()
        assert release.wait(SOON_S)
        return passed(request, forward)

    proxy.script(ISSUE_TOKEN, hold)
    seen = show()
    seen.type("Address of the API", proxy.base_url)
    seen.press_enter("API key", user.service.api_key, wait=False)
    assert came.wait(SOON_S)
    seen.press_enter("API key", wait=False)
    assert "Fill in" not in seen.text
    release.set()
    seen.settle()
    assert seen.panel.sign_in.state == "signed_in"
    assert len(proxy.requests_to(ISSUE_TOKEN)) == 1


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


def test_on_one_machine_the_answer_is_received_and_nothing_is_pasted(local, connected, user):
    assert connected.panel.sign_in.snapshot.is_listening
    assert "Waiting for the answer on this computer" in connected.text
    assert "paste" not in connected.text.lower()
    assert list(connected.fields()) == []
    assert connected.labels() == ["Sign out", "Paste the answer instead", "Back"]
    assert requests.get(user.person.authorize(connected.link), timeout=5).ok
    connected.until("authorized")
    assert "Step 3 of 5" in connected.text


def test_an_answer_that_does_not_get_through_is_pasted(local, connected, user):
    address = user.person.authorize(connected.link)
    connected.click("Paste the answer instead")
    assert "paste it here" in connected.text
    connected.type("Redirected address, or its code", address)
    connected.click("Continue")
    assert "Step 3 of 5" in connected.text
    connected.click("Back")
    connected.click("Connect a user")
    assert not connected.panel.sign_in.snapshot.is_listening
    assert f"redirect_uri={quote(user.service.redirect_uri, safe='')}&" in connected.link
    connected.click("Receive the answer here")
    assert connected.panel.sign_in.snapshot.is_listening


def test_a_script_answers_while_the_panel_listens(local, connected, user):
    way = connected.panel.sign_in
    way.finish(user.person.authorize(way.snapshot.address))
    assert "Step 3 of 5" in connected.text


def test_a_consent_that_is_denied_while_the_panel_listens_leaves_a_link(local, bare, user, show):
    service = user.service
    seen = show(user.client)
    seen.type("Client id", service.client_id)
    seen.type("Client secret", service.client_secret)
    seen.type("Redirect address, as registered", service.redirect_uri)
    seen.click("Connect a user")
    first = seen.link
    assert requests.get(user.person.authorize(first, allow=False), timeout=5).ok
    seen.until_it_says("The user chose not to allow the connection.")
    assert seen.link != first
    answer(seen, user)
    assert "Step 3 of 5" in seen.text


def test_a_port_that_is_taken_is_not_listened_on(local, user, show):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        redirect_uri = f"http://127.0.0.1:{taken.getsockname()[1]}/callback"
        seen = show(user.client, flow=user.flow(redirect_uri=redirect_uri))
        assert not seen.panel.sign_in.snapshot.is_listening
        assert "paste it here" in seen.text
        assert 'role="alert"' not in seen.html


def test_a_link_that_is_pasted_is_called_that(connected):
    connected.type("Redirected address, or its code", connected.link)
    connected.click("Continue")
    assert "This is the link itself. Open it, and paste the address of the page" in connected.text
    with pytest.raises(mf.OAuthError, match="is the link itself") as refused:
        connected.panel.sign_in.finish(connected.link)
    assert refused.value.code == "link_pasted"


def test_a_hub_is_not_offered_to_listen(connected, monkeypatch):
    monkeypatch.setenv("JUPYTERHUB_API_URL", "http://hub")
    connected.panel._draw()
    assert "Receive the answer here" not in connected.labels()

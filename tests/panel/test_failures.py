"""What the panel says when something goes wrong, and that there is a way out of it."""

import socket
from urllib.parse import quote

import pytest
import requests
from msgspec.structs import replace

import memframe as mf
from memframe.wire import CREATE_REQUEST, GET_REQUEST, ISSUE_TOKEN, LIST_MEMORIES
from tests.faults import answered
from tests.panel.conftest import SOON_S, answer, approve, ask, fill_in
from tests.signin.conftest import held

__all__ = ["held"]

ANSWER = "Redirected address, or its code"


def signing_in(show, base_url, key):
    seen = show()
    seen.type("Address of the API", base_url)
    seen.type("API key", key)
    seen.click("Sign in")
    return seen


def test_a_key_that_is_refused_is_typed_again(bare, user, show):
    seen = signing_in(show, user.service.base_url, "mf_live_wrong")
    assert "The service does not accept this API key." in seen.text
    assert 'role="alert"' in seen.html
    seen.type("API key", user.service.api_key)
    seen.click("Sign in")
    assert "Step 2 of 5" in seen.text
    assert "does not accept" not in seen.text


@pytest.mark.parametrize(
    ("base_url", "key", "says"),
    [
        ("", "", "Fill in “Address of the API” first."),
        ("http://127.0.0.1:9/api/v1", "", "Fill in “API key” first."),
        ("http://memory.example/api/v1", "x", "“Address of the API” uses plain http to another machine"),
    ],
)
def test_what_is_missing_or_unsafe_is_named_as_on_the_screen(bare, show, base_url, key, says):
    seen = signing_in(show, base_url, key)
    assert says in seen.text
    assert "base_url" not in seen.text


def test_a_wrong_answer_is_named_and_the_right_one_goes_on(connected, user):
    def paste(text):
        connected.type(ANSWER, text)
        connected.click("Continue")
        return connected.text

    connected.click("Continue")
    assert f"Fill in “{ANSWER}” first" in connected.text
    assert "This is the link itself. Open it, and paste the address of the page" in paste(connected.link)
    denied = user.person.authorize(connected.link, allow=False)
    assert "The user chose not to allow the connection. Nothing was shared." in paste(denied)
    connected.click("Back")
    connected.click("Connect a user")
    first = connected.link
    redirected = user.person.authorize(first)
    connected.panel.sign_in.finish(redirected)
    connected.panel.sign_in.authorize()
    used = paste(redirected.partition("code=")[2].partition("&")[0])
    assert "was already used, or has expired. Open the link again: it is a new one." in used
    assert connected.link != first
    answer(connected, user)
    assert "Step 3 of 5" in connected.text


def test_settings_of_the_application_are_asked_for_and_typed_again(bare, user, show):
    seen = show(user.client)
    seen.click("Connect a user")
    assert "Fill in “Client id” first." in seen.text
    fill_in(seen, user.service, "client_id", "redirect_uri")
    seen.type("Client secret", "mfs_wrong")
    seen.click("Connect a user")
    answer(seen, user)
    assert "does not know this application. Go back" in seen.text
    seen.click("Back")
    fill_in(seen, user.service, "client_id", "redirect_uri", "client_secret")
    seen.click("Connect a user")
    answer(seen, user)
    assert "Step 3 of 5" in seen.text
    seen.click("Send the request")
    assert "Fill in “Your reason” first" in seen.text
    seen.type("Your reason", "because")
    seen.click("Send the request")
    assert "Step 4 of 5" in seen.text


def test_a_user_who_declined_is_asked_again_with_another_reason(connected, user):
    ask(connected, user)
    user.service.decide(connected.panel.sign_in.request.id, "rejected")
    connected.until_it_says("The user declined")
    assert connected.fields()["Your new reason"].value == "a test"
    connected.type("Your new reason", "the duplicates alone")
    connected.click("Ask again")
    assert "Step 4 of 5" in connected.text
    assert connected.panel.sign_in.request.reason == "the duplicates alone"
    connected.click("Back")
    assert "Ask again" not in connected.labels()  # as one request of this user waits already


def test_an_approval_that_is_revoked_after_the_load(connected, user):
    approve(connected, user).click("Load the memories")
    user.service.decide(connected.panel.sign_in.request.id, "revoked")
    connected.click("Load again")
    assert connected.panel.sign_in.state == "revoked"
    assert "The user revoked the approval" in connected.text
    assert "still in panel.memories" in connected.text
    assert connected.panel.access is None
    assert connected.panel.memories is not None


def test_a_busy_service_alarms_nobody(far, user, proxy):
    proxy.script(GET_REQUEST, answered(429, Retry_After="120"))
    ask(far, user)
    far.until_it_says("The service is busy. Next check at")
    assert 'role="alert"' not in far.html
    far.click("Check now")
    assert "busy" not in far.text
    user.service.decide(far.panel.sign_in.request.id, "approved")
    far.until("approved")
    far.click("Load the memories")
    proxy.script(GET_REQUEST, answered(503))
    with pytest.raises(mf.ServiceError):
        far.panel.sign_in.check()
    assert "The service is busy. Next check at" in far.text
    assert 'role="alert"' not in far.html
    assert "0 memories in panel.memories" in far.text


def test_checking_can_be_stopped_and_begun_again(connected, user):
    ask(connected, user)
    connected.click("Stop checking")
    assert "Checking has stopped." in connected.text
    assert "Stop checking" not in connected.labels()
    user.service.decide(connected.panel.sign_in.request.id, "approved")
    connected.click("Check now")
    assert connected.panel.sign_in.state == "approved"


def test_an_unforeseen_error_is_shown(connected):
    connected.panel._controller.run_action(lambda: {}["nothing"])
    assert "An unexpected error occurred (KeyError)." in connected.text
    connected.panel.sign_in.snapshot = replace(connected.panel.sign_in.snapshot, state="nowhere")
    connected.panel._draw()
    assert "The panel could not be drawn (KeyError)." in connected.text


# While something is under way


@pytest.mark.parametrize(
    ("meanwhile", "step"), [(None, "Step 4"), ("Cancel", "Step 3"), ("Sign out", "Step 1")]
)
def test_a_button_never_waits_for_the_service_and_can_be_cancelled(far, user, proxy, held, meanwhile, step):
    proxy.script(CREATE_REQUEST, held)
    (button,) = [each for each in answer(far, user).buttons() if each.description == "Send the request"]
    button.click()
    button.click()
    assert held.came.wait(SOON_S)
    assert "Sending the request …" in far.text
    assert far.labels() == ["Sign out", "Cancel"]
    if meanwhile:
        far.click(meanwhile)
    held.release.set()
    far.settle()
    assert f"{step} of 5" in far.text
    assert "Sending" not in far.text
    assert len(proxy.requests_to(CREATE_REQUEST)) == 1


def test_enter_once_more_is_no_second_click(bare, user, show, proxy, held):
    proxy.script(ISSUE_TOKEN, held)
    seen = show()
    seen.type("Address of the API", proxy.base_url)
    field, enter = seen.fields()["API key"], seen.panel._enter
    for _ in range(2):
        field._handle_custom_msg({"event": "submit"}, [])
    field.value = user.service.api_key
    for number in (1, 2):
        enter._returned.value = number
    assert held.came.wait(SOON_S)
    seen.press_enter("API key", wait=False)
    assert "Fill in" not in seen.text
    held.release.set()
    seen.settle()
    assert seen.panel.sign_in.state == "signed_in"
    assert len(proxy.requests_to(ISSUE_TOKEN)) == 1


def test_a_load_that_is_cancelled_ends(far, user, proxy, held):
    approve(far, user)
    proxy.script(LIST_MEMORIES, held)
    far.click("Load the memories", wait=False)
    assert held.came.wait(SOON_S)
    assert "0 memories so far" in far.text
    far.click("Cancel")
    held.release.set()
    assert far.panel.memories is None
    assert far.panel.access is not None
    far.click("Load the memories")
    assert far.panel.memories is not None


# Where the browser is on the same machine


def test_on_one_machine_the_answer_is_received_and_nothing_is_pasted(local, connected, user):
    assert connected.panel.sign_in.snapshot.is_listening
    assert "Waiting for the answer on this computer" in connected.text
    assert "paste" not in connected.text.lower()
    assert list(connected.fields()) == []
    assert connected.labels() == ["Sign out", "Paste the answer instead", "Back"]
    first = connected.link
    assert requests.get(user.person.authorize(first, allow=False), timeout=5).ok
    connected.until_it_says("The user chose not to allow the connection.")
    assert connected.link != first
    connected.click("Receive the answer here", wait=False)
    connected.until_it_says("Waiting for the answer on this computer")
    assert requests.get(user.person.authorize(connected.link), timeout=5).ok
    connected.until_it_says("Step 3 of 5")


def test_an_answer_that_does_not_get_through_is_pasted(local, connected, user):
    address = user.person.authorize(connected.link)
    connected.click("Paste the answer instead")
    assert "paste it here" in connected.text
    connected.type(ANSWER, address)
    connected.click("Continue")
    assert "Step 3 of 5" in connected.text
    connected.click("Back")
    connected.click("Connect a user")
    assert not connected.panel.sign_in.snapshot.is_listening
    assert f"redirect_uri={quote(user.service.redirect_uri, safe='')}&" in connected.link
    connected.click("Receive the answer here")
    assert connected.panel.sign_in.snapshot.is_listening


def test_where_nobody_can_reach_a_listener_there_is_none(local, user, show, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        redirect_uri = f"http://127.0.0.1:{taken.getsockname()[1]}/callback"
        seen = show(user.client, flow=user.flow(redirect_uri=redirect_uri))
        assert not seen.panel.sign_in.snapshot.is_listening
        assert "paste it here" in seen.text
        assert 'role="alert"' not in seen.html
        assert "Receive the answer here" in seen.labels()
    monkeypatch.setenv("JUPYTERHUB_API_URL", "http://hub")
    seen.panel._draw()
    assert "Receive the answer here" not in seen.labels()

"""The panel, from the first field to the loaded memories, and what is there to see and to click on the way."""

import pickle

import ipywidgets
import pandas as pd
import pytest

import memframe as mf
from memframe.panel.controller import MIN_INTERVAL_S, _LoadProgress
from memframe.sample import load_sample, load_sample_tags
from tests.canaries import found_in
from tests.panel.conftest import answer, approve, ask, everything_kept


def test_the_whole_walk_by_hand(bare, user, show):
    service = user.service
    service.import_memories(user.user_id, load_sample()[:30], load_sample_tags())
    seen = show(reason="Weekly review")
    assert list(seen.fields()) == ["Address of the API", "API key"]
    assert "Step 1 of 5" in seen.text

    seen.type("Address of the API", service.base_url)
    seen.type("API key", service.api_key)
    seen.click("Sign in")
    assert "Step 2 of 5" in seen.text
    assert f"At {service.base_url.split('/')[2]}." in seen.text

    seen.type("Address of the OAuth server", service.auth_url)
    seen.type("Client id", service.client_id)
    seen.type("Client secret", service.client_secret)
    seen.type("Redirect address, as registered", service.redirect_uri)
    seen.click("Connect a user")
    assert seen.link.startswith(f"{service.auth_url}/oauth/authorize?")

    answer(seen, user)
    assert "Step 3 of 5" in seen.text
    assert seen.fields()["Your reason"].value == "Weekly review"
    seen.click("Send the request")
    assert "Step 4 of 5" in seen.text

    user.person.decide(service.dashboard_url)
    seen.until("approved")
    assert "Step 5 of 5" in seen.text
    assert "“Weekly review”, asked" in seen.text

    seen.click("Load the memories")
    assert "30 memories of 2020 in panel.memories, and 18 tags in panel.tags" in seen.text
    assert len(seen.panel.memories) == 30
    assert len(seen.panel.tags) == 18
    assert len(mf.load_memories(seen.panel.access, progress=False)) == 30


def test_enter_does_what_the_button_does(bare, user, show):
    service = user.service
    seen = show(reason="x")
    seen.press_enter("Address of the API", service.base_url)
    assert "Fill in “API key” first." in seen.text
    seen.press_enter("API key", "mf_live_wrong")
    assert "does not accept this API key" in seen.text
    seen.type("API key", "mf_live_left_before")
    seen.press_enter("API key", service.api_key)
    assert "Step 2 of 5" in seen.text
    seen.type("Address of the OAuth server", service.auth_url)
    seen.type("Client secret", service.client_secret)
    seen.press_enter("Client id", service.client_id)
    assert "Fill in “Redirect address, as registered” first." in seen.text
    seen.press_enter("Redirect address, as registered", service.redirect_uri)
    seen.press_enter("Redirected address, or its code", user.person.authorize(seen.link))
    assert "Step 3 of 5" in seen.text


def test_enter_in_a_field_that_is_there_no_more_does_nothing(connected, user):
    field = connected.fields()["Redirected address, or its code"]
    answer(connected, user)
    field._handle_custom_msg({"event": "submit"}, [])
    connected.panel._enter._returned.value = connected.panel._enter._sent.value
    connected.settle()
    assert 'role="alert"' not in connected.html


def test_what_the_environment_knows_is_not_asked_for(environment, show):
    seen = show()
    assert seen.panel.sign_in.client is not None
    assert "with the key from the environment variable MEMFRAME_API_KEY" in seen.text
    assert seen.fields().keys() <= {"Redirected address, or its code"}


def test_a_client_and_a_flow_are_not_asked_for_again(connected, user):
    assert connected.panel.sign_in.client is user.client
    assert connected.panel.sign_in.state == "authorizing"
    assert list(connected.fields()) == ["Redirected address, or its code"]


def test_every_state_has_one_primary_button(connected, user):
    primary = [connected.primary()]
    answer(connected, user)
    primary.append(connected.primary())
    connected.click("Send the request")
    primary.append(connected.primary())
    user.service.decide(connected.panel.sign_in.request.id, "approved")
    connected.until("approved")
    primary.append(connected.primary())
    connected.click("Load the memories")
    primary.append(connected.primary())
    user.service.decide(connected.panel.sign_in.request.id, "revoked")
    connected.panel.sign_in.check()
    primary.append(connected.primary())
    connected.click("Choose again")
    primary.append(connected.primary())
    connected.click("Sign out")
    primary.append(connected.primary())
    assert primary == [
        ["Continue"],
        ["Send the request"],
        ["Check now"],
        ["Load the memories"],
        ["Load again"],
        ["Ask again"],
        ["Connect a user"],
        ["Sign in"],
    ]


def test_a_panel_follows_a_script(user, show):
    seen = show(user.client, flow=user.flow())
    way = seen.panel.sign_in
    way.finish(user.person.authorize(way.authorize()))
    assert "Step 3 of 5" in seen.text
    way.ask("from a script")
    assert "“from a script”" in seen.text
    user.service.decide(way.request.id, "approved")
    seen.until("approved")
    assert seen.panel.access is None
    way.open()
    assert "The access is open, as panel.access" in seen.text
    way.load(progress=False)
    assert seen.panel.memories.empty
    assert "0 memories in panel.memories" in seen.text


def test_requests_are_listed_and_an_approved_one_opens_with_one_click(user, show):
    approved, pending, rejected = (user.ask(reason) for reason in ("the first", "the second", "the third"))
    user.service.decide(approved.id, "approved")
    user.service.decide(rejected.id, "rejected")
    seen = show(user.client, flow=user.flow())
    ours = [request for request in seen.panel.sign_in.requests if request.user_id == user.user_id]
    assert [request.id for request in ours] == [rejected.id, pending.id, approved.id]
    (button,) = [each for each in seen.buttons() if each.tooltip == "Open the first"]
    assert f"Approved the first user {user.user_id[:8]}, asked" in seen.text
    button.click()
    seen.settle()
    assert seen.panel.access.user_id == user.user_id
    assert "An existing request was chosen" in seen.text


def test_a_request_that_waits_is_waited_for_again(user, show):
    request = user.ask("of yesterday")
    seen = show(user.client, flow=user.flow())
    (button,) = [each for each in seen.buttons() if each.tooltip == "Wait of yesterday"]
    button.click()
    seen.settle()
    assert seen.panel.sign_in.state == "pending"
    user.service.decide(request.id, "approved")
    seen.until("approved")


def test_the_list_is_refreshed_by_itself(user, show):
    request = user.ask("the first")
    seen = show(user.client, flow=user.flow())
    assert "Pending the first" in seen.text
    user.service.decide(request.id, "approved")
    seen.until_it_says("Approved the first")


def test_of_many_requests_some_are_shown_and_more_on_demand(user, show):
    for number in range(8):
        user.ask(f"number {number}")
    seen = show(user.client, flow=user.flow())
    assert [each.tooltip for each in seen.buttons() if each.description == "Wait"] == [
        f"Wait number {number}" for number in (7, 6, 5, 4, 3, 2)
    ]
    seen.click("Show more (2)")
    assert "number 0" in seen.text
    assert not [label for label in seen.labels() if label.startswith("Show more")]


def test_what_this_user_was_asked_before_is_offered_before_asking_again(connected, user):
    earlier = user.ask("the same in spring")
    answer(connected, user)
    assert "You have asked this user before" in connected.text
    (button,) = [each for each in connected.buttons() if each.tooltip == "Wait the same in spring"]
    button.click()
    connected.settle()
    assert connected.panel.sign_in.request.id == earlier.id


def test_the_preview_is_shown_on_demand_and_gone_again(connected, user):
    user.service.import_memories(user.user_id, load_sample()[:3])
    approve(connected, user).click("Load the memories")
    name = "Ilka Tornow"
    assert name not in everything_kept(connected.panel)
    connected.click("Show a preview", wait=False)
    assert name in connected.text
    connected.click("Hide the preview", wait=False)
    assert name not in everything_kept(connected.panel)


def test_memories_that_cannot_be_opened_are_counted(connected, user, stranger):
    user.service.import_memories(user.user_id, load_sample()[:3])
    approve(connected, user)
    user.client.create_memory_blob(
        user.user_id,
        memory_key=user.service.memory_key(user.user_id),
        content="bWVtZnJhbWU" * 8,
        title="no seal of ours",
    )
    connected.click("Load the memories")
    damaged = int(connected.panel.memories.content_error.notna().sum())
    assert (f"{damaged} of 4 could not be decrypted" in connected.text) == bool(damaged)


def test_several_panels_do_not_disturb_each_other(user, show):
    first, second = (show(user.client, flow=user.flow()) for _ in range(2))
    ours = [seen.panel.sign_in for seen in (first, second)]
    ours[0].finish(user.person.authorize(ours[0].authorize()))
    assert ours[0].state == "authorized"
    assert ours[1].state in {"signed_in", "authorizing"}


def test_the_display_is_the_same_whatever_is_on_it(connected, user):
    before = connected.panel._repr_mimebundle_()
    answer(connected, user)
    after = connected.panel._repr_mimebundle_()
    assert before == after
    assert before["text/plain"].startswith("memframe.Panel: ")
    assert repr(connected.panel) == "<memframe.Panel>"
    assert "application/vnd.jupyter.widget-view+json" in before


@pytest.mark.parametrize("options", [{"poll_s": 0}, {"dashboard_url": "http://elsewhere.example/"}])
def test_what_makes_no_sense_is_refused_before_anything_is_shown(options):
    with pytest.raises(mf.ConfigError):
        mf.Panel(**options)


def test_the_dashboard_is_linked_where_it_is_known(user, show):
    seen = show(user.client, flow=user.flow(), dashboard_url=user.service.dashboard_url, reason="x")
    seen.panel.sign_in.authorize()
    ask(seen, user)
    assert seen.link == user.service.dashboard_url


# Secrets


def test_no_secret_stays_in_a_widget_at_any_moment(bare, user, show):
    service = user.service
    user.service.import_memories(user.user_id, load_sample()[:3])
    secrets = {"api key": service.api_key, "client secret": service.client_secret}
    moments = {}
    seen = show(reason="x")
    seen.type("Address of the API", service.base_url)
    seen.type("API key", service.api_key)
    moments["typed"] = everything_kept(seen.panel)
    seen.click("Sign in")
    moments["signed in"] = everything_kept(seen.panel)
    seen.type("Address of the OAuth server", service.auth_url)
    seen.type("Client id", service.client_id)
    seen.type("Client secret", service.client_secret)
    seen.type("Redirect address, as registered", service.redirect_uri)
    seen.click("Connect a user")
    secrets["verifier"] = seen.panel.sign_in.snapshot.flow._attempt.verifier.reveal()
    redirected = user.person.authorize(seen.link)
    secrets["code"] = redirected.partition("code=")[2].partition("&")[0]
    seen.type("Redirected address, or its code", redirected)
    moments["pasted"] = everything_kept(seen.panel)
    seen.click("Continue")
    tokens = seen.panel.sign_in.tokens
    secrets |= {
        name: getattr(tokens, name).reveal() for name in ("access_token", "refresh_token", "memory_key")
    }
    seen.click("Send the request")
    moments["pending"] = everything_kept(seen.panel)
    user.service.decide(seen.panel.sign_in.request.id, "approved")
    seen.until("approved")
    seen.click("Load the memories")
    secrets["encryption key"] = seen.panel.access.credentials.encryption_key.reveal()
    secrets["token"] = seen.panel.sign_in.client._tokens.token().token.reveal()
    moments["loaded"] = everything_kept(seen.panel)
    seen.panel.close()
    moments["closed"] = everything_kept(seen.panel)
    assert len(secrets) == 9
    assert {moment: found_in(text, secrets) for moment, text in moments.items()} == {
        moment: [] for moment in moments
    }


def test_a_secret_that_was_spent_is_forgotten(bare, user, show):
    seen = show()
    seen.type("Address of the API", user.service.base_url)
    seen.type("API key", "mf_live_wrong")
    assert seen.fields()["API key"].placeholder.startswith("Taken: 13 characters")
    seen.click("Sign in")
    assert seen.fields()["API key"].placeholder == ""
    seen.click("Sign in")
    assert "Fill in “API key” first" in seen.text


def test_a_secret_is_kept_for_a_second_try_where_nobody_answered(bare, show):
    seen = show()
    seen.type("Address of the API", "http://127.0.0.1:9/api/v1")
    seen.type("API key", "mf_live_something")
    seen.click("Sign in")
    assert "Cannot reach 127.0.0.1:9" in seen.text
    assert seen.fields()["API key"].placeholder.startswith("Taken: 17 characters")


def test_words_of_strangers_are_text(user, show):
    hostile = "<img src=x onerror=alert(1)>\"'><script>alert(1)</script>"
    request = user.ask(hostile)
    seen = show(user.client, flow=user.flow())
    seen.panel.sign_in.choose(request.id)
    assert "<img" not in seen.html
    assert "<script" not in seen.html
    assert hostile in seen.text


def test_dollars_of_strangers_are_no_formula(connected):
    """MathJax leaves out what is within these classes: version 3 the first one, version 2 the other."""
    assert {"mathjax_ignore", "tex2jax_ignore"} <= {*connected.panel._dom_classes}


def test_a_panel_is_not_pickled_with_what_it_holds(connected):
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(connected.panel)


def test_a_panel_that_is_closed_leaves_nothing(user, show):
    seen = show(user.client, flow=user.flow())
    way = seen.panel.sign_in
    seen.panel.close()
    seen.panel.close()
    assert (way.state, way.client) == ("signed_out", None)
    assert ipywidgets.Widget.get_manager_state()["state"] == {}


# What a front end bears


def test_a_load_of_any_size_is_drawn_twice_a_second_at_most(user):
    seconds, shown = [0.0], []
    count = _LoadProgress(shown.append, mf.SignIn(user.client), lambda: seconds[0])
    for number in range(10_000):
        seconds[0] += 0.001
        count(number, None, "memories")
    assert 10 / MIN_INTERVAL_S - 1 <= len(shown) <= 10 / MIN_INTERVAL_S


def test_drawing_the_same_again_sends_nothing(connected):
    changes = []
    for widget in connected.widgets():
        widget.observe(changes.append)
        widget.layout.observe(changes.append)
    for _ in range(100):
        connected.panel._draw()
    assert changes == []


def test_a_frame_that_was_shown_is_not_changed(connected, user):
    user.service.import_memories(user.user_id, load_sample()[:3])
    approve(connected, user).click("Load the memories")
    before = connected.panel.memories.copy(deep=True)
    connected.click("Show a preview", wait=False)
    pd.testing.assert_frame_equal(connected.panel.memories, before)

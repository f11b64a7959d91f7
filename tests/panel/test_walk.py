"""The panel, from the first field to the loaded memories, and what is there to see and to click on the way."""

import pickle

import ipywidgets
import pandas as pd
import pytest

import memframe as mf
from memframe.panel.controller import REDRAW_INTERVAL_S, PanelController
from memframe.sample import load_sample, load_sample_tags
from memframe.wire import GET_CREDENTIALS
from tests.canaries import found_in
from tests.faults import changed
from tests.panel.conftest import answer, approve, ask, everything_kept, fill_in


def test_the_whole_walk_leaves_no_secret_in_a_widget_at_any_moment(bare, user, show):
    service = user.service
    service.import_memories(user.user_id, load_sample()[:30], load_sample_tags())
    secrets = {"api key": service.api_key, "client secret": service.client_secret}
    seen, moments = show(reason="Weekly review"), {}

    def look(moment):
        moments[moment] = everything_kept(seen.panel)

    assert list(seen.fields()) == ["Address of the API", "API key"]
    assert "Step 1 of 5" in seen.text
    fill_in(seen, service, "base_url", "api_key")
    look("typed")
    seen.click("Sign in")
    look("signed in")
    assert "Step 2 of 5" in seen.text
    assert f"At {service.base_url.split('/')[2]}." in seen.text
    fill_in(seen, service, "auth_url", "client_id", "client_secret", "redirect_uri")
    seen.click("Connect a user")
    assert seen.link.startswith(f"{service.auth_url}/oauth/authorize?")
    secrets["verifier"] = seen.panel.sign_in.snapshot.flow._attempt.verifier.reveal()
    redirected = user.person.authorize(seen.link)
    secrets["code"] = redirected.partition("code=")[2].partition("&")[0]
    seen.type("Redirected address, or its code", redirected)
    look("pasted")
    seen.click("Continue")
    tokens = seen.panel.sign_in.tokens
    for name in ("access_token", "refresh_token", "memory_key"):
        secrets[name] = getattr(tokens, name).reveal()
    assert "Step 3 of 5" in seen.text
    assert seen.fields()["Your reason"].value == "Weekly review"
    seen.click("Send the request")
    look("pending")
    assert "Step 4 of 5" in seen.text
    user.person.decide(service.dashboard_url)
    seen.until_it_says("Step 5 of 5")
    assert "“Weekly review”, asked" in seen.text
    seen.click("Load the memories")
    assert "30 memories of 2020 in panel.memories, and 18 tags in panel.tags" in seen.text
    assert (len(seen.panel.memories), len(seen.panel.tags)) == (30, 18)
    secrets["encryption key"] = seen.panel.access.credentials.encryption_key.reveal()
    secrets["token"] = seen.panel.sign_in.client._tokens.token().token.reveal()
    look("loaded")
    naive = ipywidgets.Password(value=service.api_key)  # never shown, and kept all the same
    assert found_in(everything_kept(seen.panel), secrets) == ["api key"]
    for part in (naive.layout, naive.style, naive):
        part.close()
    seen.panel.close()
    look("closed")
    assert len(secrets) == 9
    assert {name: found_in(text, secrets) for name, text in moments.items()} == {name: [] for name in moments}


def test_what_environment_or_arguments_have_is_not_asked_for(environment, show):
    seen = show()
    assert "with the key from the environment variable MEMFRAME_API_KEY" in seen.text
    assert seen.fields().keys() <= {"Redirected address, or its code"}
    given = show(environment.client, flow=environment.flow(), reason="a test").panel.sign_in
    assert (given.client, given.state) == (environment.client, "authorizing")


def test_every_state_has_one_primary_button(connected, user):
    primary = [connected.primary()]
    for step in (
        lambda: answer(connected, user),
        lambda: connected.click("Send the request"),
        lambda: approve_now(connected, user),
        lambda: connected.click("Load the memories"),
        lambda: (user.service.decide(request_id(connected), "revoked"), connected.panel.sign_in.check()),
        lambda: connected.click("Choose again"),
        lambda: connected.click("Sign out"),
    ):
        step()
        primary.append(connected.primary())
    labels = (
        "Continue|Send the request|Check now|Load the memories|Load again|Ask again|Connect a user|Sign in"
    )
    assert primary == [[label] for label in labels.split("|")]


def request_id(seen):
    return seen.panel.sign_in.request.id


def approve_now(seen, user):
    user.service.decide(request_id(seen), "approved")
    seen.until_primary("Load the memories")  # it is drawn a moment after the state has changed


def test_a_panel_follows_a_script_and_no_other_panel(user, show):
    seen, other = (show(user.client, flow=user.flow()) for _ in range(2))
    sign_in = seen.panel.sign_in
    sign_in.finish(user.person.authorize(sign_in.authorize()))
    assert "Step 3 of 5" in seen.text
    sign_in.ask("from a script")
    assert "“from a script”" in seen.text
    user.service.decide(sign_in.request.id, "approved")
    seen.until("approved")
    sign_in.open()
    assert "The access is open, as panel.access" in seen.text
    sign_in.load(progress=False)
    assert "0 memories in panel.memories" in seen.text
    assert other.panel.sign_in.state in {"signed_in", "authorizing"}


# Requests of before


def test_requests_are_listed_and_chosen_with_one_click(user, show):
    approved, pending, rejected = (user.ask(reason) for reason in ("the first", "the second", "the third"))
    seen = show(user.client, flow=user.flow())
    assert "Pending the first" in seen.text
    user.service.decide(approved.id, "approved")
    user.service.decide(rejected.id, "rejected")
    seen.until_it_says("Approved the first")  # it is refreshed by itself
    seen.until_it_says("Rejected the third")
    ours = [request.id for request in seen.panel.sign_in.requests if request.user_id == user.user_id]
    assert ours == [rejected.id, pending.id, approved.id]
    assert f"Approved the first user {user.user_id[:8]}, asked" in seen.text
    seen.click_row("Open the first")
    assert seen.panel.access.user_id == user.user_id
    assert "An existing request was chosen" in seen.text
    seen.click("Back")
    seen.click_row("Wait the second")
    approve_now(seen, user)


def test_of_many_requests_some_are_shown_and_more_on_demand(user, show):
    for number in range(8):
        user.ask(f"number {number}")
    seen = show(user.client, flow=user.flow())
    waiting = [each.tooltip for each in seen.buttons() if each.description == "Wait"]
    assert waiting == [f"Wait number {number}" for number in (7, 6, 5, 4, 3, 2)]
    seen.click("Show more (2)")
    assert "number 0" in seen.text
    assert not [label for label in seen.labels() if label.startswith("Show more")]


def test_what_this_user_was_asked_before_is_offered_before_asking_again(connected, user):
    earlier = user.ask("the same in spring")
    answer(connected, user)
    assert "You have asked this user before" in connected.text
    connected.click_row("Wait the same in spring")
    assert connected.panel.sign_in.request.id == earlier.id


# What was loaded


def test_the_preview_is_shown_on_demand_and_gone_again(connected, user):
    user.service.import_memories(user.user_id, load_sample()[:3])
    approve(connected, user).click("Load the memories")
    before, name = connected.panel.memories.copy(deep=True), "Ilka Tornow"
    assert name not in everything_kept(connected.panel)
    connected.click("Show a preview", wait=False)
    assert name in connected.text
    connected.click("Hide the preview", wait=False)
    assert name not in everything_kept(connected.panel)
    pd.testing.assert_frame_equal(connected.panel.memories, before)


def test_the_preview_masks_secrets_as_it_is_saved_with_the_notebook(connected, user):
    texts = [
        {"title": "Door", "content": "The door code is 2580#, and her PIN is 47110815."},
        {"title": "Mail", "content": "Write to ilka@tornow.example about the lake."},
        {"title": "Vault", "content": "The padlock opens with the usual combination"},
    ]
    user.service.import_memories(user.user_id, texts)
    approve(connected, user).click("Load the memories")
    connected.click("Show a preview", wait=False)
    assert "about the lake" in connected.text
    kept = everything_kept(connected.panel)
    secrets = (
        "2580#",
        "47110815",
        "ilka@tornow",
        "usual combination",
    )  # four digits may stand in an id by chance
    assert not [secret for secret in secrets if secret in kept]


def test_memories_that_cannot_be_decrypted_are_counted(far, user, proxy):
    user.service.import_memories(user.user_id, load_sample()[:3])
    proxy.always(GET_CREDENTIALS, changed(lambda keys: keys.update(encryption_key="0f1e" * 16)))
    approve(far, user).click("Load the memories")
    assert "3 of 3 could not be decrypted: content_error says why." in far.text


def test_the_display_is_the_same_whatever_is_on_it(connected, user):
    before = connected.panel._repr_mimebundle_()
    answer(connected, user)
    assert connected.panel._repr_mimebundle_() == before
    assert before["text/plain"].startswith("memframe.Panel: ")
    assert connected.panel._display_() == before["text/plain"]  # marimo
    assert repr(connected.panel) == "<memframe.Panel>"
    assert "application/vnd.jupyter.widget-view+json" in before
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(connected.panel)


@pytest.mark.parametrize("options", [{"poll_s": 0}, {"dashboard_url": "http://elsewhere.example/"}])
def test_what_makes_no_sense_is_refused_before_anything_is_shown(options):
    with pytest.raises(mf.ConfigError):
        mf.Panel(**options)


def test_the_dashboard_is_linked_where_it_is_known(user, show):
    seen = show(user.client, flow=user.flow(), dashboard_url=user.service.dashboard_url, reason="x")
    ask(seen, user)
    assert seen.link == user.service.dashboard_url


# Secrets


def test_a_secret_is_kept_for_a_second_try_only_where_nobody_answered(bare, user, show):
    seen = show()
    for address, placeholder in (
        ("http://127.0.0.1:9/api/v1", "Taken: 13 characters. Type again to replace them."),
        (user.service.base_url, ""),
    ):
        seen.type("Address of the API", address)
        seen.type("API key", "mf_live_wrong")
        assert seen.fields()["API key"].placeholder.startswith("Taken: 13 characters")
        seen.click("Sign in")
        assert seen.fields()["API key"].placeholder == placeholder
    seen.click("Sign in")
    assert "Fill in “API key” first" in seen.text


def test_words_of_strangers_are_text_and_no_formula(user, show):
    hostile = "<img src=x onerror=alert(1)>\"'><script>alert(1)</script>"
    request = user.ask(hostile)
    seen = show(user.client, flow=user.flow())
    seen.panel.sign_in.choose(request.id)
    assert "<img" not in seen.html
    assert "<script" not in seen.html
    assert hostile in seen.text
    assert {"mathjax_ignore", "tex2jax_ignore"} <= {*seen.panel._dom_classes}  # of MathJax 3 and 2


def test_a_panel_that_is_closed_leaves_nothing(user, show):
    seen = show(user.client, flow=user.flow())
    sign_in = seen.panel.sign_in
    seen.panel.close()
    seen.panel.close()
    assert (sign_in.state, sign_in.client) == ("signed_out", None)
    assert ipywidgets.Widget.get_manager_state()["state"] == {}


# What a front end bears


def test_a_load_of_any_size_is_drawn_twice_a_second_at_most(user):
    seconds, shown = [0.0], []
    controller = PanelController(
        mf.SignIn(user.client), lambda: shown.append(seconds[0]), poll_s=1, clock=lambda: seconds[0]
    )
    count = controller.report_load()
    for number in range(10_000):
        seconds[0] += 0.001
        count(number, None, "memories")
    assert 10 / REDRAW_INTERVAL_S - 1 <= len(shown) <= 10 / REDRAW_INTERVAL_S


def test_drawing_the_same_again_sends_nothing(connected):
    changes = []
    for widget in connected.widgets():
        widget.observe(changes.append)
        widget.layout.observe(changes.append)
    for _ in range(100):
        connected.panel._draw()
    assert changes == []

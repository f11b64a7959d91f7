"""The service's pages in Chromium, with scripts switched off: walked by keyboard, light and dark, wide and narrow."""

import pandas as pd
import pytest

import memframe
from memframe.sample import load_sample, load_sample_tags
from tests.browser.looks import faint, too_wide
from tests.conftest import PASSWORD

pytestmark = pytest.mark.browser

LONG = "Tidying up: duplicates, facts that newer ones have replaced, and tags that differ by a letter. " * 3


@pytest.fixture
def page(chromium):
    """A tab in a browser without scripts."""
    context = chromium.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


@pytest.fixture
def look(page):
    """Look at the page as it is read on a desk and on a phone, by day and by night."""

    def look(name):
        for scheme, width in (("light", 900), ("dark", 320)):  # which do not depend on each other
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            body = page.locator("body")
            assert (faint(body), too_wide(body)) == ([], []), f"{name}, {scheme}, {width}"

    return look


def type_and_go(page, *texts):
    """Type into the fields from the one that has the focus, and send the form."""
    page.locator("input:focus").wait_for()  # else the first letters of a page that is just loaded are lost
    for number, text in enumerate(texts):
        if number:
            page.keyboard.press("Tab")
        page.keyboard.type(text)
    page.keyboard.press("Enter")


def press(page, label):
    """Go to a button with the keyboard alone, and press it."""
    button = page.get_by_role("button", name=label)
    for _ in range(30):
        page.keyboard.press("Tab")
        if button.evaluate_all("buttons => buttons.includes(document.activeElement)"):
            page.keyboard.press("Enter")
            return
    pytest.fail(f"no key leads to {label}")


def test_the_way_of_a_user_through_all_pages(page, look, user, developer):
    flow = user.flow()
    page.goto(flow.authorization_url())
    look("sign-in")
    type_and_go(page, user.person._email, "not the password")
    page.get_by_role("alert").wait_for()
    look("sign-in-refused")
    type_and_go(page, PASSWORD)
    page.get_by_role("heading", name="Connect Duplicate finder?").wait_for()
    look("consent")
    press(page, "Allow")
    page.wait_for_url(f"{developer.redirect_uri}?*")
    memory_key = flow.exchange(page.url).memory_key

    page.goto(developer.dashboard_url)
    look("dashboard-empty")
    for reason in (LONG, "A weekly review", ""):
        user.client.create_access_request(memory_key, reason)
    page.reload()
    look("dashboard-pending")
    press(page, "Approve: Duplicate finder")
    page.get_by_role("heading", name="Have access 1").wait_for()
    press(page, "Reject: Duplicate finder")
    page.get_by_role("heading", name="Earlier 1").wait_for()
    look("dashboard")
    press(page, "Revoke access: Duplicate finder")
    page.get_by_role("heading", name="Earlier 2").wait_for()
    statuses = sorted(request.status for request in user.client.access_requests())
    assert statuses == ["pending", "rejected", "revoked"]

    page.goto(flow.authorization_url().replace("client_id=", "client_id=x"))
    look("bad-link")
    page.goto(developer.dashboard_url)
    press(page, "Sign out")
    page.get_by_label("E-mail").wait_for()


def test_the_way_of_a_person_through_the_own_memories(page, look, user, developer):
    developer.import_memories(user.user_id, load_sample()[:30], load_sample_tags())
    access = user.access()
    memframe.load_memories(access, progress=False)
    memframe.create_memories(
        access, pd.DataFrame({"content": [LONG], "title": [LONG], "tags": [("t" * 150,)]})
    )
    page.goto(f"{developer.auth_url}/dashboard/account")
    type_and_go(page, user.person._email, PASSWORD)
    page.get_by_role("heading", name="Your account").wait_for()
    look("account")
    page.get_by_role("link", name="Activity").click()
    page.get_by_text("Duplicate finder").wait_for()
    look("activity")
    page.get_by_role("link", name="Tags").click()
    look("tags")
    page.get_by_role("link", name="Memories", exact=True).click()
    look("memories")
    page.get_by_label("Search").fill("likes")
    page.keyboard.press("Enter")
    page.get_by_text("Show all").click()
    page.get_by_role("link", name="Delete: Tidying up").click()
    look("delete-memory")
    press(page, "Delete for good")
    page.get_by_role("heading", name="Your memories 30").wait_for()
    page.goto(f"{developer.auth_url}/dashboard/memories/delete-all")
    type_and_go(page, "29")
    page.get_by_role("alert").wait_for()
    look("delete-all-refused")
    type_and_go(page, "30")
    page.get_by_role("heading", name="No memories").wait_for()
    look("memories-empty")
    page.goto(f"{developer.auth_url}/dashboard/account/delete")
    look("delete-account")
    type_and_go(page, PASSWORD)
    page.get_by_role("heading", name="Your account is deleted").wait_for()
    look("receipt")

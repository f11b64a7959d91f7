"""Settings: the order of the sources, what is refused, and that a stored key stays with its address."""

from dataclasses import replace

import pytest
from keyring.backends import fail, null

from memframe.errors import ConfigError
from memframe.secret import Secret
from memframe.settings import (
    Sources,
    find_client_settings,
    find_oauth_settings,
    store_settings,
    user_sources,
)
from tests.keyrings import LockedKeyring, MemoryKeyring

HOME = "https://home.example.com/api/v1"
AWAY = "https://away.example.com/api/v1"


def stored(**entries):
    return Sources(open_keyring=lambda: MemoryKeyring(**entries))


def never_open():
    pytest.fail("the keyring was opened without need")


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.toml"

    def write(text):
        path.write_text(text)
        return Sources(config=path)

    return write


# The order


def test_argument_then_environment_then_keyring_then_file(config):
    sources = Sources(
        {"MEMFRAME_CLIENT_ID": "from-environment"},
        lambda: MemoryKeyring(client_id="from-keyring"),
        config('client_id = "from-file"\nauth_url = "https://auth.example.com"').config,
    )

    def found(argument=None, **without):
        return find_oauth_settings(argument, sources=replace(sources, **without)).client_id

    assert found("from-argument") == "from-argument"
    assert found() == "from-environment"
    assert found(environ={}) == "from-keyring"
    assert found(environ={}, open_keyring=None) == "from-file"


def test_sources_behind_the_one_that_answers_are_not_opened():
    environ = {
        "MEMFRAME_BASE_URL": HOME,
        "MEMFRAME_API_KEY": "k",
        "MEMFRAME_AUTH_URL": "https://a.example.com",
    }
    found = find_client_settings(sources=Sources(environ, never_open))
    assert (found.base_url, found.api_key, found.auth_url) == (HOME, Secret("k"), "https://a.example.com")


@pytest.mark.parametrize("name", ["base_url", "api_key"])
def test_what_is_missing_is_named_with_its_variable(name):
    given = {"base_url": HOME, "api_key": "k"} | {name: None}
    with pytest.raises(ConfigError, match=f"{name} is not set.*MEMFRAME_{name.upper()}"):
        find_client_settings(**given, sources=Sources())


def test_by_default_the_users_own_sources_are_asked(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MEMFRAME_API_KEY", "k")
    config = user_sources().config
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'base_url = "{HOME}"')
    assert find_client_settings().base_url == HOME


# The keyring


@pytest.mark.parametrize("backend", [fail.Keyring, null.Keyring, LockedKeyring])
def test_a_keyring_that_is_missing_or_locked_has_nothing(backend):
    locked = r".*did not open \(KeyringLocked\): unlock it" if backend is LockedKeyring else ""
    with pytest.raises(ConfigError, match=f"api_key is not set{locked}"):
        find_client_settings(HOME, sources=Sources(open_keyring=backend))


AUTH = "https://home.example.com"
KEPT = {"base_url": HOME, "api_key": "mf_live_1", "auth_url": AUTH, "client_id": "app", "client_secret": "s"}


def test_a_stored_secret_is_found_for_its_own_address_and_application():
    sources = stored(**KEPT)
    spelled = HOME.upper().replace("/API/V1", ":443/api/v1/")
    found = find_client_settings(spelled, sources=sources)
    assert (found.base_url, found.api_key) == (HOME, Secret("mf_live_1"))
    assert "mf_live_1" not in repr(found) + repr(Sources({"MEMFRAME_API_KEY": "mf_live_1"}))
    assert find_client_settings(sources=sources).auth_url == AUTH
    assert find_oauth_settings(sources=sources).client_secret == Secret("s")
    assert find_oauth_settings("public-app", sources=sources).client_secret is None
    mine = find_client_settings(AWAY, api_key="mine", sources=sources)
    assert (mine.base_url, mine.api_key) == (AWAY, Secret("mine"))


@pytest.mark.asvs("10.1.1")
def test_a_stored_secret_is_sent_nowhere_else():
    elsewhere = {"MEMFRAME_BASE_URL": AWAY}
    without_address = {"base_url": None}
    for attempt, says in (
        (
            lambda: find_client_settings(AWAY, sources=stored(**KEPT)),
            f"stored for {HOME} and is not sent to {AWAY}",
        ),
        (lambda: find_client_settings(sources=replace(stored(**KEPT), environ=elsewhere)), "is not sent to"),
        (
            lambda: find_client_settings(HOME, sources=stored(**KEPT | without_address)),
            "without its base_url",
        ),
        (
            lambda: find_oauth_settings(auth_url="https://away.example.com", sources=stored(**KEPT)),
            r"client_secret .* is not sent to",
        ),
    ):
        with pytest.raises(ConfigError, match=says) as caught:
            attempt()
        assert "mf_live_1" not in str(caught.value)


def test_what_was_stored_is_found():
    chain = MemoryKeyring()
    others = {"auth_url": "https://a.example.com", "client_id": "app", "client_secret": Secret("s")}
    store_settings(HOME + "/", "k\n", **others, open_keyring=lambda: chain)
    sources = Sources(open_keyring=lambda: chain)
    found = find_client_settings(sources=sources)
    assert (found.base_url, found.api_key) == (HOME, Secret("k"))
    assert find_oauth_settings(sources=sources).client_secret == Secret("s")


def test_storing_replaces_all_of_the_last_login():
    ring = MemoryKeyring(base_url=HOME, api_key="old", auth_url=HOME, client_id="app", client_secret="old")
    store_settings(AWAY, "new", open_keyring=lambda: ring)
    assert ring.entries == {"base_url": AWAY, "api_key": "new"}
    assert ring.log.index(("delete", "api_key")) < ring.log.index(("delete", "base_url"))
    assert ring.log.index(("set", "base_url")) < ring.log.index(("set", "api_key"))


class PlainFile(MemoryKeyring):
    priority = 0.5  # what keyrings.alt gives its plain file


class ChainOntoPlainFile(MemoryKeyring):
    priority = 10
    backends = (PlainFile(), MemoryKeyring())


@pytest.mark.parametrize("backend", [fail.Keyring, null.Keyring, PlainFile, ChainOntoPlainFile])
def test_nothing_is_stored_where_secrets_would_lie_open(backend):
    with pytest.raises(ConfigError, match="No OS keyring on this machine protects secrets"):
        store_settings(HOME, "k", open_keyring=backend)


def test_a_locked_keyring_says_what_to_do():
    with pytest.raises(ConfigError, match=r"KeyringLocked.*unlock it"):
        store_settings(HOME, "k", open_keyring=LockedKeyring)


def test_a_client_secret_is_stored_only_with_what_it_belongs_to():
    with pytest.raises(ConfigError, match="belongs to an auth_url and a client_id"):
        store_settings(HOME, "k", client_secret="s", open_keyring=never_open)


# The file


def test_a_secret_in_the_file_is_refused_by_name_and_not_repeated(config):
    with pytest.raises(ConfigError, match=r"config\.toml holds the secret api_key.*memframe login") as caught:
        find_client_settings(HOME, sources=config('api_key = "mf_live_1"'))
    assert "mf_live_1" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('baseurl = "https://x"', r"config\.toml has an unknown entry 'baseurl'"),
        ("base_url = 5", r"base_url in the file .*config\.toml is not text"),
        ("base_url https://x", r"config\.toml is not TOML"),
        ("\ufeffauth_url = 5", r"auth_url in the file .*config\.toml is not text"),
    ],
)
def test_a_broken_file_is_an_error_that_names_it(config, text, says):
    with pytest.raises(ConfigError, match=says):
        find_client_settings(api_key="k", sources=config(text))
    with pytest.raises(ConfigError, match="cannot be read"):
        find_client_settings(api_key="k", sources=Sources(config=config(text).config.parent))


def test_a_file_in_the_working_directory_is_never_read(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    (tmp_path / "config.toml").write_text(f'base_url = "{AWAY}"')
    assert user_sources().config.parent != tmp_path
    with pytest.raises(ConfigError, match="base_url is not set"):
        find_client_settings(api_key="k", sources=Sources(config=user_sources().config))


# Values


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *((text, "empty") for text in ("", " \n")),
        *((text, "quotation marks") for text in ('"mf_live_1"', "“mf_live_1”", "mf_live_1'")),
        *((text, "blank") for text in ("Bearer mf_live_1", " mf_live_1", "mf_live_1\nmf_live_1")),
        *((text, "invisible or foreign") for text in ("mf_live_1\u200b", "••••••", "mf_live_1\x1b")),
        (5, "is text, not int"),
    ],
)
def test_a_key_that_was_copied_badly_is_refused_without_repeating_it(text, says):
    with pytest.raises(ConfigError, match=f"^api_key .*{says}") as caught:
        find_client_settings(HOME, api_key=text, sources=Sources())
    assert "mf_live_1" not in str(caught.value)


def test_no_variable_of_a_refusing_call_holds_the_key_in_the_open():
    key = Secret('"mf_live_1"')
    with pytest.raises(ConfigError) as caught:
        find_client_settings(HOME, api_key=key, sources=Sources())
    frames = [entry.frame.f_locals for entry in caught.traceback][1:]  # the first is this test itself
    assert frames
    assert "mf_live_1" not in repr(frames)

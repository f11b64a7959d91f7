"""Addresses: one spelling for each, and whatever could carry a secret astray is refused."""

import pytest

from memframe.address import check_redirect_uri, check_url
from memframe.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("https://example.com", "https://example.com"),
        ("https://example.com///", "https://example.com"),
        ("HTTPS://Example.COM/API/v1/", "https://example.com/API/v1"),
        ("http://localhost:8080/api/v1/", "http://localhost:8080/api/v1"),
        ("http://127.0.0.1:80/", "http://127.0.0.1"),
        ("http://127.8.9.1:5000", "http://127.8.9.1:5000"),
        ("http://[::1]:5000/x", "http://[::1]:5000/x"),
        ("https://xn--exmple-cua.com", "https://xn--exmple-cua.com"),
        ("https://memory_service:8443", "https://memory_service:8443"),
    ],
)
def test_an_address_has_one_spelling(text, spelling):
    assert check_url("base_url", text) == spelling


UNSAFE = [
    ("", "empty"),
    ("  ", "empty"),
    ("example.com/api", "https://"),
    ("ftp://example.com", "https://"),
    ("javascript:alert(1)", "https://"),
    ("file:///etc/passwd", "https://"),
    ("https://", "no host"),
    ("https:///path", "no host"),
    ("https://me:hunter2@example.com", "user name or password"),
    ("https://hunter2@example.com", "user name or password"),
    ("https://example.com@evil.example", "user name or password"),
    ("https://example.com/#hunter2", "fragment"),
    ("https://example.com/#", "fragment"),
    ("http://example.com", "plain http"),
    ("http://127.0.0.1.example.com", "plain http"),
    ("http://localhost.example.com", "plain http"),
    ("http://0.0.0.0:80", "plain http"),
    ("http://10.0.0.1", "plain http"),
    ("http://2130706433", "plain http"),
    ("http://[::2]", "plain http"),
    ("https://example.com./api", "dot at the end"),
    ("http://localhost.", "dot at the end"),
    ("https://example.com\\@evil.example", "backslash"),
    ("https://exa mple.com", "blank"),
    (" https://example.com", "blank"),
    ("https://example.com\n", "blank"),
    ("https://exam\tple.com", "blank"),
    ("https://example.com\x00", "invisible"),
    ("https://exam\u200bple.com", "invisible"),
    ("https://ex\u0430mple.com", "ASCII"),
    ("https://bücher.example", "ASCII"),
    ("https://example\u3002com", "ASCII"),
    ("https://example.com:port", "broken host or port"),
    ("https://example.com:99999", "broken host or port"),
    ("https://[::1", "broken host or port"),
    ("https://\u2100.example.com", "broken host or port"),
    ("https://exa%6dple.com", "malformed host"),
    ("https://-example.com", "malformed host"),
    ("https://a..b", "malformed host"),
    ("https://[fe80::1%25eth0]", "malformed host"),
    ("https://example.com/caf\u00e9", "percent-encoded"),
]


@pytest.mark.asvs("12.2.1")
@pytest.mark.rfc("6749 3.1f")
@pytest.mark.parametrize("check", [check_url, check_redirect_uri])
@pytest.mark.parametrize(("text", "says"), UNSAFE)
def test_an_unsafe_address_is_refused_without_repeating_it(check, text, says):
    with pytest.raises(ConfigError, match=rf"^my_url .*{says}") as caught:
        check("my_url", text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "https://app.example.com/cb",
        "https://app.example.com/cb?x=1",
        "http://127.0.0.1/callback/",
        "http://LOCALHOST:8000/cb",
        "http://[::1]:9/cb",
    ],
)
def test_a_redirect_address_stays_as_it_was_written(text):
    assert check_redirect_uri("redirect_uri", text) == text


def test_a_query_is_for_redirects_only():
    assert check_redirect_uri("redirect_uri", "https://app.example.com/cb?x=1").endswith("?x=1")
    with pytest.raises(ConfigError, match="query"):
        check_url("base_url", "https://example.com?key=hunter2")

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


UNSAFE = {
    "empty": ["", "  "],
    "https://": ["example.com/api", "ftp://example.com", "javascript:alert(1)", "file:///etc/passwd"],
    "no host": ["https://", "https:///path"],
    "user name or password": [
        "https://me:hunter2@example.com",
        "https://hunter2@example.com",
        "https://example.com@evil.example",
    ],
    "fragment": ["https://example.com/#hunter2", "https://example.com/#"],
    "plain http": [
        "http://example.com",
        "http://127.0.0.1.example.com",
        "http://0.0.0.0:80",
        "http://2130706433",
    ],
    "dot at the end": ["https://example.com./api", "http://localhost."],
    "backslash": ["https://example.com\\@evil.example"],
    "blank": [
        "https://exa mple.com",
        " https://example.com",
        "https://example.com\n",
        "https://exam\tple.com",
    ],
    "invisible": ["https://example.com\x00", "https://exam\u200bple.com"],
    "ASCII": ["https://ex\u0430mple.com", "https://b\xfccher.example", "https://example\u3002com"],
    "broken host or port": [
        "https://example.com:port",
        "https://example.com:99999",
        "https://[::1",
        "https://\u2100.example.com",
    ],
    "malformed host": [
        "https://exa%6dple.com",
        "https://-example.com",
        "https://a..b",
        "https://[fe80::1%25eth0]",
    ],
    "percent-encoded": ["https://example.com/caf\xe9"],
}
"""Why an address is refused -> such addresses."""


@pytest.mark.asvs("12.2.1")
@pytest.mark.rfc("6749 3.1f")
@pytest.mark.parametrize("check", [check_url, check_redirect_uri])
@pytest.mark.parametrize(("says", "text"), [(says, text) for says, texts in UNSAFE.items() for text in texts])
def test_an_unsafe_address_is_refused_without_repeating_it(check, says, text):
    with pytest.raises(ConfigError, match=rf"^my_url .*{says}") as caught:
        check("my_url", text)
    assert "hunter2" not in str(caught.value)


def test_a_redirect_address_stays_as_it_was_written_and_alone_may_have_a_query():
    for text in ("https://app.example.com/cb?x=1", "http://127.0.0.1/callback/", "http://LOCALHOST:8000/cb"):
        assert check_redirect_uri("redirect_uri", text) == text
    with pytest.raises(ConfigError, match="query"):
        check_url("base_url", "https://example.com?key=hunter2")

"""What comes back from an authorization: the redirected address with its code, or a refusal."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from memframe.answers import Answer, error_of, texts_of
from memframe.errors import AuthError, MemframeError, OAuthError
from memframe.secret import Secret
from memframe.showing import printable

Origin = tuple[str, str | None, int | None]


class Attempt(NamedTuple):
    """What must be remembered between sending the user away and the answer."""

    state: str
    verifier: Secret | None
    redirect_uri: str
    issuers: frozenset[Origin]
    """Scheme, host and port of the servers that were asked."""


class _Redirect(NamedTuple):
    """The fields of a redirected address, each as often as it is there."""

    codes: list[Secret]
    states: list[str]
    issuers: list[str]
    errors: list[str]
    descriptions: list[str]
    is_link: bool
    """True for the address that the user should open, which is no answer."""


_ADDRESS = re.compile(r"://|^[?/]|\b(code|state|error)=")
_DEFAULT_PORTS = {"https": 443, "http": 80}


def origin_of(url: str) -> Origin:
    """Scheme, host and port, however they are spelled.

    >>> origin_of("https://Auth.example:443/tenant") == origin_of("https://auth.example")
    True
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)


def code_in(pasted: Secret, attempt: Attempt | None) -> Secret:
    """The code of a redirected address that belongs to the attempt; a bare code is taken as it is.

    Raises
    ------
    OAuthError
        The user denied, or the address is no answer to this attempt.
    """
    if not pasted.reveal().strip():
        raise OAuthError("nothing was pasted: paste the redirected address, or its code", code="code_missing")
    if not _ADDRESS.search(pasted.reveal().strip()):
        return Secret(pasted.reveal().strip())
    redirect = _parsed(pasted)
    if redirect.is_link:
        raise OAuthError(
            "the pasted address is the link itself: open it, and paste the address of the page that you are sent "
            "to after you allowed access",
            code="link_pasted",
        )
    _check_state(redirect.states, attempt)
    _check_issuer(redirect.issuers, attempt)
    if redirect.errors:
        raise _refused(printable(redirect.errors[0]), printable("".join(redirect.descriptions)))
    if len(redirect.codes) != 1:
        raise OAuthError(
            "the pasted address has no code in it: copy the address of the page that you were sent to after "
            "you allowed access, as a whole",
            code="code_missing",
        )
    return redirect.codes[0]


def _parsed(pasted: Secret) -> _Redirect:
    """Nothing is raised in here, where the code is in the open."""
    text = pasted.reveal().strip()
    _, mark, query = text.partition("?")
    fields = parse_qs((query if mark else text).partition("#")[0])
    return _Redirect(
        [Secret(code) for code in fields.get("code", [])],
        fields.get("state", []),
        fields.get("iss", []),
        fields.get("error", []),
        fields.get("error_description", []),
        "response_type" in fields and not fields.keys() & {"code", "error"},
    )


def _check_state(states: list[str], attempt: Attempt | None) -> None:
    if len(states) != 1:
        raise OAuthError(
            "the pasted address has no state, so it may be the answer to someone else's attempt; "
            "open the link again and paste the whole address",
            code="state_missing",
        )
    if attempt is None or not hmac.compare_digest(states[0].encode(), attempt.state.encode()):
        raise OAuthError(
            "the pasted address belongs to another attempt (its state differs, or that attempt is used up); "
            "open the newest link again",
            code="state_mismatch",
        )


def _check_issuer(issuers: list[str], attempt: Attempt | None) -> None:
    """RFC 9207: an answer that names its server must name one that was asked."""
    if attempt and issuers and not _is_of(issuers[0], attempt.issuers):
        raise OAuthError(
            "the pasted address comes from another OAuth server than the one that was asked; "
            "open the link again, and check auth_url",
            code="issuer_mismatch",
        )


def _is_of(issuer: str, known: frozenset[Origin]) -> bool:
    try:
        return origin_of(issuer) in known
    except ValueError:  # a broken host or port
        return False


_REFUSALS = {
    "access_denied": "the user chose not to allow access; nothing was shared, and the link may be opened again",
    "invalid_grant": "this code was already used, has expired or was made for another address; open the link again",
    "temporarily_unavailable": "the OAuth server is busy; open the link again in a minute",
}


def refusal_of(answer: Answer, *, what: str, said: Callable[[str], str]) -> MemframeError:
    """The error that a 4xx answer of the token endpoint stands for (RFC 6749, section 5.2).

    Parameters
    ----------
    what, said
        As in `error_of`.
    """
    texts = texts_of(answer.body.reveal())
    error = texts.get("error")
    if answer.status == 401 or error in {"invalid_client", "unauthorized_client"}:
        return AuthError(
            f"{what}: {answer.host} does not know this client: check client_id and client_secret, "
            "and that they belong to this auth_url",
            status=answer.status,
            code=said(error or "invalid_client"),
            endpoint=what,
        )
    if error is None or answer.status == 429:
        return error_of(answer, what=what, said=said)
    return _refused(said(error), said(texts.get("error_description", "")))


def _refused(error: str, description: str) -> OAuthError:
    known = _REFUSALS.get(error)
    text = f"{known} ({error})" if known else _unknown_refusal(error, description)
    return OAuthError(text, code=error)


def _unknown_refusal(error: str, description: str) -> str:
    reason = description.rstrip(" .") or "no reason given"
    return (
        f"the OAuth server answered {error!r}: {reason}. Open the link again; if it stays so, check client_id, "
        "redirect_uri and auth_url"
    )

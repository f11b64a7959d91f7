"""Arguments and settings to a client: where the service is, with which key, and whom to trust on the way."""

from __future__ import annotations

from os import PathLike

from memframe.client import Client
from memframe.errors import NotFoundError
from memframe.secret import Secret, closed
from memframe.settings import find_client_settings
from memframe.transport import Transport


def connect(
    base_url: str | None = None,
    *,
    api_key: str | Secret | None = None,
    auth_url: str | None = None,
    token_lifetime_s: int | None = None,
    ca_bundle: str | PathLike[str] | None = None,
) -> Client:
    """A client for one developer account.

    What is not given comes from ``MEMFRAME_BASE_URL``, ``MEMFRAME_API_KEY`` and ``MEMFRAME_AUTH_URL``,
    then from the OS keyring, then (addresses only) from the user's config file. Nothing is sent yet.

    Parameters
    ----------
    base_url : str, optional
        Address of the API, with ``/api/v1``; https, or http to this machine.
    api_key : str or Secret, optional
        The developer's permanent key.
    auth_url : str, optional
        Address of the OAuth server, which may be another.
    token_lifetime_s : int, optional
        Wished lifetime of tokens in seconds.
    ca_bundle : str or path, optional
        File or folder with the root certificates that are trusted instead of the usual ones, where an organisation
        signs its own. Otherwise ``REQUESTS_CA_BUNDLE`` may name one. Proxies come from ``HTTPS_PROXY`` and
        ``NO_PROXY``.

    Raises
    ------
    ConfigError
        A setting is missing, malformed or unsafe.

    Examples
    --------
    >>> connect("http://127.0.0.1:8000/api/v1/", api_key="mf_key_of_this_example")
    <memframe.Client http://127.0.0.1:8000/api/v1>
    """
    api_key = closed(api_key)
    settings = find_client_settings(base_url=base_url, api_key=api_key, auth_url=auth_url)
    return Client(
        settings.base_url,
        settings.api_key,
        auth_url=settings.auth_url,
        token_lifetime_s=token_lifetime_s,
        transport=Transport(ca_bundle=ca_bundle),
    )


def connect_and_sign_in(
    base_url: str | None = None, *, api_key: str | Secret | None = None, auth_url: str | None = None
) -> Client:
    """Return a client whose key was proved; an address without ``/api/v1`` is tried with it.

    The parameters are those of `connect`. The key goes to the longer address of the same host only after that
    has answered as an API does.

    Raises
    ------
    ConfigError, AuthError, NoAnswerError
        As in `connect` and `Client.sign_in`.
    """
    api_key = closed(api_key)
    client = connect(base_url, api_key=api_key, auth_url=auth_url)
    try:
        client.sign_in()
    except NotFoundError as error:
        client.close()
        if error.api_url is None:
            raise
        client = connect(error.api_url, api_key=api_key, auth_url=auth_url)
        client.sign_in()
    return client

"""`memframe login`, `logout` and `request`: keep credentials in the keyring, and ask users for access."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from memframe.access import wait_for_decision
from memframe.cli.options import Group, as_json, ask_secret, full_request_id
from memframe.client import Client, connect, connect_and_sign_in
from memframe.display import printable
from memframe.oauth import OAuthFlow
from memframe.secret import Secret
from memframe.settings import remove_settings, store_settings
from memframe.wire import AccessRequest


@click.command("login")
@click.option(
    "--base-url",
    prompt="Address of the API",
    envvar="MEMFRAME_BASE_URL",
    show_envvar=True,
    help="Address of the API, with /api/v1.",
)
@click.option("--auth-url", help="Address of the OAuth server.")
@click.option("--client-id", help="Client id of your application, with --auth-url.")
def login_command(base_url: str, auth_url: str | None, client_id: str | None) -> None:
    """Verify an API key, and store it in the keyring of the operating system.

    The prompts for the key, and for the client secret if --client-id is given, show no input; they also read standard
    input, a line each. Stored keys are only ever sent to these addresses.

    \b
    Example:
        memframe login --base-url https://memory.example/api/v1
    """
    api_key = ask_secret("API key")
    client_secret = ask_secret("Client secret") if client_id else None
    with connect_and_sign_in(base_url, api_key=api_key, auth_url=auth_url) as client:
        base_url = client.base_url
    store_settings(base_url, api_key, auth_url=auth_url, client_id=client_id, client_secret=client_secret)
    click.echo(f"Signed in at {base_url}; the key is kept in the keyring.")


@click.command("logout")
def logout_command() -> None:
    """Remove from the keyring the key and the addresses stored by `memframe login`.

    Keys in the environment stay, and so does the API key itself: replace it at the service if it has leaked.

    \b
    Example:
        memframe logout
    """
    removed = remove_settings()
    click.echo(f"Removed from the keyring: {', '.join(removed)}." if removed else "The keyring held nothing.")


DEFAULT_WAIT_S = 300.0

REFUSED = 5
"""Exit code after a decision other than approval, as of every command that is refused access."""


@click.group("request", cls=Group)
def request_group() -> None:
    """Ask a user for access to their memories, and see what they decided.

    \b
    Example:
        memframe request new --reason "Weekly review of duplicates" --wait 600
    """


@request_group.command("new")
@click.option("--reason", required=True, help="Text for the user to read before deciding.")
@click.option(
    "--local", is_flag=True, help="Receive the redirect on this machine, instead of asking for its address."
)
@click.option(
    "--wait",
    "wait_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="Seconds to wait for the decision.",
)
@as_json
def request_new(reason: str, local: bool, wait_s: float | None, as_json: bool) -> None:
    """Let a user authorize the application, then request access; prints the request.

    Prints the address for the user's browser, and asks for the address that the browser was redirected to (also as
    a line of standard input). With --wait it waits for the decision, and ends with 5 if that is not an approval.

    \b
    Example:
        memframe request new --reason "Weekly review of duplicates"
    """
    flow = OAuthFlow()
    tokens = flow.run_local(show=_print_address) if local else flow.exchange(_redirected_address(flow))
    with connect() as client:
        asked = client.create_access_request(tokens.memory_key, reason)
        if wait_s is not None:
            click.echo(
                f"{asked.id}: waiting for the decision of the user, on the dashboard at {flow.auth_url}",
                err=True,
            )
            asked = wait_for_decision(client, asked.id, timeout_s=wait_s)
    _print_request(asked, as_json=as_json)
    if wait_s is not None:
        _exit(asked)


@request_group.command("wait")
@click.argument("request_id")
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    default=DEFAULT_WAIT_S,
    show_default=True,
    type=click.FloatRange(min=0),
    help="Seconds to wait.",
)
@as_json
def request_wait(request_id: str, timeout_s: float, as_json: bool) -> None:
    """Wait until the user has decided; prints the request, and ends with 5 if it is not approved.

    \b
    Example:
        memframe request wait 7c9e6679 --timeout 3600
    """
    with connect() as client:
        request_id = full_request_id(client, request_id)
        decided = wait_for_decision(client, request_id, timeout_s=timeout_s)
    _print_request(decided, as_json=as_json)
    _exit(decided)


@request_group.command("show")
@click.argument("request_id")
@as_json
def request_show(request_id: str, as_json: bool) -> None:
    """Show one request with its current status.

    \b
    Example:
        memframe request show 7c9e6679 --json
    """
    with connect() as client:
        _print_request(client.access_request(full_request_id(client, request_id)), as_json=as_json)


@request_group.command("list")
@as_json
def request_list(as_json: bool) -> None:
    """List all requests of this developer account.

    \b
    Example:
        memframe request list --json
    """
    with connect() as client:
        requests = _newest_first(client)
    if as_json:
        click.echo(json.dumps([_public(each) for each in requests]))
    else:
        click.echo("\n".join(map(_line, requests)) or "no requests")


def _redirected_address(flow: OAuthFlow) -> Secret:
    _print_address(flow.authorization_url())
    return ask_secret("Address that the browser was redirected to")


def _print_address(address: str) -> None:
    """Print the address to standard error, as scripts read standard output."""
    click.echo(f"Open this address in the user's browser:\n{address}", err=True)


def _exit(decided: AccessRequest) -> None:
    if decided.status != "approved":
        sys.exit(REFUSED)


def _newest_first(client: Client) -> list[AccessRequest]:
    """Sort by time of creation; those without one come last."""
    requests = client.access_requests()
    return sorted(
        requests, key=lambda each: each.created_at.timestamp() if each.created_at else 0.0, reverse=True
    )


def _public(request: AccessRequest) -> dict[str, Any]:
    """Return a request without its memory key, with times as text."""
    times = {name: getattr(request, name) for name in ("created_at", "updated_at")}
    names = ("id", "status", "reason", "user_id", "ai_connector_id")
    return {name: getattr(request, name) for name in names} | {
        name: moment and moment.isoformat() for name, moment in times.items()
    }


def _print_request(request: AccessRequest, *, as_json: bool) -> None:
    click.echo(json.dumps(_public(request)) if as_json else _line(request))


def _line(request: AccessRequest) -> str:
    when = f"{request.created_at:%Y-%m-%d %H:%M}" if request.created_at else " " * 16
    return f"{request.id}  {request.status:<8}  {when}  {printable(request.reason or '')}"

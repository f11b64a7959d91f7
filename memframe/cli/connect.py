"""`memframe login`, `logout` and `request`: keep credentials, and ask users for access."""

from __future__ import annotations

import sys
from typing import Any

import click

from memframe.cli.options import (
    REFUSED,
    SECONDS,
    Group,
    as_json,
    ask_secret,
    example,
    print_result,
    remark,
)
from memframe.client import Client, connect, connect_and_sign_in, wait_for_decision
from memframe.display import printable
from memframe.oauth import OAuthFlow
from memframe.settings import remove_settings, store_settings
from memframe.wire import AccessRequest


def full_request_id(client: Client, given: str) -> str:
    """Return the full id of an access request, given the id or its beginning."""
    return client.full_request_id(given, shown_by="`memframe request list`")


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
@example("memframe login --base-url https://memory.example/api/v1")
def login_command(base_url: str, auth_url: str | None, client_id: str | None) -> None:
    """Verify an API key, and store it in the keyring of the operating system.

    Prompts for the key, and with --client-id for the client secret, without showing them; or reads them from standard
    input, one per line. Stored keys are sent only to these addresses.
    """
    api_key = ask_secret("API key")
    client_secret = ask_secret("Client secret") if client_id else None
    with connect_and_sign_in(base_url, api_key=api_key, auth_url=auth_url) as client:
        base_url = client.base_url
    store_settings(base_url, api_key, auth_url=auth_url, client_id=client_id, client_secret=client_secret)
    click.echo(f"Signed in at {base_url}. The key is in your keyring.")


@click.command("logout")
@example("memframe logout")
def logout_command() -> None:
    """Remove the key and the addresses that `memframe login` stored in the keyring.

    Keys in the environment stay. The API key remains valid: if it has leaked, replace it at the service.
    """
    removed = remove_settings()
    click.echo(f"Removed from the keyring: {', '.join(removed)}." if removed else "The keyring was empty.")


@click.group("request", cls=Group)
@example('memframe request new --reason "Weekly review of duplicates" --wait 600')
def request_group() -> None:
    """Ask a user for access to their memories, and see the decision."""


@request_group.command("new")
@click.option("--reason", required=True, help="Reason that the user reads before deciding.")
@click.option(
    "--local", is_flag=True, help="Receive the redirect on this machine instead of asking for its address."
)
@click.option("--wait", "wait_s", metavar="SECONDS", type=SECONDS, help="Seconds to wait for the decision.")
@as_json
@example('memframe request new --reason "Weekly review of duplicates"')
def request_new(reason: str, local: bool, wait_s: float | None) -> None:
    """Let a user authorize the application, request access, and print the request.

    Prints an address for the user's browser, and asks for the address that the browser was redirected to (or reads it
    from standard input). The user then approves or rejects the request on the dashboard, which is at /dashboard if
    memframe runs the service. With --wait, waits for that decision, and exits with 5 unless the user approves.
    """
    if not reason.strip():
        raise click.UsageError(
            "--reason is empty: say why you need the memories, so that the user can decide."
        )
    flow = OAuthFlow()
    if local:
        tokens = flow.run_local(show=_print_address)
    else:
        _print_address(flow.authorization_url())
        tokens = flow.exchange(ask_secret("Address that the browser was redirected to"))
    with connect() as client:
        asked = client.create_access_request(tokens.memory_key, reason)
        if wait_s is not None:
            remark(
                f"{asked.id}: waiting for the user's decision on the dashboard of the service "
                f"(of memframe's own: {flow.auth_url}/dashboard)"
            )
            asked = wait_for_decision(client, asked.id, timeout_s=wait_s)
    _print_request(asked, must_be_approved=wait_s is not None)


@request_group.command("wait")
@click.argument("request_id")
@click.option(
    "--timeout", "timeout_s", metavar="SECONDS", default=300.0, type=SECONDS, help="Seconds to wait."
)
@as_json
@example("memframe request wait 7c9e6679 --timeout 3600")
def request_wait(request_id: str, timeout_s: float) -> None:
    """Wait for the user's decision, and print the request; exits with 5 unless the user approves."""
    with connect() as client:
        decided = wait_for_decision(client, full_request_id(client, request_id), timeout_s=timeout_s)
    _print_request(decided, must_be_approved=True)


@request_group.command("show")
@click.argument("request_id")
@as_json
@example("memframe request show 7c9e6679 --json")
def request_show(request_id: str) -> None:
    """Show one request with its current status."""
    with connect() as client:
        _print_request(client.access_request(full_request_id(client, request_id)))


@request_group.command("list")
@as_json
@example("memframe request list --json")
def request_list() -> None:
    """List all requests of this developer account, newest first."""
    with connect() as client:
        requests = client.access_requests()
    requests.sort(key=lambda each: each.created_at.timestamp() if each.created_at else 0.0, reverse=True)
    print_result(
        [_hide_memory_key(each) for each in requests],
        "\n".join(map(_format_request, requests)) or "no requests",
    )


def _print_address(address: str) -> None:
    """Print the address to standard error, because scripts read standard output."""
    click.echo(f"Open this address in the user's browser:\n{address}", err=True)


def _print_request(request: AccessRequest, *, must_be_approved: bool = False) -> None:
    print_result(_hide_memory_key(request), _format_request(request))
    if must_be_approved and request.status != "approved":
        sys.exit(REFUSED)


def _hide_memory_key(request: AccessRequest) -> dict[str, Any]:
    """Return a request without its memory key, with times as text."""
    names = ("id", "status", "reason", "user_id", "ai_connector_id", "created_at", "updated_at")
    shown = {name: getattr(request, name) for name in names}
    return {
        name: value.isoformat() if name in names[-2:] and value else value for name, value in shown.items()
    }


def _format_request(request: AccessRequest) -> str:
    when = f"{request.created_at:%Y-%m-%d %H:%M}" if request.created_at else " " * 16
    return f"{request.id}  {request.status:<8}  {when}  {printable(request.reason or '')}"

"""`memframe login`: keep addresses and keys in the keyring of the operating system."""

from __future__ import annotations

import click

from memframe.cli.asking import ask_secret
from memframe.connecting import connect_and_sign_in
from memframe.settings import store_settings


@click.command("login")
@click.option(
    "--base-url",
    prompt="Address of the API",
    envvar="MEMFRAME_BASE_URL",
    show_envvar=True,
    help="Address of the API, with /api/v1.",
)
@click.option("--auth-url", help="Address of the OAuth server.")
@click.option("--client-id", help="Of your application, with --auth-url.")
def log_in(base_url: str, auth_url: str | None, client_id: str | None) -> None:
    """Try an API key, and keep it in the keyring of the operating system.

    The key, and the client secret where --client-id is given, are asked for without being shown; they
    also come from standard input, a line each. Stored keys are only ever sent to these addresses.

    \b
    Example:
        memframe login --base-url https://memory.example/api/v1
    """
    api_key = ask_secret("API key")
    client_secret = ask_secret("Client secret") if client_id else None
    with connect_and_sign_in(base_url, api_key=api_key, auth_url=auth_url) as client:
        base_url = client.base_url
    store_settings(base_url, api_key, auth_url=auth_url, client_id=client_id, client_secret=client_secret)
    click.echo(f"Signed in at {base_url}, and kept in the keyring.")

"""`memframe serve` and `memframe service`: run the Memory Access Service, and look after its accounts."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click
import platformdirs

from memframe.address import is_loopback
from memframe.errors import ConfigError
from memframe.secret import Secret
from memframe.service import rules
from memframe.service.app import create_app
from memframe.service.deployment import FIRST_DEVELOPER, Addresses, Deployment, NewDeveloper, open_deployment
from memframe.service.server import listen, make_server, url_of
from memframe.service.times import instant_text

DEFAULT_PORT = 8765

Command = Callable[..., None]


def where_the_data_is(command: Command) -> Command:
    """The options that say which service is meant."""
    folder = click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        default=lambda: platformdirs.user_data_path("memframe") / "service",
        help="Folder of the database and the master key; by default in your own data folder.",
    )
    database = click.option("--database", metavar="URL", help="Another database, as a SQLAlchemy address.")
    return folder(database(command))


as_json = click.option("--json", "as_json", is_flag=True, help="One line of JSON, for scripts.")


@click.command("serve")
@where_the_data_is
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0: any."
)
@click.option("--public-url", metavar="URL", help="Address under which others reach the service.")
@as_json
def run_service(
    data: Path, database: str | None, host: str, port: int, public_url: str | None, as_json: bool
) -> None:
    """Run the Memory Access Service until Ctrl-C.

    The first start makes the data folder and prints, once, the secrets of a first developer.

    \b
    Example:
        memframe serve --data ./memories --port 8765
    """
    own_url = _checked_public_url(host, public_url)
    with listen(host, port) as listening, closing(open_deployment(data, database_url=database)) as deployment:
        addresses = Addresses(own_url or url_of(listening))
        server = make_server(create_app(deployment, addresses))
        _stop_on_signals()
        with deployment.store.naming_errors():
            shown = _shown_at_start(deployment, addresses)
        _show(shown, as_json=as_json)
        server.run([listening])


@click.group()
def service() -> None:
    """Look after the accounts of a service, also while it runs.

    \b
    Example:
        memframe service list
    """


@service.command("add-developer")
@click.argument("name")
@click.option("--redirect-uri", required=True, help="Where users are sent back to after they consented.")
@where_the_data_is
@as_json
def add_developer(name: str, redirect_uri: str, data: Path, database: str | None, as_json: bool) -> None:
    """Add an application; its secrets are printed this once.

    \b
    Example:
        memframe service add-developer "Notes" --redirect-uri https://notes.example.org/callback
    """
    with _existing(data, database) as deployment:
        _show(_secrets(deployment.add_developer(name, redirect_uri)), as_json=as_json)


@service.command("add-user")
@click.argument("email")
@click.option("--password-stdin", is_flag=True, help="Read the password as one line of standard input.")
@where_the_data_is
@as_json
def add_user(email: str, password_stdin: bool, data: Path, database: str | None, as_json: bool) -> None:
    """Add a person who can sign in at the dashboard; prints the user_id.

    \b
    Example:
        memframe service add-user ada@example.org --password-stdin < password.txt
    """
    with _existing(data, database) as deployment:
        user_id = deployment.add_user(email, _password(from_stdin=password_stdin))
        click.echo(json.dumps({"user_id": user_id}) if as_json else user_id)


@service.command("list")
@where_the_data_is
@as_json
def list_accounts(data: Path, database: str | None, as_json: bool) -> None:
    """List developers and users.

    \b
    Example:
        memframe service list --json
    """
    with _existing(data, database) as deployment:
        accounts = _accounts(deployment)
    if as_json:
        click.echo(json.dumps(accounts))
        return
    for developer in accounts["developers"]:
        click.echo(f"developer  {developer['id']}  {_printable(developer['name'])}{_note(developer)}")
    for user in accounts["users"]:
        click.echo(f"user       {user['id']}  {_printable(user['email'])}{_note(user)}")


def _stop_on_signals() -> None:
    """Ctrl-C and a supervisor's SIGTERM are the ordinary ways to stop: close everything, exit with 0."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))


def _checked_public_url(host: str, url: str | None) -> str | None:
    if url is not None:
        return rules.public_url(url)
    if is_loopback(host):
        return None
    raise ConfigError(
        f"--host {host} opens the service to the network, where plain http would show every secret; "
        "put it behind a proxy that speaks https and name that: --public-url https://..."
    )


def _shown_at_start(deployment: Deployment, addresses: Addresses) -> dict[str, str]:
    """Addresses, and at the first start the secrets of the first developer."""
    shown = {
        "base_url": addresses.base_url,
        "auth_url": addresses.auth_url,
        "dashboard_url": addresses.dashboard_url,
    }
    if deployment.store.accounts.developers():
        return shown
    return shown | _secrets(deployment.add_developer(FIRST_DEVELOPER))


def _secrets(developer: NewDeveloper) -> dict[str, str]:
    return {
        "api_key": developer.api_key.reveal(),
        "client_id": developer.client_id,
        "client_secret": developer.client_secret.reveal(),
    }


def _show(shown: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(shown))
        return
    for name, value in shown.items():
        click.echo(f"{name:<14} {value}")
    if "api_key" in shown:
        click.echo("These secrets are shown only now; keep them.", err=True)


@contextmanager
def _existing(data: Path, database: str | None) -> Iterator[Deployment]:
    """A service that has been started before: a mistyped folder must not become a new one."""
    with (
        closing(open_deployment(data, database_url=database, may_create=False)) as deployment,
        deployment.store.naming_errors(),
    ):
        yield deployment


def _password(*, from_stdin: bool) -> Secret:
    if not from_stdin:
        return Secret(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    return Secret(sys.stdin.readline().rstrip("\r\n"))


def _accounts(deployment: Deployment) -> dict[str, list[dict[str, Any]]]:
    """What may be known of developers and users."""
    accounts = deployment.store.accounts
    developers = ("id", "name", "client_id", "redirect_uris", "disabled", "created_at")
    users = ("id", "email", "key_version", "disabled", "created_at")
    return {
        "developers": [_public(developer, developers) for developer in accounts.developers()],
        "users": [_public(user, users) for user in accounts.users()],
    }


def _public(record: object, names: tuple[str, ...]) -> dict[str, Any]:
    shown = {name: getattr(record, name) for name in names}
    return shown | {"created_at": instant_text(shown["created_at"])}


def _note(account: dict[str, Any]) -> str:
    return "  (disabled)" if account["disabled"] else ""


def _printable(text: str) -> str:
    """A name that somebody chose, without what a terminal would obey."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )

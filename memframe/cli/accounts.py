"""`memframe service`: look after the accounts of a service, also while it serves."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict

from memframe.cli.serve import as_json, secrets_of, show, where_the_data_is
from memframe.errors import ConfigError
from memframe.secret import Secret
from memframe.service.deployment import Deployment, open_deployment
from memframe.service.rotation import rotate_key
from memframe.service.times import instant_text


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
        show(secrets_of(deployment.add_developer(name, redirect_uri)), as_json=as_json)


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


@service.command("rotate-key")
@click.argument("email")
@where_the_data_is
@as_json
def rotate_user_key(email: str, data: Path, database: str | None, as_json: bool) -> None:
    """Give a user a new encryption key, and seal the stored content again with it.

    From then on credentials give the new key and its version. What applications send sealed with the old
    one is refused (409, key_version_changed), until they have fetched the credentials again.

    \b
    Example:
        memframe service rotate-key ada@example.org
    """
    with _existing(data, database) as deployment:
        rotation = rotate_key(deployment, deployment.user_id(email))
    if as_json:
        click.echo(json.dumps(asdict(rotation)))
        return
    click.echo(f"key_version {rotation.key_version}: {rotation.n_sealed} memories sealed again")
    if rotation.n_unreadable:
        unreadable = f"{rotation.n_unreadable} did not open with the old key and were left as they were"
        click.echo(unreadable, err=True)


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
    try:
        return Secret(sys.stdin.buffer.readline().decode().rstrip("\r\n"))
    except UnicodeDecodeError:
        raise ConfigError("the password on standard input is not text in UTF-8; send it as UTF-8") from None


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

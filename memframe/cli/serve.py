"""`memframe serve` and `memframe service`: run the Memory Access Service, and manage its accounts."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import click
import platformdirs
from msgspec.structs import asdict

from memframe.address import is_loopback
from memframe.cli.options import Group, LocalPath, full_id
from memframe.display import number_of, printable
from memframe.errors import ConfigError, ConflictError, NotFoundError
from memframe.secret import Secret
from memframe.service.app import AppFactory
from memframe.service.clock import format_instant
from memframe.service.deployment import FIRST_DEVELOPER, Addresses, Deployment, NewDeveloper, ServiceConfig
from memframe.service.logs import log_as_json
from memframe.service.maintenance import back_up, rotate_key, rotate_master_key
from memframe.service.server import CONNECTIONS_PER_ADDRESS, listen, serve_with, url_of
from memframe.service.store import User
from memframe.service.validation import check_public_url

Command = Callable[..., None]


@contextmanager
def open_service(place: ServiceConfig) -> Iterator[Deployment]:
    """Open the service for a command, and translate errors of the database."""
    with closing(place.open()) as deployment, deployment.store.naming_errors():
        yield deployment


def data_options(command: Command) -> Command:
    """Add the options that locate the data; the command gets them as its argument ``place``."""

    @click.option(
        "--data",
        "folder",
        type=LocalPath(file_okay=False),
        default=lambda: platformdirs.user_data_path("memframe") / "service",
        help="Folder of the database and the master key; by default in your own data folder.",
    )
    @click.option(
        "--database",
        metavar="URL",
        envvar="MEMFRAME_DATABASE",
        show_envvar=True,
        help="Another database, as a SQLAlchemy address: postgresql://memframe@db.example/memframe.",
    )
    @click.option(
        "--master-key-file",
        "key_file",
        type=LocalPath(dir_okay=False),
        help="The master key, if it is not in the data folder.",
    )
    @wraps(command)
    def with_place(folder: Path, database: str | None, key_file: Path | None, **others: Any) -> None:
        command(place=ServiceConfig(folder, database, key_file), **others)

    return with_place


as_json = click.option("--json", "as_json", is_flag=True, help="One line of JSON, for scripts.")


def show(values: Any, words: str, *, as_json: bool) -> None:
    """Print values as JSON, or their words."""
    click.echo(json.dumps(values) if as_json else words)


def secrets_of(developer: NewDeveloper) -> dict[str, str]:
    """Return the secrets that a new developer is shown once."""
    return {
        "api_key": developer.api_key.reveal(),
        "client_id": developer.client_id,
        "client_secret": developer.client_secret.reveal(),
    }


def show_secrets(values: dict[str, str], *, as_json: bool) -> None:
    """Print names and values, and that secrets among them are shown only once."""
    show(values, "\n".join(f"{name:<14} {value}" for name, value in values.items()), as_json=as_json)
    if values.keys() & {"api_key", "client_secret"} and not as_json:
        click.echo("These secrets are shown only now; keep them.", err=True)


DEFAULT_PORT = 8765


@click.command("serve")
@data_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0: any."
)
@click.option("--public-url", metavar="URL", help="Address under which others reach the service.")
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes that serve."
)
@click.option(
    "--trusted-proxy",
    metavar="[ADDRESSES]",
    is_flag=False,
    flag_value="127.0.0.1,::1",
    help="Trust X-Forwarded-For of a proxy on this machine, or at these addresses or networks.",
)
@click.option(
    "--connections-per-address",
    metavar="N",
    default=CONNECTIONS_PER_ADDRESS,
    type=click.IntRange(1),
    help="Most connections of one network address to each process; those of a trusted proxy are not counted.",
)
@click.option(
    "--log-json",
    is_flag=True,
    help="Log requests, security events and faults to standard error, as lines of JSON.",
)
@as_json
def serve_command(
    place: ServiceConfig,
    host: str,
    port: int,
    public_url: str | None,
    workers: int,
    trusted_proxy: str | None,
    connections_per_address: int,
    log_json: bool,
    as_json: bool,
) -> None:
    """Run the Memory Access Service until Ctrl-C.

    The first start creates the data folder, and prints the secrets of a first developer this once. /healthz answers
    while the service runs, /readyz while its database does.

    \b
    Example:
        memframe serve --data ./memories --port 8765
        memframe serve --public-url https://memories.example.org --trusted-proxy --workers 2
    """
    own_url = _checked_public_url(host, public_url)
    proxies = _networks(trusted_proxy)
    if log_json:
        log_as_json()
    with listen(host, port) as listening, _stopped_by_signals():
        addresses = Addresses(own_url or url_of(listening))
        with closing(place.open(may_create=True)) as deployment, deployment.store.naming_errors():
            shown = _start_values(deployment, addresses)
        show_secrets(shown, as_json=as_json)
        maker = AppFactory(place, addresses, log_json)
        serve_with(
            maker.make,
            listening,
            public_url=addresses.public_url,
            workers=workers,
            trusted_proxies=proxies,
            connections_per_address=connections_per_address,
        )


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Exit with 0 on Ctrl-C and SIGTERM, which are the ordinary ways to stop."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: sys.exit(0)) for number in numbers]
    try:
        yield
    finally:  # for callers in the same process
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _checked_public_url(host: str, url: str | None) -> str | None:
    if url is not None:
        return check_public_url(url)
    if is_loopback(host):
        return None
    raise ConfigError(
        f"--host {host} opens the service to the network, where plain http would show every secret; "
        "put it behind a proxy that speaks https and name that: --public-url https://..."
    )


def _networks(text: str | None) -> list[str]:
    """Split and check a list of addresses and networks."""
    named = [part.strip() for part in (text or "").split(",") if part.strip()]
    for name in named:
        try:
            ip_network(name)
        except ValueError:
            raise ConfigError(
                f"--trusted-proxy {name} is not an IP address or network, such as 10.0.0.5 or 10.0.0.0/24"
            ) from None
    return named


def _start_values(deployment: Deployment, addresses: Addresses) -> dict[str, str]:
    """Return the addresses, and at the first start the secrets of the first developer."""
    shown = {
        "base_url": addresses.base_url,
        "auth_url": addresses.auth_url,
        "dashboard_url": addresses.dashboard_url,
    }
    try:
        return shown | secrets_of(deployment.add_developer(FIRST_DEVELOPER, only_first=True))
    except ConflictError:  # it was made at an earlier start, or by one at the same moment
        return shown


password_stdin = click.option(
    "--password-stdin",
    is_flag=True,
    help="Read the password as one line of standard input, which is the default unless that is a terminal.",
)
enable_option = click.option("--enable", is_flag=True, help="Undo it.")


@click.group(cls=Group)
@click.option("--log-json", is_flag=True, help="Log security events to standard error, as lines of JSON.")
def service(log_json: bool) -> None:
    """Manage the accounts of a service, also while it runs.

    \b
    Example:
        memframe service list
    """
    if log_json:
        log_as_json()


@service.command("add-developer")
@click.argument("name")
@click.option(
    "--redirect-uri",
    "redirect_uris",
    metavar="URI",
    required=True,
    multiple=True,
    help="Redirect address of the application; may be given several times.",
)
@data_options
@as_json
def add_developer(name: str, redirect_uris: tuple[str, ...], place: ServiceConfig, as_json: bool) -> None:
    """Add an application; its secrets are printed only this once.

    \b
    Example:
        memframe service add-developer "Notes" --redirect-uri https://notes.example.org/callback
    """
    with open_service(place) as deployment:
        show_secrets(secrets_of(deployment.add_developer(name, *redirect_uris)), as_json=as_json)


@service.command("add-user")
@click.argument("email")
@password_stdin
@data_options
@as_json
def add_user(email: str, password_stdin: bool, place: ServiceConfig, as_json: bool) -> None:
    """Add a user who can sign in at the dashboard; prints the user_id.

    At the first sign-in the user has to change the password.

    \b
    Example:
        memframe service add-user ada@example.org --password-stdin < password.txt
    """
    with open_service(place) as deployment:
        password = _password(from_stdin=password_stdin)
        user_id = deployment.add_user(email, password, must_change_password=True)
    show({"user_id": user_id}, user_id, as_json=as_json)


@service.command("reset-password")
@click.argument("email")
@password_stdin
@data_options
@as_json
def reset_password(email: str, password_stdin: bool, place: ServiceConfig, as_json: bool) -> None:
    """Set a user's password, and end all sessions with the old one.

    At the next sign-in the user has to change it.

    \b
    Example:
        memframe service reset-password ada@example.org --password-stdin < password.txt
    """
    with open_service(place) as deployment:
        user_id = deployment.user_id(email)
        deployment.reset_password(user_id, _password(from_stdin=password_stdin))
    show({"user_id": user_id}, f"{email} has a new password and is signed out everywhere", as_json=as_json)


@service.command("rotate-key")
@click.argument("email")
@data_options
@as_json
def rotate_user_key(email: str, place: ServiceConfig, as_json: bool) -> None:
    """Give a user a new encryption key, and seal the stored content again with it.

    Credentials then have the new key and its version. Content that applications send sealed with the old key is
    refused (409, key_version_changed) until they fetch the credentials again.

    \b
    Example:
        memframe service rotate-key ada@example.org
    """
    with open_service(place) as deployment:
        rotation = rotate_key(deployment, deployment.user_id(email))
    sealed = f"key_version {rotation.key_version}: {number_of(rotation.n_sealed, 'memory', 'memories')} sealed again"
    show(asdict(rotation), sealed, as_json=as_json)
    if rotation.n_unreadable:
        unreadable = number_of(rotation.n_unreadable, "memory", "memories")
        click.echo(f"{unreadable} could not be opened with the old key, and stay as they were", err=True)


@service.command("rotate-master-key")
@data_options
@as_json
def rotate_service_key(place: ServiceConfig, as_json: bool) -> None:
    """Replace the master key, while the service is stopped, and wrap the keys of all users with the new one.

    Nothing that applications hold changes, but that they fetch a new token. The old key file stays beside the
    new one, under a name that ends in .old, for backups that were made before. Where the service runs on
    several machines, copy the new file to the others. Broken off, it has either not happened, or is completed
    by the next start.

    A thief of the old key who has a copy of the database, too, knows the keys of users: replace those with
    `memframe service rotate-key`.

    \b
    Example:
        memframe service rotate-master-key
    """
    with open_service(place) as deployment:
        n_keys = rotate_master_key(deployment, place.master_key_file)
    words = f"{place.master_key_file} is new: {number_of(n_keys, 'key', 'keys')} of users wrapped with it"
    show({"n_keys": n_keys, "master_key_file": str(place.master_key_file)}, words, as_json=as_json)


@service.command("rotate-api-key")
@click.argument("developer")
@data_options
@as_json
def rotate_api_key(developer: str, place: ServiceConfig, as_json: bool) -> None:
    """Replace the API key of an application, named by its id or client_id; the new one is printed this once.

    The old key is refused from the next call on. A token that it was exchanged for is valid until it
    expires, after an hour unless another lifetime was asked for: to lock a thief out at once, disable the
    application until then.

    \b
    Example:
        memframe service rotate-api-key mfc_0123456789abcdef0123456789abcdef
    """
    with open_service(place) as deployment:
        values = {
            "api_key": deployment.rotate_api_key(
                deployment.developer(_full_account(deployment, developer)).id
            ).reveal()
        }
    show_secrets(values, as_json=as_json)


@service.command("rotate-client-secret")
@click.argument("developer")
@data_options
@as_json
def rotate_client_secret(developer: str, place: ServiceConfig, as_json: bool) -> None:
    """Replace the client secret of an application, named by its id or client_id; the new one is printed this once.

    The old secret is refused from the next call on, also for refresh tokens, which stay valid with the new one.

    \b
    Example:
        memframe service rotate-client-secret mfc_0123456789abcdef0123456789abcdef
    """
    with open_service(place) as deployment:
        values = {
            "client_secret": deployment.rotate_client_secret(
                deployment.developer(_full_account(deployment, developer)).id
            ).reveal()
        }
    show_secrets(values, as_json=as_json)


@service.command("disable")
@click.argument("account")
@enable_option
@data_options
@as_json
def disable_account(account: str, enable: bool, place: ServiceConfig, as_json: bool) -> None:
    """Disable an account: of a user by e-mail address or id, of an application by its id; nothing is deleted.

    The beginning of an id is enough. A disabled user cannot sign in, and nobody can read or write the memories; a
    disabled application is locked out with all its tokens. This holds from the next call on.

    \b
    Example:
        memframe service disable ada@example.org
        memframe service disable ada@example.org --enable
    """
    with open_service(place) as deployment:
        found = deployment.account(_full_account(deployment, account))
        deployment.store.accounts.set_disabled(type(found), found.id, disabled=not enable)
    kind = "user" if isinstance(found, User) else "developer"
    values = {"kind": kind, "id": found.id, "disabled": not enable}
    words = f"{kind} {found.id} is {'enabled' if enable else 'disabled'}"
    show(values, words, as_json=as_json)


@service.command("disable-tag")
@click.argument("email")
@click.argument("name")
@enable_option
@data_options
@as_json
def disable_tag(email: str, name: str, enable: bool, place: ServiceConfig, as_json: bool) -> None:
    """Disable a tag of a user: applications see `is_enabled` false; memories keep the tag.

    \b
    Example:
        memframe service disable-tag ada@example.org stamps
    """
    with open_service(place) as deployment, deployment.store.owned(deployment.user_id(email)) as memories:
        tag = memories.tags.set_enabled(name, enabled=enable)
    words = f"the tag {printable(tag.name)} is {'enabled' if enable else 'disabled'}"
    show({"id": tag.id, "name": tag.name, "is_enabled": tag.is_enabled}, words, as_json=as_json)


@service.command("backup")
@click.argument("destination", type=LocalPath())
@click.option("--without-key", is_flag=True, help="Leave out the master key, to keep it elsewhere.")
@data_options
@as_json
def back_up_service(destination: Path, without_key: bool, place: ServiceConfig, as_json: bool) -> None:
    """Copy the service into a new folder DESTINATION, as of one moment, while it serves.

    The copy is a data folder: `memframe serve --data DESTINATION` starts from it. With the master key it has to be
    protected like the service itself.

    \b
    Example:
        memframe service backup backups/2026-03-01
    """
    with open_service(place) as deployment:
        files = back_up(deployment, destination, with_key=not without_key)
    values = {"folder": str(destination), "files": {file.name: file.stat().st_size for file in files}}
    names = " and ".join(file.name for file in files)
    show(values, f"{names} in {destination}, readable by you alone", as_json=as_json)


@service.command("list")
@data_options
@as_json
def list_accounts(place: ServiceConfig, as_json: bool) -> None:
    """List developers and users.

    \b
    Example:
        memframe service list --json
    """
    with open_service(place) as deployment:
        accounts = _accounts(deployment)
    lines = [
        f"{kind:<9}  {account['id']}  {printable(account[name])}{_note(account)}"
        for kind, name in (("developer", "name"), ("user", "email"))
        for account in accounts[f"{kind}s"]
    ]
    show(accounts, "\n".join(lines), as_json=as_json)


def _full_account(deployment: Deployment, given: str) -> str:
    """Complete the id of an account; an e-mail address stays as it is."""
    if "@" in given:
        return given
    accounts = _accounts(deployment)
    ids = [developer[name] for developer in accounts["developers"] for name in ("id", "client_id")]
    ids += [user["id"] for user in accounts["users"]]
    try:
        return full_id(given, ids, ("account", "accounts"), shown_by="memframe service list")
    except NotFoundError:
        return given  # the service's own message says of what kind there is none


def _password(*, from_stdin: bool) -> Secret:
    if not from_stdin and sys.stdin.isatty():
        return Secret(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    try:
        return Secret(sys.stdin.buffer.readline().decode().rstrip("\r\n"))
    except UnicodeDecodeError:
        raise ConfigError("the password on standard input is not text in UTF-8; send it as UTF-8") from None


def _accounts(deployment: Deployment) -> dict[str, list[dict[str, Any]]]:
    """Return developers and users, without secrets."""
    accounts = deployment.store.accounts
    developers = ("id", "name", "client_id", "redirect_uris", "disabled", "created_at")
    users = ("id", "email", "key_version", "disabled", "created_at")
    return {
        "developers": [_public(developer, developers) for developer in accounts.developers()],
        "users": [_public(user, users) for user in accounts.users()],
    }


def _public(record: object, names: tuple[str, ...]) -> dict[str, Any]:
    shown = {name: getattr(record, name) for name in names}
    return shown | {"created_at": format_instant(shown["created_at"])}


def _note(account: dict[str, Any]) -> str:
    return "  (disabled)" if account["disabled"] else ""

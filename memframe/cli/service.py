"""`memframe service`: manage the accounts, keys and memories of a service, also while it runs."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any, Literal

import click
from msgspec.structs import asdict

from memframe.cli.options import Group, LocalPath, full_id
from memframe.cli.serve import as_json, data_options, open_service, secrets_of, show, show_secrets
from memframe.display import number_of, printable
from memframe.errors import ConfigError, NotFoundError
from memframe.files import atomic_file, raise_os_errors_as
from memframe.readers import read_memories
from memframe.secret import Secret
from memframe.service.clock import format_instant
from memframe.service.deployment import Deployment, ServiceConfig
from memframe.service.importing import preview_import, run_import, undo_import
from memframe.service.logs import log_as_json
from memframe.service.maintenance import back_up, rotate_key, rotate_master_key
from memframe.service.person import EXPORTS, count_memories
from memframe.service.store import User
from memframe.service.store.imports import list_imports

password_stdin = click.option(
    "--password-stdin",
    is_flag=True,
    help="Read the password as one line of standard input, which is the default unless that is a terminal.",
)
enable_option = click.option("--enable", is_flag=True, help="Undo it.")


@click.group("service", cls=Group)
@click.option("--log-json", is_flag=True, help="Log security events to standard error, as lines of JSON.")
def service_group(log_json: bool) -> None:
    """Manage the accounts of a service, even while it is running.

    \b
    Example:
        memframe service list
    """
    if log_json:
        log_as_json()


@service_group.command("add-developer")
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
    """Add an application; its secrets are printed only once.

    \b
    Example:
        memframe service add-developer "Notes" --redirect-uri https://notes.example.org/callback
    """
    with open_service(place) as deployment:
        show_secrets(secrets_of(deployment.add_developer(name, *redirect_uris)), as_json=as_json)


@service_group.command("add-user")
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


@service_group.command("reset-password")
@click.argument("email")
@password_stdin
@data_options
@as_json
def reset_password(email: str, password_stdin: bool, place: ServiceConfig, as_json: bool) -> None:
    """Set a user's password, and end all existing sessions.

    At the next sign-in the user has to change it.

    \b
    Example:
        memframe service reset-password ada@example.org --password-stdin < password.txt
    """
    with open_service(place) as deployment:
        user_id = deployment.user_id(email)
        deployment.reset_password(user_id, _password(from_stdin=password_stdin))
    show({"user_id": user_id}, f"{email} has a new password and is signed out everywhere", as_json=as_json)


@service_group.command("rotate-key")
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
        click.echo(f"{unreadable} could not be opened with the old key and are unchanged", err=True)


@service_group.command("rotate-master-key")
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


@service_group.command("rotate-api-key")
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
    _rotate_secret(place, developer, "api_key", as_json=as_json)


@service_group.command("rotate-client-secret")
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
    _rotate_secret(place, developer, "client_secret", as_json=as_json)


def _rotate_secret(
    place: ServiceConfig, named: str, kind: Literal["api_key", "client_secret"], *, as_json: bool
) -> None:
    with open_service(place) as deployment:
        developer = deployment.developer(_full_account(deployment, named))
        secret = deployment.rotate_secret(developer.id, kind)
    show_secrets({kind: secret.reveal()}, as_json=as_json)


@service_group.command("disable")
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


@service_group.command("disable-tag")
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


@service_group.command("backup")
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
    show(values, f"{names} in {destination}, readable only by you", as_json=as_json)


user_option = click.option(
    "--user", "email", metavar="E-MAIL", required=True, help="E-mail address or id of the person."
)


@service_group.command("export-user")
@click.argument("destination", metavar="PATH", type=LocalPath(dir_okay=False))
@user_option
@data_options
@as_json
def export_user(destination: Path, email: str, place: ServiceConfig, as_json: bool) -> None:
    """Write all memories of a person to PATH, a new file ending in .json or .md, in plain text.

    It is what the person can download from the dashboard. The file is readable by you alone.

    \b
    Example:
        memframe service export-user ada.json --user ada@example.org
    """
    export = EXPORTS.get(destination.suffix.lower())
    if export is None:
        raise ConfigError(f"{destination} ends neither in .json nor in .md; name a file that does")
    with open_service(place) as deployment:
        user = _find_user(deployment, email)
        refusal = f"the file {destination} cannot be written", "name a new file in a folder that is there"
        with raise_os_errors_as(ConfigError, *refusal), atomic_file(destination, may_replace=False) as file:
            file.writelines(export(deployment, user))
    size = destination.stat().st_size
    shown = {"path": str(destination), "user_id": user.id, "bytes": size}
    show(shown, f"{destination}: {size:,} bytes, readable only by you", as_json=as_json)


@service_group.command("erase-user")
@user_option
@click.option("--confirm", metavar="N", type=click.IntRange(min=0), help="How many memories the person has.")
@data_options
@as_json
def erase_user(email: str, confirm: int | None, place: ServiceConfig, as_json: bool) -> None:
    """Permanently delete a person's account with all memories, tags, keys, access and records.

    Prints a receipt. The service keeps of the account a keyed digest of its id, which is in the receipt, and the time.
    Backups are not affected: after you restore one, erase the account again.

    \b
    Example:
        memframe service erase-user --user ada@example.org --confirm 128
    """
    with open_service(place) as deployment:
        user = _find_user(deployment, email)
        if confirm is None:
            number = count_memories(deployment, user.id)
            raise ConfigError(
                f"{printable(user.email)} has {number_of(number, 'memory', 'memories')}, which would be deleted for "
                f"good with the account; give --confirm {number} to go on"
            )
        receipt = asdict(deployment.erase_user(user.id, expected=confirm))
    words = "\n".join(f"{name.replace('_', ' '):<16} {value}" for name, value in receipt.items())
    show(receipt, words, as_json=as_json)


def _find_user(deployment: Deployment, named: str) -> User:
    found = deployment.account(_full_account(deployment, named))
    if not isinstance(found, User):
        raise ConfigError(f"{printable(named)} is an application; name a person by e-mail address or id")
    return found


@service_group.command("import")
@click.argument("source", metavar="FILE", type=LocalPath())
@user_option
@click.option(
    "--format", "form", default="auto", show_default=True, help="Format of FILE, where several fit."
)
@click.option("--zone", metavar="ZONE", help="Time zone of times without one, such as Europe/Paris.")
@click.option("--apply", "applies", is_flag=True, help="Write the memories; without it they are counted.")
@data_options
@as_json
def import_file(
    source: Path,
    email: str,
    form: str,
    zone: str | None,
    applies: bool,
    place: ServiceConfig,
    as_json: bool,
) -> None:
    """Import the memories of a file or folder of another memory system, or an archive, with their times.

    A row that was imported before is left out, also after an import that was broken off: import the file once more to
    complete it. The id that is printed undoes the import.

    \b
    Example:
        memframe service import mem0.json --user ada@example.org
        memframe service import mem0.json --user ada@example.org --apply
    """
    with warnings.catch_warnings(record=True):  # of what was left out, which is shown below
        warnings.simplefilter("always")
        frame = read_memories(source, format=form, zone=zone)
    summary = frame.attrs["memframe_read"]["summary"]
    with open_service(place) as deployment:
        user = _find_user(deployment, email)
        run = (run_import if applies else preview_import)(deployment, user.id, frame)
    shown = {**asdict(run), "user_id": user.id, "read": summary}
    new, known = (number_of(number, "memory", "memories") for number in (run.n_new, run.n_known))
    if run.id:
        words = f"{summary}\n{new} imported, {known} known already.\nTo undo it: memframe service undo-import {run.id}"
    else:
        words = f"{summary}\n{new} to import, {known} known already." + (
            " --apply writes them." if run.n_new else ""
        )
    show(shown, words, as_json=as_json)


@service_group.command("imports")
@data_options
@as_json
def list_import_runs(place: ServiceConfig, as_json: bool) -> None:
    """List the imports that can be undone, newest first.

    \b
    Example:
        memframe service imports --json
    """
    with open_service(place) as deployment:
        runs = [asdict(run) for run in list_imports(deployment.store.engine)]
    for run in runs:
        run["started_at"] = format_instant(run["started_at"])
        run["finished_at"] = run["finished_at"] and format_instant(run["finished_at"])
    lines = [
        f"{run['id']}  {run['started_at']}  {number_of(run['n_memories'], 'memory', 'memories')} of {run['user_id']}"
        + ("" if run["finished_at"] else "  (broken off)")
        for run in runs
    ]
    show(runs, "\n".join(lines), as_json=as_json)


@service_group.command("undo-import")
@click.argument("import_id", metavar="ID")
@click.option("--confirm", metavar="N", type=click.IntRange(min=0), help="How many memories were imported.")
@data_options
@as_json
def undo_import_command(import_id: str, confirm: int | None, place: ServiceConfig, as_json: bool) -> None:
    """Delete the memories that an import created; the beginning of its id is enough.

    Memories that have changed since are kept.

    \b
    Example:
        memframe service undo-import 7c9e6679 --confirm 128
    """
    with open_service(place) as deployment:
        runs = {run.id: run for run in list_imports(deployment.store.engine)}
        found = full_id(import_id, runs, ("import", "imports"), shown_by="memframe service imports")
        run = runs[found]
        if confirm != run.n_memories:
            number = number_of(run.n_memories, "memory", "memories")
            raise ConfigError(
                f"the import {found} created {number}, which would be deleted for good; "
                f"give --confirm {run.n_memories} to go on"
            )
        undone = undo_import(deployment, run)
    deleted = number_of(undone.n_deleted, "memory", "memories")
    words = f"{deleted} deleted; {undone.n_changed:,} changed since and kept, {undone.n_gone:,} gone before"
    show(asdict(undone), words, as_json=as_json)


@service_group.command("list")
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

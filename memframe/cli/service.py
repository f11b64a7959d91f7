"""`memframe service`: manage the accounts, keys and memories of a service, also while it runs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import click
from msgspec.structs import asdict

from memframe.cli.check import check_command
from memframe.cli.options import (
    COUNT,
    FILE,
    Command,
    Group,
    LocalPath,
    as_json,
    combine,
    example,
    print_result,
)
from memframe.cli.serve import data_options, lines_to_paste, open_service, secrets_of
from memframe.client.responses import full_id
from memframe.display import number_of, printable
from memframe.errors import ConfigError, NotFoundError
from memframe.files import atomic_file, raise_os_errors_as
from memframe.secret import Secret
from memframe.service.clock import format_instant
from memframe.service.deployment import Deployment, ServiceConfig
from memframe.service.importing import list_imports, run_import, undo_import
from memframe.service.logs import log_as_json
from memframe.service.person_pages import EXPORTS
from memframe.service.store.accounts import User

Shown = tuple[Any, str | list[str] | None]
"""The values that a command prints as JSON, and the same in words; None prints a line for each value."""

email = click.argument("email")
password_stdin = click.option(
    "--password-stdin",
    is_flag=True,
    help="Read the password from one line of standard input. Default, unless that is a terminal.",
)
enable_option = click.option("--enable", is_flag=True, help="Enable again.")
user_option = click.option(
    "--user", "email", metavar="E-MAIL", required=True, help="E-mail address or id of the person."
)


def person(run: Command) -> Command:
    """Take a person by e-mail address or id, as the argument or as --user."""

    @click.argument("email", required=False)
    @click.option("--user", "named", metavar="E-MAIL", help="The same as EMAIL.")
    @wraps(run)
    def with_person(*args: Any, email: str | None, named: str | None, **given: Any) -> None:
        if (email is None) == (named is None):
            raise click.UsageError("Give one person: EMAIL, or --user E-MAIL.")
        run(*args, email=email or named, **given)

    return with_person


@click.group("service", cls=Group)
@click.option("--log-json", is_flag=True, help="Log security events to standard error, as lines of JSON.")
@example("memframe service list")
def service_group(log_json: bool) -> None:
    """Manage the accounts of a service, even while it is running."""
    if log_json:
        log_as_json()


service_group.add_command(check_command)


def command(
    name: str, *parameters: Callable[[Command], Command]
) -> Callable[[Callable[..., Shown]], click.Command]:
    """Make a command of the group, which gets the open service first, and prints what the function returns."""

    def register(work: Callable[..., Shown]) -> click.Command:
        @data_options
        @as_json
        @wraps(work)
        def run(place: ServiceConfig, **given: Any) -> None:
            with open_service(place) as deployment:
                values, words = work(deployment, **given)
            print_result(values, words)

        return service_group.command(name)(combine(*parameters)(run))

    return register


@command(
    "add-developer",
    click.argument("name"),
    click.option(
        "--redirect-uri",
        "redirect_uris",
        metavar="URI",
        required=True,
        multiple=True,
        help="Redirect address of the application; may be repeated.",
    ),
)
@example('memframe service add-developer "Notes" --redirect-uri https://notes.example.org/callback')
def add_developer(deployment: Deployment, name: str, redirect_uris: tuple[str, ...]) -> Shown:
    """Add an application; its secrets are printed only once, as lines to paste into a shell."""
    secrets = secrets_of(deployment.add_developer(name, *redirect_uris))
    return secrets, lines_to_paste(secrets | {"redirect_uri": redirect_uris[0]})


@command("add-user", email, password_stdin)
@example("memframe service add-user ada@example.org --password-stdin < password.txt")
def add_user(deployment: Deployment, email: str, password_stdin: bool) -> Shown:
    """Add a user who can sign in to the dashboard, and print the user_id.

    The user has to change the password at the first sign-in.
    """
    password = _ask_password(from_stdin=password_stdin)
    user_id = deployment.add_user(email, password, must_change_password=True)
    return {"user_id": user_id}, user_id


@command("reset-password", person, password_stdin)
@example("memframe service reset-password ada@example.org --password-stdin < password.txt")
def reset_password(deployment: Deployment, email: str, password_stdin: bool) -> Shown:
    """Set a user's password, and end all sessions.

    The user has to change it at the next sign-in.
    """
    user_id = _user_id(deployment, email)
    deployment.reset_password(user_id, _ask_password(from_stdin=password_stdin))
    return {"user_id": user_id}, f"{email} has a new password and is signed out everywhere"


@command("rotate-key", person)
@example("memframe service rotate-key ada@example.org")
def rotate_user_key(deployment: Deployment, email: str) -> Shown:
    """Give a user a new encryption key, and encrypt the stored content with it.

    Applications have to fetch the credentials again, which hold the new key and its version. Until then, content that
    they send sealed with the old key is refused (409, key_version_changed).
    """
    rotation = deployment.rotate_key(_user_id(deployment, email))
    if rotation.n_unreadable:
        unreadable = number_of(rotation.n_unreadable, "memory", "memories")
        click.echo(f"{unreadable} could not be opened with the old key and are unchanged", err=True)
    sealed = number_of(rotation.n_sealed, "memory", "memories")
    return asdict(rotation), f"key_version {rotation.key_version}: {sealed} sealed again"


@service_group.command("rotate-master-key")
@data_options
@as_json
@example("memframe service rotate-master-key")
def rotate_service_key(place: ServiceConfig) -> None:
    """Replace the master key, which wraps the keys of all users. Stop the service first.

    Applications keep their keys, and only need a new token. The old key file stays next to the new one, with a name
    that ends in .old, for earlier backups. If the service runs on several machines, copy the new file to the others.
    If the command is interrupted, either nothing has changed or the next start completes it.

    If somebody has the old key and a copy of the database, they have the users' keys: replace those, too, with
    `memframe service rotate-key`.
    """
    with open_service(place) as deployment:
        n_keys = deployment.rotate_master_key(place.master_key_file)
    words = f"{place.master_key_file} is new: {number_of(n_keys, 'key', 'keys')} of users wrapped with it"
    print_result({"n_keys": n_keys, "master_key_file": str(place.master_key_file)}, words)


@command("rotate-api-key", click.argument("developer"))
@example("memframe service rotate-api-key mfc_0123456789abcdef0123456789abcdef")
def rotate_api_key(deployment: Deployment, developer: str) -> Shown:
    """Replace the API key of an application (by id or client_id), and print the new one, only once.

    The old key is refused at once. Tokens that were issued for it stay valid until they expire, after an hour by
    default. To lock a thief out immediately, disable the application until then.
    """
    return _rotate_secret(deployment, developer, "api_key")


@command("rotate-client-secret", click.argument("developer"))
@example("memframe service rotate-client-secret mfc_0123456789abcdef0123456789abcdef")
def rotate_client_secret(deployment: Deployment, developer: str) -> Shown:
    """Replace the client secret of an application (by id or client_id), and print the new one, only once.

    The old secret is refused at once. Refresh tokens stay valid, with the new secret.
    """
    return _rotate_secret(deployment, developer, "client_secret")


def _rotate_secret(deployment: Deployment, named: str, kind: Literal["api_key", "client_secret"]) -> Shown:
    developer = deployment.developer(_full_account(deployment, named))
    return {kind: deployment.rotate_secret(developer.id, kind).reveal()}, None


@command("disable", click.argument("account"), enable_option)
@example("memframe service disable ada@example.org", "memframe service disable ada@example.org --enable")
def disable_account(deployment: Deployment, account: str, enable: bool) -> Shown:
    """Disable a user (by e-mail address or id) or an application (by id), without deleting anything.

    The beginning of an id is enough. A disabled user cannot sign in, and nobody can read or write the memories. A
    disabled application is locked out with all its tokens. Both take effect at once.
    """
    found = deployment.account(_full_account(deployment, account))
    deployment.store.accounts.set_disabled(type(found), found.id, disabled=not enable)
    kind = "user" if isinstance(found, User) else "developer"
    words = f"{kind} {found.id} is {'enabled' if enable else 'disabled'}"
    return {"kind": kind, "id": found.id, "disabled": not enable}, words


@command("disable-tag", email, click.argument("name"), enable_option)
@example("memframe service disable-tag ada@example.org stamps")
def disable_tag(deployment: Deployment, email: str, name: str, enable: bool) -> Shown:
    """Disable a user's tag: applications see `is_enabled` false, and memories keep the tag."""
    with deployment.store.transaction_of(_user_id(deployment, email)) as memories:
        tag = memories.enable_tag(name, enabled=enable)
    words = f"the tag {printable(tag.name)} is {'enabled' if enable else 'disabled'}"
    return {"id": tag.id, "name": tag.name, "is_enabled": tag.is_enabled}, words


@command(
    "backup",
    click.argument("destination", type=LocalPath()),
    click.option("--without-key", is_flag=True, help="Do not copy the master key, if you keep it elsewhere."),
)
@example("memframe service backup backups/2026-03-01")
def back_up_service(deployment: Deployment, destination: Path, without_key: bool) -> Shown:
    """Copy the service, even while it is running, into a new folder DESTINATION.

    The copy is a data folder of one moment: `memframe serve --data DESTINATION` starts from it. It contains the master
    key, so protect it like the service itself.
    """
    files = deployment.back_up(destination, with_key=not without_key)
    values = {"folder": str(destination), "files": {file.name: file.stat().st_size for file in files}}
    return values, f"{' and '.join(values['files'])} in {destination}, readable only by you"


@command("export-user", click.argument("destination", metavar="PATH", type=FILE), user_option)
@example("memframe service export-user ada.json --user ada@example.org")
def export_user(deployment: Deployment, destination: Path, email: str) -> Shown:
    """Write all memories of a person to PATH, a new file ending in .json or .md, in plain text.

    The person can download the same from the dashboard. The file is readable only by you.
    """
    export = EXPORTS.get(destination.suffix.lower())
    if export is None:
        raise ConfigError(f"{destination} must end in .json or .md")
    user = _find_user(deployment, email)
    unwritable, advice = f"the file {destination} cannot be written", "give a new file in an existing folder"
    with (
        raise_os_errors_as(ConfigError, unwritable, advice),
        atomic_file(destination, may_replace=False) as file,
    ):
        file.writelines(export(deployment, user))
    size = destination.stat().st_size
    values = {"path": str(destination), "user_id": user.id, "bytes": size}
    return values, f"{destination}: {size:,} bytes, readable only by you"


@command(
    "erase-user",
    person,
    click.option("--confirm", metavar="N", type=COUNT, help="Number of memories that the person has."),
)
@example("memframe service erase-user ada@example.org --confirm 128")
def erase_user(deployment: Deployment, email: str, confirm: int | None) -> Shown:
    """Permanently delete a person's account with all memories, tags, keys, access and records.

    Prints a receipt. The service keeps only the time and a keyed digest of the account's id, which is on the receipt.
    Backups are not affected: after you restore one, erase the account again.
    """
    user = _find_user(deployment, email)
    if confirm is None:
        with deployment.store.snapshot_of(user.id) as memories:
            number = memories.count()
        raise ConfigError(
            f"{printable(user.email)} has {number_of(number, 'memory', 'memories')} that would be deleted "
            f"for good with the account: to continue, give --confirm {number}"
        )
    return asdict(deployment.erase_user(user.id, expected=confirm)), None


@command(
    "import",
    click.argument("source", metavar="FILE", type=LocalPath()),
    user_option,
    click.option("--format", "form", default="auto", help="Format of FILE, if several fit."),
    click.option("--zone", metavar="ZONE", help="Time zone of times without one, such as Europe/Paris."),
    click.option(
        "--with-outdated",
        is_flag=True,
        help="Also import what its source calls invalid, superseded, archived, paused or deleted.",
    ),
    click.option(
        "--apply", "applies", is_flag=True, help="Write the memories instead of only counting them."
    ),
)
@example(
    "memframe service import mem0.json --user ada@example.org",
    "memframe service import mem0.json --user ada@example.org --apply",
)
def import_file(
    deployment: Deployment,
    source: Path,
    email: str,
    form: str,
    zone: str | None,
    with_outdated: bool,
    applies: bool,
) -> Shown:
    """Import the memories of a file or folder of another memory system, or an archive, with their times.

    Rows that were imported before are left out. To complete an interrupted import, import the file again. To undo an
    import, use the id that is printed.
    """
    from memframe.frames import READ  # noqa: PLC0415 - the other commands start without pandas
    from memframe.readers import read_memories  # noqa: PLC0415 - as above

    with warnings.catch_warnings(action="ignore"):  # the summary says what was left out
        frame = read_memories(source, format=form, zone=zone)
    summary = frame.attrs[READ]["summary"]
    user = _find_user(deployment, email)
    run = run_import(deployment, user.id, frame, applies=applies, with_outdated=with_outdated)
    new, known, repeated, outdated, undated = (
        number_of(number, "memory", "memories")
        for number in (run.n_new, run.n_known, run.n_repeated, run.n_outdated, run.n_undated)
    )
    columns = ", ".join(f"{printable(name)} ({number:,})" for name, number in run.not_stored.items())
    lines = [
        summary,
        f"{new} {'imported' if run.id else 'to import'}, {known} already known.",
        f"Repeated in the file, and imported once: {repeated}." if run.n_repeated else "",
        f"Left out, as their source calls them outdated: {outdated}. To import them, add --with-outdated."
        if run.n_outdated
        else "",
        f"Without a date, so the time of the import is stored: {undated}." if run.n_undated else "",
        f"Not stored, because memories have no such field: {columns}." if columns else "",
        "" if run.id or not run.n_new else "To write them, add --apply.",
        f"To undo it: memframe service undo-import {run.id}" if run.id else "",
    ]
    return {**asdict(run), "user_id": user.id, "read": summary}, "\n".join(filter(None, lines))


@command("imports")
@example("memframe service imports --json")
def list_import_runs(deployment: Deployment) -> Shown:
    """List the imports that can be undone, newest first."""
    runs = [asdict(run) for run in list_imports(deployment)]
    lines = []
    for run in runs:
        for name in ("started_at", "finished_at"):
            run[name] = run[name] and format_instant(run[name])
        count = number_of(run["n_memories"], "memory", "memories")
        broken_off = "" if run["finished_at"] else "  (interrupted)"
        lines.append(f"{run['id']}  {run['started_at']}  {count} of {run['user_id']}{broken_off}")
    return runs, "\n".join(lines)


@command(
    "undo-import",
    click.argument("import_id", metavar="ID"),
    click.option("--confirm", metavar="N", type=COUNT, help="Number of memories that were imported."),
)
@example("memframe service undo-import 7c9e6679 --confirm 128")
def undo_import_command(deployment: Deployment, import_id: str, confirm: int | None) -> Shown:
    """Delete the memories that an import created. The beginning of its id is enough.

    Memories that have changed since are kept.
    """
    runs = {run.id: run for run in list_imports(deployment)}
    run = runs[full_id(import_id, runs, ("import", "imports"), shown_by="`memframe service imports`")]
    if confirm != run.n_memories:
        number = number_of(run.n_memories, "memory", "memories")
        raise ConfigError(
            f"the import {run.id} created {number} that would be deleted for good: "
            f"to continue, give --confirm {run.n_memories}"
        )
    undone = undo_import(deployment, run)
    deleted = number_of(undone.n_deleted, "memory", "memories")
    words = f"{deleted} deleted; {undone.n_changed:,} changed since and kept, {undone.n_gone:,} already gone"
    return asdict(undone), words


@command("list")
@example("memframe service list --json")
def list_accounts(deployment: Deployment) -> Shown:
    """List developers and users."""
    accounts = _read_accounts(deployment)
    lines = [
        f"{kind:<9}  {account['id']}  {printable(account[name])}{'  (disabled)' if account['disabled'] else ''}"
        for kind, name in (("developer", "name"), ("user", "email"))
        for account in accounts[f"{kind}s"]
    ]
    return accounts, "\n".join(lines)


def _read_accounts(deployment: Deployment) -> dict[str, list[dict[str, Any]]]:
    """Return developers and users, without secrets."""
    accounts = deployment.store.accounts
    fields = {
        "developers": ("id", "name", "client_id", "redirect_uris", "disabled", "created_at"),
        "users": ("id", "email", "key_version", "disabled", "created_at"),
    }
    found: dict[str, Sequence[Any]] = {"developers": accounts.developers(), "users": accounts.users()}
    return {
        kind: [
            {name: getattr(record, name) for name in names}
            | {"created_at": format_instant(record.created_at)}
            for record in found[kind]
        ]
        for kind, names in fields.items()
    }


def _full_account(deployment: Deployment, given: str) -> str:
    """Complete the id of an account; an e-mail address stays as it is."""
    if "@" in given:
        return given
    accounts = _read_accounts(deployment)
    ids = [developer[name] for developer in accounts["developers"] for name in ("id", "client_id")]
    ids += [user["id"] for user in accounts["users"]]
    try:
        return full_id(given, ids, ("account", "accounts"), shown_by="`memframe service list`")
    except NotFoundError:
        return given  # the service's own message names the kind of account that does not exist


def _user_id(deployment: Deployment, named: str) -> str:
    return deployment.user_id(named) if "@" in named else _find_user(deployment, named).id


def _find_user(deployment: Deployment, named: str) -> User:
    found = deployment.account(_full_account(deployment, named))
    if not isinstance(found, User):
        raise ConfigError(f"{printable(named)} is an application; give the e-mail address or id of a person")
    return found


def _ask_password(*, from_stdin: bool) -> Secret:
    if not from_stdin and sys.stdin.isatty():
        return Secret(
            click.prompt(
                "Password (8 to 1024 characters)", hide_input=True, confirmation_prompt=True, err=True
            )
        )
    try:
        line = sys.stdin.buffer.readline().decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigError("the password on standard input is not text in UTF-8; send it as UTF-8") from None
    if not line:
        raise ConfigError(
            "there is no password on standard input: send 8 to 1024 characters, or run the command in a terminal"
        )
    return Secret(line)

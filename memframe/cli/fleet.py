"""`memframe fleet`: every user who has approved, audited or exported into one folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import pandas as pd

from memframe.audit.findings import SEVERITIES
from memframe.cli.options import Group, LocalPath, as_json
from memframe.client import Client, connect
from memframe.display import number_of, printable
from memframe.fleet import FleetFolder, audit_fleet, export_fleet
from memframe.fleet.run import dask_client_at

SOME_FAILED, FOUND = 1, 6
"""Exit codes: a user failed; the audit found what it was told to fail on."""

MAX_ERRORS = 10
"""Users whose trouble is shown; ``outcomes.parquet`` has all."""


@click.group("fleet", cls=Group)
def on_every_user() -> None:
    """Every user who has approved: audit or export them all into one folder.

    A command that is repeated does only what is missing. It ends with 1 if a user failed; one who took the
    approval back is no failure.

    \b
    Example:
        memframe fleet audit fleet-2026-11 --json
    """


def on_fleet(command: Callable[..., None]) -> Callable[..., None]:
    """The options of all commands over a fleet."""
    options = [
        click.argument("path", type=LocalPath()),
        click.option(
            "--workers",
            default=8,
            show_default=True,
            type=click.IntRange(min=1),
            help="Threads on this machine.",
        ),
        click.option(
            "--dask", "address", metavar="ADDRESS", help="Scheduler of a Dask cluster to do it instead."
        ),
        as_json,
    ]
    for option in reversed(options):
        command = option(command)
    return command


@on_every_user.command("audit")
@on_fleet
@click.option(
    "--archives/--no-archives", default=True, help="Also keep what was audited, sealed with each user's key."
)
@click.option("--fail-on", type=click.Choice(SEVERITIES), help="End with 6 if there are findings as severe.")
def audit_all(*, archives: bool, fail_on: str | None, **options: Any) -> None:
    """Audit the memories of every user, each alone; findings land in PATH by user.

    \b
    Example:
        memframe fleet audit fleet-2026-11 --fail-on high
    """
    with _scheduled(**options) as (client, how):
        folder = audit_fleet(client, options["path"], archives=archives, **how)
    severities = folder.severities()
    _tell(folder, options["as_json"], n_findings=severities.total())
    worst = SEVERITIES[SEVERITIES.index(fail_on) :] if fail_on else ()
    _end(folder, found=any(severities[severity] for severity in worst))


@on_every_user.command("export")
@on_fleet
@click.option("--plaintext", is_flag=True, help="Leave the archives open to whoever can read PATH.")
def export_all(*, plaintext: bool, **options: Any) -> None:
    """Export the memories of every user into PATH, an archive each, sealed with the user's key.

    \b
    Example:
        memframe fleet export fleet-2026-11
    """
    with _scheduled(**options) as (client, how):
        folder = export_fleet(client, options["path"], sealed=not plaintext, **how)
    _tell(folder, options["as_json"])
    _end(folder)


@contextmanager
def _scheduled(
    path: Path, address: str | None, workers: int, **_: object
) -> Iterator[tuple[Client, dict[str, Any]]]:
    """A client, and how the work is shared out."""
    with connect() as client, ExitStack() as cluster:
        how = (
            {"scheduler": cluster.enter_context(dask_client_at(address))} if address else {"workers": workers}
        )
        try:
            yield client, how
        except KeyboardInterrupt:
            n_done = int((FleetFolder(path).outcomes["status"] == "done").sum())
            raise click.ClickException(
                f"stopped; {number_of(n_done, 'user is', 'users are')} done in {path}, and the same "
                "command goes on with the others"
            ) from None


def _tell(folder: FleetFolder, as_json: bool, **counts: int) -> None:
    outcomes = folder.outcomes
    n_of = {
        **{status: int((outcomes["status"] == status).sum()) for status in ("done", "failed", "revoked")},
        "n_rows": int(outcomes["n_rows"].sum()),
        **counts,
    }
    if as_json:
        click.echo(json.dumps({"path": str(folder.path), **n_of, "n_before": folder.n_before}))
        return
    numbers = [number_of(n_of[name], *nouns) for name, nouns in _NOUNS.items() if name in n_of]
    before = f"; done before: {folder.n_before:,}" if folder.n_before else ""
    click.echo(f"{', '.join(numbers)}; in {folder.path}, readable by you alone{before}")
    for line in _trouble(folder, outcomes):
        click.echo(printable(line), err=True)


def _trouble(folder: FleetFolder, outcomes: pd.DataFrame) -> Iterator[str]:
    """What somebody should do something about."""
    is_revoked = outcomes["status"] == "revoked"
    told = outcomes[outcomes["error"].notna() & ~is_revoked].head(MAX_ERRORS)
    yield from (f"{row.user_id}: {row.error}" for row in told.itertuples())
    if (outcomes["status"] == "failed").any():
        yield "the same command again does what is missing"
    for user_id in outcomes["user_id"][is_revoked].dropna():
        if kept := folder.kept(user_id):
            yield f"{user_id}: approval is revoked; delete what is left in {' and '.join(map(str, kept))}"


_NOUNS = {
    "done": ("user done", "users done"),
    "failed": ("failed", "failed"),
    "revoked": ("revoked", "revoked"),
    "n_rows": ("memory", "memories"),
    "n_findings": ("finding", "findings"),
}


def _end(folder: FleetFolder, *, found: bool = False) -> None:
    has_failed = (folder.outcomes["status"] == "failed").any()
    click.get_current_context().exit(SOME_FAILED if has_failed else FOUND if found else 0)

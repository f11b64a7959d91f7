"""`memframe fleet`: audit or export the memories of all users who approved."""

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
from memframe.fleet.run import dask_client_at, forget_revoked

SOME_FAILED, FOUND = 1, 6
"""Exit codes: a user failed; the audit has findings of --fail-on."""

MAX_ERRORS = 10
"""Errors that are printed; ``outcomes.parquet`` has all."""


@click.group("fleet", cls=Group)
def fleet_group() -> None:
    """Audit or export the memories of every user who approved, into one folder.

    A repeated command processes only users who are missing. It ends with 1 if a user failed; a revoked approval is
    no failure.

    \b
    Example:
        memframe fleet audit fleet-2026-11 --json
    """


def fleet_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all commands of the group have."""
    options = [
        click.argument("path", type=LocalPath()),
        click.option(
            "--workers",
            metavar="N",
            default=8,
            show_default=True,
            type=click.IntRange(min=1),
            help="Threads on this machine.",
        ),
        click.option(
            "--dask", "address", metavar="ADDRESS", help="Scheduler of a Dask cluster to use instead."
        ),
        as_json,
    ]
    for option in reversed(options):
        command = option(command)
    return command


@fleet_group.command("audit")
@fleet_options
@click.option(
    "--archives/--no-archives",
    default=True,
    help="Also keep the audited memories, sealed with each user's key.",
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    help="End with 6 if there are findings of this severity or worse.",
)
def fleet_audit(*, archives: bool, fail_on: str | None, **options: Any) -> None:
    """Audit the memories of every user separately, and write the findings to PATH.

    \b
    Example:
        memframe fleet audit fleet-2026-11 --fail-on high
    """
    with _connect(**options) as (client, how):
        folder = audit_fleet(client, options["path"], archives=archives, **how)
    severities = folder.severities()
    _print_result(folder, options["as_json"], n_findings=severities.total())
    worst = SEVERITIES[SEVERITIES.index(fail_on) :] if fail_on else ()
    _exit(folder, found=any(severities[severity] for severity in worst))


@fleet_group.command("export")
@fleet_options
@click.option(
    "--plaintext", is_flag=True, help="Do not seal the archives: anyone who can read PATH can read them."
)
def fleet_export(*, plaintext: bool, **options: Any) -> None:
    """Export the memories of every user to PATH, one archive per user, sealed with the user's key.

    \b
    Example:
        memframe fleet export fleet-2026-11
    """
    with _connect(**options) as (client, how):
        folder = export_fleet(client, options["path"], sealed=not plaintext, **how)
    _print_result(folder, options["as_json"])
    _exit(folder)


@fleet_group.command("forget")
@click.argument("path", type=LocalPath(exists=True))
@as_json
def fleet_forget(path: Path, as_json: bool) -> None:
    """Delete from PATH the data of users who revoked their approval, as `audit` and `export` do when they run again.

    \b
    Example:
        memframe fleet forget fleet-2026-11
    """
    with connect() as client:
        folder = forget_revoked(client, path)
    if as_json:
        click.echo(json.dumps({"path": str(folder.path), "forgotten": folder.forgotten}))
    else:
        click.echo(_forgotten(folder) or f"{folder.path} holds nothing of users who revoked their approval")


def _forgotten(folder: FleetFolder) -> str:
    n = len(folder.forgotten)
    return (
        f"{number_of(n, 'user', 'users')} revoked: findings and memories deleted from {folder.path}"
        if n
        else ""
    )


@contextmanager
def _connect(
    path: Path, address: str | None, workers: int, **_: object
) -> Iterator[tuple[Client, dict[str, Any]]]:
    """Yield a client, and the options of the scheduler."""
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
                "command processes the others"
            ) from None


def _print_result(folder: FleetFolder, as_json: bool, **counts: int) -> None:
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
    click.echo(f"{', '.join(numbers)}; in {folder.path}, readable only by you{before}")
    for line in _problems(folder, outcomes):
        click.echo(printable(line), err=True)


def _problems(folder: FleetFolder, outcomes: pd.DataFrame) -> Iterator[str]:
    """Yield errors, and what was deleted."""
    is_revoked = outcomes["status"] == "revoked"
    failed = outcomes[outcomes["error"].notna() & ~is_revoked].head(MAX_ERRORS)
    yield from (f"{row.user_id}: {row.error}" for row in failed.itertuples())
    if (outcomes["status"] == "failed").any():
        yield "repeat the command to process the users who are missing"
    if forgotten := _forgotten(folder):
        yield forgotten


_NOUNS = {
    "done": ("user done", "users done"),
    "failed": ("failed", "failed"),
    "revoked": ("revoked", "revoked"),
    "n_rows": ("memory", "memories"),
    "n_findings": ("finding", "findings"),
}


def _exit(folder: FleetFolder, *, found: bool = False) -> None:
    has_failed = (folder.outcomes["status"] == "failed").any()
    click.get_current_context().exit(SOME_FAILED if has_failed else FOUND if found else 0)

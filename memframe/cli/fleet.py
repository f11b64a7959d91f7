"""`memframe fleet`: audit or export the memories of all users who approved."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from memframe.audit.findings import Severity
from memframe.cli.options import FOUND, Group, LocalPath, as_json, combine, example, remark, show, wants_json
from memframe.cli.read import at_least, fail_on_option
from memframe.client import Client, connect
from memframe.display import number_of, printable
from memframe.fleet import FleetFolder, audit_fleet, export_fleet
from memframe.fleet.run import dask_client_at, forget_revoked

SOME_FAILED = 1
"""Exit code if a user failed."""

MAX_ERRORS = 10
"""Errors that are printed; ``outcomes.parquet`` has all."""

_NOUNS = {
    "done": ("user done", "users done"),
    "failed": ("failed", "failed"),
    "revoked": ("revoked", "revoked"),
    "n_rows": ("memory", "memories"),
    "n_findings": ("finding", "findings"),
}


@click.group("fleet", cls=Group)
@example("memframe fleet audit fleet-2026-11 --json")
def fleet_group() -> None:
    """Audit or export the memories of every user who approved, into one folder.

    A repeated command processes only users who are missing. It ends with 1 if a user failed; a revoked approval is
    no failure.
    """


fleet_options = combine(
    click.argument("path", type=LocalPath()),
    click.option(
        "--workers", metavar="N", default=8, type=click.IntRange(min=1), help="Threads on this machine."
    ),
    click.option("--dask", "address", metavar="ADDRESS", help="Scheduler of a Dask cluster to use instead."),
    as_json,
)


@fleet_group.command("audit")
@fleet_options
@click.option(
    "--archives/--no-archives",
    default=True,
    help="Also keep the audited memories, sealed with each user's key.",
)
@fail_on_option
@example("memframe fleet audit fleet-2026-11 --fail-on high")
def fleet_audit(path: Path, archives: bool, fail_on: Severity | None, **cluster: Any) -> None:
    """Audit the memories of every user separately, and write the findings to PATH."""
    with _connect(path, **cluster) as (client, how):
        folder = audit_fleet(client, path, archives=archives, **how)
    severities = folder.severities()
    _print_result(folder, n_findings=severities.total())
    if fail_on and any(severities[severity] for severity in at_least(fail_on)):
        sys.exit(FOUND)


@fleet_group.command("export")
@fleet_options
@click.option(
    "--plaintext", is_flag=True, help="Do not seal the archives: anyone who can read PATH can read them."
)
@example("memframe fleet export fleet-2026-11")
def fleet_export(path: Path, plaintext: bool, **cluster: Any) -> None:
    """Export the memories of every user to PATH, one archive per user, sealed with the user's key."""
    with _connect(path, **cluster) as (client, how):
        folder = export_fleet(client, path, sealed=not plaintext, **how)
    _print_result(folder)


@fleet_group.command("forget")
@click.argument("path", type=LocalPath(exists=True))
@as_json
@example("memframe fleet forget fleet-2026-11")
def fleet_forget(path: Path) -> None:
    """Delete from PATH the data of users who revoked their approval, as `audit` and `export` do when they run again."""
    with connect() as client:
        folder = forget_revoked(client, path)
    show({"path": str(folder.path), "forgotten": folder.forgotten}, _describe_forgotten(folder))


def _describe_forgotten(folder: FleetFolder) -> str:
    if not folder.forgotten:
        return f"{folder.path} contains nothing from users who revoked their approval"
    users = number_of(len(folder.forgotten), "user", "users")
    return f"{users} revoked: findings and memories deleted from {folder.path}"


@contextmanager
def _connect(path: Path, address: str | None, workers: int) -> Iterator[tuple[Client, dict[str, Any]]]:
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


def _print_result(folder: FleetFolder, **counts: int) -> None:
    """Print counts, and errors to standard error; end with 1 if a user failed."""
    outcomes = folder.outcomes
    is_ = {status: outcomes["status"] == status for status in ("done", "failed", "revoked")}
    n_of = {status: int(rows.sum()) for status, rows in is_.items()}
    n_of |= {"n_rows": int(outcomes["n_rows"].sum()), **counts}
    numbers = [number_of(n_of[name], *nouns) for name, nouns in _NOUNS.items() if name in n_of]
    before = f"; done before: {folder.n_before:,}" if folder.n_before else ""
    words = f"{', '.join(numbers)}; in {folder.path}, readable only by you{before}"
    show({"path": str(folder.path), **n_of, "n_before": folder.n_before}, words)
    if not wants_json():
        for row in outcomes[outcomes["error"].notna() & ~is_["revoked"]].head(MAX_ERRORS).itertuples():
            click.echo(printable(f"{row.user_id}: {row.error}"), err=True)
        if n_of["failed"]:
            remark("repeat the command to process the users who are missing")
        if folder.forgotten:
            remark(printable(_describe_forgotten(folder)))
    if n_of["failed"]:
        sys.exit(SOME_FAILED)

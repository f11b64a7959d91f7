"""`memframe fleet`: audit or export the memories of all users who approved."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import pandas as pd

from memframe.audit import SEVERITIES, Comparison
from memframe.audit.findings import Severity
from memframe.audit.policy import read_policy
from memframe.cli.options import FOUND, Group, LocalPath, as_json, combine, example, remark, show, wants_json
from memframe.cli.read import at_least, choose_fail, fail_on_option, rules_option
from memframe.client import Client, connect
from memframe.display import number_of, printable
from memframe.fleet import FleetFolder, audit_fleet, export_fleet
from memframe.fleet.run import dask_client_at, forget_revoked
from memframe.report import words_of

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
    "n_unchanged": ("user unchanged", "users unchanged"),
}


@click.group("fleet", cls=Group)
@example("memframe fleet audit fleet-2026-11 --json")
def fleet_group() -> None:
    """Audit or export the memories of every user who approved, into one folder.

    A repeated audit looks at every user again and audits those whose memories have changed; a repeated export processes
    users who are missing. Both end with 1 if a user failed; a revoked approval is no failure.
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
@click.option("--full", is_flag=True, help="Audit all users again, changed or not.")
@fail_on_option
@click.option(
    "--decisions",
    type=LocalPath(exists=True, dir_okay=False),
    help="Count what `memframe review` settled in this file, for any user, instead of keeping it as a finding.",
)
@rules_option
@example("memframe fleet audit fleet-2026-11 --fail-on high")
def fleet_audit(
    path: Path,
    archives: bool,
    full: bool,
    fail_on: Severity | None,
    decisions: Path | None,
    policy: Path | None,
    **cluster: Any,
) -> None:
    """Audit the memories of every user separately, and write the findings to PATH.

    Of users whose memories have not changed since their audit in PATH, its findings are taken over. --fail-on counts
    the findings of all users whom this run reached.
    """
    rules = read_policy(policy)
    fail = choose_fail(fail_on, rules)
    with _connect(path, **cluster) as (client, how):
        folder = audit_fleet(
            client, path, archives=archives, full=full, decisions=decisions, policy=rules, **how
        )
    outcomes = folder.outcomes
    severities = folder.severities(outcomes["user_id"][outcomes["status"] == "done"])
    _print_result(folder, n_findings=severities.total(), n_unchanged=folder.n_before)
    if decisions is not None:
        remark(f"{folder.settled}.")
    if fail.severity and any(severities[severity] for severity in at_least(fail.severity)):
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


@fleet_group.command("compare")
@click.argument("path", type=LocalPath(exists=True))
@click.option(
    "--since", metavar="TIME", help="Look at users audited since, such as 2026-11-23; else in the last run."
)
@fail_on_option
@as_json
@example("memframe fleet compare fleet-2026-11 --fail-on high")
def fleet_compare(path: Path, since: str | None, fail_on: Severity | None) -> None:
    """Compare the last audit of each user in PATH with the one before: new and gone findings, without texts.

    --fail-on counts new findings alone.
    """
    compared = FleetFolder(path).compare(since)
    by_name = {"new": compared.new, "gone": compared.gone}
    by = ["user_id", "severity", "check"]
    tables = {
        name: found.groupby(by, observed=True).size().reset_index(name="n") for name, found in by_name.items()
    }
    values = {
        "path": str(path),
        "counts": compared.counts,
        **{name: counted.to_dict("records") for name, counted in tables.items()},
        "note": compared.note,
    }
    show(values, _lines_of_comparison(compared, tables))
    if fail_on and compared.new["severity"].isin(at_least(fail_on)).any():
        sys.exit(FOUND)


MAX_USERS = 20
"""Users whose findings are named; --json names all."""


def _lines_of_comparison(compared: Comparison, tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Yield the counts, and new and gone findings by user, most severe first."""
    yield ", ".join(f"{n:,} {name}" for name, n in compared.counts.items())
    for name, counted in tables.items():
        rank = counted["severity"].map({each: -place for place, each in enumerate(SEVERITIES)})
        worst_first = counted.assign(rank=rank).sort_values(
            ["rank", "n"], ascending=[True, False], kind="stable"
        )
        for row in worst_first.head(MAX_USERS).itertuples():
            yield printable(
                f"{name:<5} {row.severity:<7} {words_of(str(row.check)).title:<18} {row.n:>5,}  {row.user_id}"
            )
        if (n_more := len(counted) - MAX_USERS) > 0:
            yield f"and {n_more:,} more, which --json names"
    if compared.note:
        yield compared.note


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
    is_audit = "n_unchanged" in counts
    before = f"; done before: {folder.n_before:,}" if folder.n_before and not is_audit else ""
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

"""`memframe fleet`: audit, export or clean up the memories of all users who approved."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import pandas as pd

from memframe.audit import SEVERITIES, Comparison
from memframe.audit.findings import Check, Severity
from memframe.cli.options import (
    CONFLICTS,
    FILE,
    FOUND,
    SECONDS,
    UNKNOWN,
    Group,
    LocalPath,
    as_json,
    combine,
    example,
    print_result,
    remark,
    wants_json,
)
from memframe.cli.read import (
    at_least,
    checks_option,
    choose_fail,
    fail_on_option,
    force_option,
    judge_options,
    make_judge,
)
from memframe.client import Client, connect
from memframe.display import number_of, printable
from memframe.errors import FrameError
from memframe.files import check_replaceable, write_own_file
from memframe.fleet import (
    FleetFolder,
    FleetPlans,
    FleetRun,
    apply_fleet,
    audit_fleet,
    export_fleet,
    plan_fleet,
)
from memframe.fleet.per_user import read_policies
from memframe.fleet.run import dask_client_at, forget_revoked
from memframe.report.words import check_words_of
from memframe.secret import Secret

SOME_FAILED = 1
"""Exit code if a user failed."""

MAX_ERRORS = 10
"""Most errors that are printed; ``outcomes.parquet`` has all."""

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
    """Audit, export or clean up the memories of every user who approved, in one folder.

    A repeated audit checks every user, and audits those whose memories have changed. A repeated export adds the users
    who are missing. Commands exit with 1 if a user failed; a revoked approval is not a failure.
    """


fleet_options = combine(
    click.argument("path", type=LocalPath()),
    click.option(
        "--workers",
        metavar="N",
        type=click.IntRange(min=1),
        help="Threads on this machine (default: 8), or processes with --processes (default: one per core).",
    ),
    click.option(
        "--processes",
        "is_apart",
        is_flag=True,
        help="Use processes instead of threads: faster on idle cores, slower on a busy machine.",
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
@checks_option
@click.option(
    "--decisions",
    type=LocalPath(exists=True),
    help="Only count findings that `memframe review` settled in this file, of any user; or in a folder with "
    "memframe.decisions for all users, and USER_ID.decisions to replace it for one.",
)
@click.option(
    "--policy",
    type=LocalPath(exists=True),
    help="Policy file with additional rules and a default for --fail-on ([fail]); or a folder with "
    "memframe.toml for all users, and USER_ID.toml to replace it for one.",
)
@judge_options
@example("memframe fleet audit fleet-2026-11 --fail-on high")
def fleet_audit(
    path: Path,
    archives: bool,
    full: bool,
    fail_on: Severity | None,
    checks: tuple[Check, ...],
    decisions: Path | None,
    policy: Path | None,
    judge_url: str | None,
    model: str | None,
    judge_limit: int,
    judge_key: Secret | None,
    send: bool,
    **cluster: Any,
) -> None:
    """Audit the memories of every user separately, and write the findings to PATH.

    Users whose memories have not changed since their audit in PATH keep its findings. --fail-on counts the findings of
    all users whom this run reached.
    """
    fail = choose_fail(fail_on, read_policies(policy).common)
    judge = make_judge(judge_url, model, judge_key, send=send)
    with _connect(path, **cluster) as (client, how):
        folder = audit_fleet(
            client,
            path,
            archives=archives,
            full=full,
            checks=checks or None,
            decisions=decisions,
            policy=policy,
            judge=judge,
            judge_limit=judge_limit,
            **how,
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
    "--plaintext", is_flag=True, help="Do not encrypt the archives: anyone who can read PATH can read them."
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
    "--since",
    metavar="TIME",
    help="Compare users audited since then, such as 2026-11-23. Default: the last run.",
)
@click.option(
    "--html",
    type=FILE,
    help="Also write an HTML page: what is new, users by severity, checks over time, sources.",
)
@force_option
@fail_on_option
@as_json
@example("memframe fleet compare nightly --fail-on high --html nightly.html")
def fleet_compare(
    path: Path, since: str | None, html: Path | None, force: bool, fail_on: Severity | None
) -> None:
    """Compare the last two audits of each user in PATH: new, gone and settled findings, without texts.

    A finding is settled if a person has rejected it since. --fail-on counts only new findings.
    """
    folder = FleetFolder(path)
    if html is not None:
        check_replaceable(html, "report", error=FrameError, force=force)
    compared = folder.compare(since)
    by_name = {"new": compared.new, "gone": compared.gone, "settled": compared.settled}
    by = ["user_id", "severity", "check"]
    tables = {
        name: found.groupby(by, observed=True).size().reset_index(name="n") for name, found in by_name.items()
    }
    values = {
        "path": str(path),
        "counts": compared.counts,
        **{name: counted.to_dict("records") for name, counted in tables.items()},
        "note": compared.note,
        "nights": json.loads(folder.nights.to_json(orient="records", date_format="iso")),
    }
    if html is not None:
        write_own_file(html, folder.html(since).encode(), "report", error=FrameError, force=force)
    print_result(values, _lines_of_comparison(compared, tables))
    if fail_on and compared.new["severity"].isin(at_least(fail_on)).any():
        sys.exit(FOUND)


MAX_USERS = 20
"""Most users whose findings are printed; --json lists all."""


def _lines_of_comparison(compared: Comparison, tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Yield the counts, and new, gone and settled findings by user, most severe first."""
    yield "Findings: " + ", ".join(f"{n:,} {name}" for name, n in compared.counts.items())
    for name, counted in tables.items():
        rank = counted["severity"].map({each: -place for place, each in enumerate(SEVERITIES)})
        worst_first = counted.assign(rank=rank).sort_values(
            ["rank", "n"], ascending=[True, False], kind="stable"
        )
        for row in worst_first.head(MAX_USERS).itertuples():
            check, user_id = printable(check_words_of(str(row.check)).title), printable(str(row.user_id))
            yield f"{name:<7} {row.severity:<7} {check:<18} {row.n:>5,}  {user_id}"
        if (n_more := len(counted) - MAX_USERS) > 0:
            yield f"and {n_more:,} more; --json lists them"
    if compared.note:
        yield compared.note


_workers_option = click.option(
    "--workers", metavar="N", default=8, type=click.IntRange(min=1), help="Users to process at a time."
)
_allow_option = click.option(
    "--policy",
    type=LocalPath(exists=True),
    required=True,
    help="Policy file (memframe.toml) whose [allow] names what needs no person, or a folder as for "
    "`fleet audit`.",
)


@fleet_group.command("plan")
@click.argument("path", type=LocalPath(exists=True))
@_allow_option
@click.option(
    "--decisions",
    type=LocalPath(exists=True),
    help="Leave out what `memframe review` rejected in this file, of any user; or in a folder as for `fleet audit`.",
)
@_workers_option
@as_json
@example(
    "memframe fleet plan nightly --policy memframe.toml",
    "memframe fleet apply nightly --policy memframe.toml",
)
def fleet_plan(path: Path, policy: Path, decisions: Path | None, workers: int) -> None:
    """Plan, for each user, what the last audit in PATH proposes and the policy allows without a person.

    Saves the plans in PATH, encrypted for you on this machine; nothing else is written. `memframe plan --show` shows
    one.
    """
    with connect() as client:
        plans = plan_fleet(client, path, policy=policy, decisions=decisions, workers=workers)
    counts = plans.counts
    changes = number_of(counts["n_changes"], "change", "changes")
    deletes = number_of(counts["n_deletes"], "delete", "deletes")
    left = number_of(counts["n_left"], "proposal", "proposals")
    words = f"{changes} planned ({deletes}), {left} left out; users: {_list_counts(plans.users)}; in {path}"
    _show_users(path, plans, words)
    if counts["n_changes"] and not wants_json():
        remark(
            f"To apply them: memframe fleet apply {shlex.quote(str(path))} --policy {shlex.quote(str(policy))}"
        )
    if plans.users.get("failed"):
        sys.exit(SOME_FAILED)


@fleet_group.command("apply")
@click.argument("path", type=LocalPath(exists=True))
@_allow_option
@_workers_option
@click.option(
    "--settle",
    "settle_s",
    metavar="SECONDS",
    default=2.0,
    type=SECONDS,
    help="As in `memframe apply`.",
)
@as_json
@example("memframe fleet apply nightly --policy memframe.toml")
def fleet_apply(path: Path, policy: Path, workers: int, settle_s: float) -> None:
    """Apply the plans of `fleet plan` in PATH, each with its own journal, and print the totals.

    The policy stands for your confirmation. If the command is interrupted, run it again: it finds out what was written,
    and writes the rest. Exits with 3 if rows were rejected or in conflict, and with 4 if an outcome is unknown.
    """
    with connect() as client:
        run = apply_fleet(client, path, policy=policy, workers=workers, settle_s=settle_s)
    counts = {name: n for name, n in run.counts.items() if n}
    words = (
        f"{_list_counts(counts) or 'nothing to do'}; users: {_list_counts(run.users) or 'none'}; in {path}"
    )
    _show_users(path, run, words)
    n_open = run.counts["unknown"] + run.counts["planned"]
    if n_open and not wants_json():
        remark("Run the command again to finish what is planned or unknown.")
    if run.counts["unknown"]:
        sys.exit(UNKNOWN)
    if run.users.get("failed"):
        sys.exit(SOME_FAILED)
    if run.users.get("refused"):
        sys.exit(CONFLICTS)


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in counts.items())


def _show_users(path: Path, found: FleetPlans | FleetRun, words: str) -> None:
    """Print counts, and errors to standard error; with --json a row for each user."""
    rows = json.loads(found.outcomes.to_json(orient="records"))
    print_result({"path": str(path), "counts": found.counts, "users": found.users, "outcomes": rows}, words)
    if not wants_json():
        for row in [row for row in rows if row["error"]][:MAX_ERRORS]:
            click.echo(printable(f"{row['user_id']}: {row['error']}"), err=True)


@fleet_group.command("forget")
@click.argument("path", type=LocalPath(exists=True))
@as_json
@example("memframe fleet forget fleet-2026-11")
def fleet_forget(path: Path) -> None:
    """Delete from PATH the data of users who revoked their approval or were erased.

    `audit` and `export` also do this each time they run.
    """
    with connect() as client:
        folder = forget_revoked(client, path)
    print_result({"path": str(folder.path), "forgotten": folder.forgotten}, _describe_forgotten(folder))


def _describe_forgotten(folder: FleetFolder) -> str:
    if not folder.forgotten:
        return f"{folder.path} holds nothing of users who revoked their approval or were erased"
    users = number_of(len(folder.forgotten), "user", "users")
    return f"{users} revoked or erased: findings and memories deleted from {folder.path}"


@contextmanager
def _connect(
    path: Path, address: str | None, workers: int | None, is_apart: bool
) -> Iterator[tuple[Client, dict[str, Any]]]:
    """Yield a client, and the options of the scheduler."""
    if address and (is_apart or workers):
        raise click.UsageError("--workers and --processes apply to this machine: leave them out with --dask.")
    with connect() as client, ExitStack() as cluster:
        how: dict[str, Any] = {"workers": workers, "scheduler": "processes" if is_apart else "threads"}
        if address:
            how = {"scheduler": cluster.enter_context(dask_client_at(address))}
        try:
            yield client, how
        except KeyboardInterrupt:
            n_done = int((FleetFolder(path).outcomes["status"] == "done").sum())
            raise click.ClickException(
                f"stopped; {number_of(n_done, 'user is', 'users are')} done in {path}; run the same "
                "command again for the others"
            ) from None


def _print_result(folder: FleetFolder, **counts: int) -> None:
    """Print counts, and errors to standard error; end with 1 if a user failed."""
    outcomes = folder.outcomes
    n_of = {status: int((outcomes["status"] == status).sum()) for status in ("done", "failed", "revoked")}
    n_of |= {"n_rows": int(outcomes["n_rows"].sum()), **counts}
    numbers = [number_of(n_of[name], *nouns) for name, nouns in _NOUNS.items() if name in n_of]
    is_audit = "n_unchanged" in counts
    before = f"; done before: {folder.n_before:,}" if folder.n_before and not is_audit else ""
    words = f"{', '.join(numbers)}; in {folder.path}, readable only by you{before}"
    print_result({"path": str(folder.path), **n_of, "n_before": folder.n_before}, words)
    if not wants_json():
        with_errors = outcomes[outcomes["error"].notna() & (outcomes["status"] != "revoked")]
        for row in with_errors.head(MAX_ERRORS).itertuples():
            click.echo(printable(f"{row.user_id}: {row.error}"), err=True)
        if n_of["failed"]:
            remark("Run the command again to process the users who are missing.")
        if folder.forgotten:
            remark(printable(_describe_forgotten(folder)))
    if n_of["failed"]:
        sys.exit(SOME_FAILED)

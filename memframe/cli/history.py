"""`memframe history`: the states of the past that an archive keeps."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pandas as pd
from msgspec import to_builtins

from memframe.archive import forget_memories
from memframe.archive.sealing import Key, Reader
from memframe.cli.access import open_request, request_option
from memframe.cli.options import LocalPath, as_json, combine, example, key_file_option, print_result
from memframe.display import number_of, printable
from memframe.history import find_changes, frame_of_changes, trace_memory
from memframe.plan.render import render_diff
from memframe.report.words import name_source
from memframe.secret import Secret
from memframe.snapshots import format_moment, list_snapshots

MAX_SOURCES = 4
"""Most sources that a line names: those with the most memories."""

MAX_PAST_CHANGES = 50
"""Changes that are printed without --full."""


@click.command("history")
@click.argument("path", type=LocalPath(exists=True))
@click.option("--id", "memory_id", metavar="ID", help="Show each change of this memory, with its time.")
@click.option("--since", metavar="TIME", help="Show what has changed since then, such as 2026-11-16.")
@click.option("--until", metavar="TIME", help="Show changes up to this time. Default: now.")
@click.option(
    "--forget",
    "forgotten",
    metavar="ID",
    multiple=True,
    help="Delete this memory from the snapshots; its present state stays. May be repeated.",
)
@click.option("--full", is_flag=True, help=f"Print all changes, not only the first {MAX_PAST_CHANGES}.")
@combine(key_file_option, request_option(required=False), as_json)
@example(
    "memframe history archive",
    "memframe history archive --since 2026-11-16 --until 2026-11-23",
    "memframe history archive --id 5f0c9b1e-93f3-4b6c-8c0a-0a4c6b8d2e11",
)
def history_command(
    path: Path,
    memory_id: str | None,
    since: str | None,
    until: str | None,
    forgotten: tuple[str, ...],
    full: bool,
    key: Secret | None,
    request_id: str | None,
) -> None:
    """List the past states of an archive, or show what changed between them.

    `memframe export --refresh --keep` keeps these states. Times are in UTC; a day, a minute or a second means its end.
    Changes are shown as in a plan, with secrets masked. A sealed archive needs --request or --key-file to show texts.
    """
    if sum((memory_id is not None, since is not None, bool(forgotten))) > 1:
        raise click.UsageError("Give one of --id, --since and --forget.")
    if until is not None and since is None:
        raise click.UsageError("--until needs --since: give both.")
    if forgotten:
        _forget(path, forgotten, request_id)
    elif since is None and memory_id is None:
        snapshots = list_snapshots(path)
        print_result(
            snapshots.to_json(orient="records", date_format="iso", date_unit="us"), _lines_of(path, snapshots)
        )
    else:
        with _open_key(path, key, request_id) as opened:
            if since is not None:
                changes = find_changes(path, since, until, key=opened)
                frame = frame_of_changes(changes)
                words = render_diff(changes, [], color=False, limit=None if full else MAX_PAST_CHANGES)
                print_result(frame.to_dict("records"), words)
            else:
                _show_life(path, str(memory_id), opened)


@contextmanager
def _open_key(path: Path, key: Secret | None, request_id: str | None) -> Iterator[Key | None]:
    """Yield the key or access that opens a sealed archive; a plain one needs none."""
    if key is not None or request_id is None or not Reader(path).is_sealed:
        yield key
        return
    with open_request(request_id) as access:
        yield access


def _forget(path: Path, ids: tuple[str, ...], request_id: str | None) -> None:
    if request_id is not None and Reader(path).is_sealed:
        with open_request(request_id) as access:
            n_rows = forget_memories(path, ids, access=access)
    else:
        n_rows = forget_memories(path, ids)
    print_result(
        {"path": str(path), "n_rows": n_rows}, f"{number_of(n_rows, 'row', 'rows')} deleted from {path}"
    )


def _lines_of(path: Path, snapshots: pd.DataFrame) -> Iterator[str]:
    """Yield a line for each snapshot."""
    if snapshots.empty:
        folder = path if path.is_dir() else "FOLDER"
        yield f"{path} has no past states. To keep them from now on: memframe export {folder} --refresh --keep"
        return
    yield f"{'state of (UTC)':<20} {'memories':>9} {'added':>7} {'changed':>8} {'gone':>6}   sources"
    for one in snapshots.to_dict("records"):
        moment = format_moment(one["taken_at"])
        if isinstance(one["error"], str):
            yield f"{moment:<20} {one['error']}"
            continue
        counts = f"{one['n_rows']:>9,} {one['added']:>7,} {one['changed']:>8,} {one['gone']:>6,}"
        yield f"{moment:<20} {counts}   {printable(_name_sources(one['sources']))}"


def _name_sources(sources: dict[str | None, int]) -> str:
    ranking = sorted(sources.items(), key=lambda item: (-item[1], item[0] or ""))
    named = [f"{name_source(name)} {n:,}" for name, n in ranking[:MAX_SOURCES]]
    more = [f"{len(ranking) - MAX_SOURCES:,} more"] if len(ranking) > MAX_SOURCES else []
    return ", ".join([*named, *more])


def _show_life(path: Path, memory_id: str, key: Key | None) -> None:
    life = [*trace_memory(path, memory_id, key=key)]
    parts: list[str] = []
    rows: list[dict[Hashable, object]] = []
    for taken_at, change in life:
        at = format_moment(taken_at)
        if isinstance(change, str):
            parts.append(f"# {at} The snapshot {change}.")
            rows.append({"taken_at": taken_at.isoformat(), "error": change})
        else:
            diff = render_diff([change], [], color=False).rpartition("\n\n")[0]
            parts.append(f"# {at}\n{diff}")
            rows += [
                {"taken_at": taken_at.isoformat(), **row}
                for row in frame_of_changes([change]).to_dict("records")
            ]
    print_result(to_builtins(rows), "\n\n".join(parts) or f"No state in {path} has a memory {memory_id}.")

"""`memframe export`: all memories of a user into an archive."""

from __future__ import annotations

import json
from pathlib import Path

import click

from memframe.access import Access
from memframe.archive import export_memories, refresh_archive
from memframe.cli.group import LocalPath
from memframe.cli.opening import as_json, on_request, opened
from memframe.showing import number_of


@click.command("export")
@click.argument("path", type=LocalPath())
@click.option("--sealed", is_flag=True, help="Leave what people wrote readable only with the user's key.")
@click.option("--refresh", is_flag=True, help="Bring the archive at PATH up to date, and say what changed.")
@on_request
@as_json
def export_all(path: Path, sealed: bool, refresh: bool, request_id: str, as_json: bool) -> None:
    """Write all memories to PATH: decrypted, so that whoever can read the file can read them, or --sealed.

    The extension says how: .parquet, .jsonl or .csv; without one, a folder for a Parquet dataset. With
    --refresh an archive stays as it is, plain or sealed, and only the files in which something changed are
    written.

    \b
    Example:
        memframe export memories.parquet --request 7c9e6679
    """
    with opened(request_id) as access:
        told = _refreshed(access, path) if refresh else _exported(access, path, sealed)
    click.echo(json.dumps({"path": str(path), **told}) if as_json else _sentence(path, told))


def _exported(access: Access, path: Path, sealed: bool) -> dict[str, int]:
    return {"n_rows": export_memories(access, path, sealed=sealed)}


def _refreshed(access: Access, path: Path) -> dict[str, int]:
    changes = refresh_archive(access, path)
    return {name: len(getattr(changes, name)) for name in changes.__struct_fields__}


def _sentence(path: Path, told: dict[str, int]) -> str:
    nouns = {"n_rows": ("memory", "memories")}
    counts = ", ".join(number_of(count, *nouns.get(name, (name, name))) for name, count in told.items())
    return f"{counts} in {path}, readable by you alone"

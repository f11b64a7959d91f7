"""`memframe export`: all memories of a user into an archive."""

from __future__ import annotations

import json
from pathlib import Path

import click

from memframe.archive import export_memories
from memframe.cli.opening import as_json, on_request, opened


@click.command("export")
@click.argument("path", type=click.Path(path_type=Path))
@on_request
@as_json
def export_all(path: Path, request_id: str, as_json: bool) -> None:
    """Write all memories to PATH, decrypted: whoever can read the file can read them.

    The extension says how: .parquet, .jsonl or .csv; without one, a folder for a Parquet dataset.

    \b
    Example:
        memframe export memories.parquet --request 7c9e6679
    """
    with opened(request_id) as access:
        n_rows = export_memories(access, path)
    told = {"path": str(path), "n_rows": n_rows}
    click.echo(json.dumps(told) if as_json else f"{n_rows:,} memories in {path}, readable by you alone")

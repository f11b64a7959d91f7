"""`memframe show`, `list` and `search`: look at memories, whose texts are masked unless they are asked for."""

from __future__ import annotations

from typing import Any

import click
import pandas as pd

from memframe.access import Access
from memframe.audit.result import plain_records
from memframe.audit.text import mask_text
from memframe.cli.access import access_required
from memframe.cli.options import as_json, combine, example, print_result, remark, wants_json
from memframe.client.responses import full_id, is_uuid
from memframe.display import escape_invisible, number_of, printable
from memframe.fields import MEMORY_FIELDS, TEXT_FIELDS
from memframe.load import load_memories, load_memory

_DETAILS = (
    field.name for field in MEMORY_FIELDS if field.is_editable and field.name not in {*TEXT_FIELDS, "tags"}
)
_OPEN = ("id", "created_at", "updated_at", *_DETAILS, "content_error")

looking = combine(
    click.option(
        "--with-text",
        is_flag=True,
        help="Show title, summary, content and tags instead of their lengths.",
    ),
    access_required,
    as_json,
)
limit_option = click.option(
    "--limit", type=click.IntRange(min=1), help="Maximum number of memories. Default: all."
)


@click.command("show")
@click.argument("memory_id", metavar="ID")
@looking
@example("memframe show 5f0c9b1e --request 7c9e6679 --with-text")
def show_command(access: Access, memory_id: str, with_text: bool) -> None:
    """Show one memory, by its id or the beginning of it; secrets are masked."""
    if not is_uuid(memory_id):
        ids = load_memories(access)["id"]
        memory_id = full_id(memory_id, ids, ("memory", "memories"), shown_by="`memframe list`")
    (memory,) = _read_records(load_memory(access, memory_id), with_text=with_text)
    words = {
        name: ", ".join(value) if isinstance(value, list) else str(value) for name, value in memory.items()
    }
    print_result(
        memory, [f"{name:<14} {escape_invisible(words[name])}" for name in memory if memory[name] is not None]
    )


@click.command("list")
@click.option(
    "--tag", "tags", multiple=True, help="Only memories with this tag; if repeated, with any of them."
)
@limit_option
@looking
@example("memframe list --request 7c9e6679 --tag travel --with-text")
def list_command(access: Access, tags: tuple[str, ...], limit: int | None, with_text: bool) -> None:
    """List memories, one per line: id, date, source, and the length of title and content."""
    _print(load_memories(access, tags=tags or None, limit=limit), with_text=with_text)


@click.command("search")
@click.argument("text")
@limit_option
@looking
@example('memframe search "green tea" --request 7c9e6679')
def search_command(access: Access, text: str, limit: int | None, with_text: bool) -> None:
    """List memories in which the service finds TEXT: in title, summary or content, ignoring case."""
    _print(load_memories(access, search=text, limit=limit), with_text=with_text)


def _print(memories: pd.DataFrame, *, with_text: bool) -> None:
    records = _read_records(memories, with_text=with_text)
    print_result(records, map(_format_memory, records))
    if not wants_json():
        more = "" if memories.attrs["memframe"]["complete"] else "; there may be more, beyond --limit"
        remark(f"{number_of(len(records), 'memory', 'memories')}{more}")


def _format_memory(memory: dict[str, Any]) -> str:
    day, text = (memory["created_at"] or "")[:10], memory["title"] or memory["content"] or ""
    return f"{memory['id']}  {day:<10}  {printable(memory['source'] or '', 16):<16}  {printable(text, 72)}"


def _read_records(memories: pd.DataFrame, *, with_text: bool) -> list[dict[str, Any]]:
    """Return memories for people or JSON; without `with_text`, only the beginnings and lengths of texts."""
    times = {name: memories[name].map(lambda at: at.isoformat(), na_action="ignore") for name in _OPEN[1:3]}
    texts = (
        {} if with_text else {name: memories[name].map(mask_text, na_action="ignore") for name in TEXT_FIELDS}
    )
    tags = memories["tags"].map(list if with_text else len)
    shown = memories.assign(**times, **texts, **{"tags" if with_text else "n_tags": tags})
    return plain_records(shown[[*_OPEN, *TEXT_FIELDS, "tags" if with_text else "n_tags"]])

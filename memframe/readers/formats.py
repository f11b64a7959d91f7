"""The table of formats: how each is recognised by its shape, and how it is read into entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from memframe.fields import MEMORY_FIELDS
from memframe.readers.chats import (
    chatgpt_items,
    claude_items,
    is_chatgpt,
    is_claude,
)
from memframe.readers.entries import is_pasted, is_sections, pasted_items, section_items
from memframe.readers.markdown import (
    download_items,
    has_text,
    is_conversation,
    is_download,
    is_markdown,
    is_mem0_markdown,
    is_table,
    markdown_items,
    mem0_markdown_items,
    name_columns,
    table_items,
)
from memframe.readers.profiles import is_profile, profile_items
from memframe.readers.rows import Item, Items, is_filled
from memframe.readers.source import TEXT_KEYS, Damage, Document
from memframe.readers.stores import agent_items, bank_items, claude_mem_items


class Format(NamedTuple):
    """One format: how it is recognised, and which keys of an entry fill which column.

    Attributes
    ----------
    name : str
    shape : str
        Description of the shape, for messages.
    heads, marks : tuple of str
        Keys, separated by blanks, that identify the file (an object) or one of its entries if all are present.
    absent : str
        Keys that no entry has: those of a similar format.
    lists : str
        Keys under which the list of entries may stand.
    fields : dict of str to str
        For each column the keys of an entry, of which the first that is filled counts; ``a.b`` steps into objects.
        Other names than those of columns of memories are extra columns, as are all keys that are not named here.
        Without ``fields``, the keys of entries are names of columns.
    dropped : tuple of (str, object, str)
        Key and value of entries that are left out, and the reason.
    not_memories : dict of str to str
        Lists that are counted but not read, such as relations, with their noun.
    states : str
        Keys under which the file states its number of entries; with + between, the numbers of several kinds.
    note : str
        What the format cannot hold; added to the summary of every read.
    is_written_back : bool
        True if the program that writes these files reads them again, so that changing them is of use.
    fits : callable, optional
        Recognises a document if keys alone are not enough.
    items : callable, optional
        Prepares the entries of all documents.
    """

    name: str
    shape: str
    heads: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    absent: str = ""
    lists: str = ""
    fields: Mapping[str, str] = {}
    dropped: tuple[tuple[str, object, str], ...] = ()
    not_memories: Mapping[str, str] = {}
    states: str = ""
    note: str = ""
    is_written_back: bool = True
    fits: Callable[[Document], bool] = lambda _: False
    items: Callable[[list[Document]], Items] | None = None

    def matches(self, document: Document) -> bool:
        """Return True for a document of this format."""
        if any(top_object(document).keys() >= {*head.split()} for head in self.heads) or self.fits(document):
            return True
        if document.form not in ("json", "lines") or not isinstance(document.value, dict | list):
            return False
        marks, absent = [mark.split() for mark in self.marks], {*self.absent.split()}
        return any(
            isinstance(item, dict)
            and not item.keys() & absent
            and any(all(key in item or get_path(item, key) is not None for key in mark) for mark in marks)
            for _, item in document.items(*self.lists.split())
        )

    def read(self, documents: list[Document]) -> Iterator[tuple[str, Item | Damage]]:
        """Yield every entry with its place, or the reason why it is left out."""
        entries = (entry for document in documents for entry in document.items(*self.lists.split()))
        for place, item in self.items(documents) if self.items else entries:
            if isinstance(item, dict):
                yield place, self._entry(item)
            else:
                yield place, item if isinstance(item, Damage) else Damage("not an object")
        for document in documents:
            for key, what in {**self.not_memories, **_other_lists(document, self)}.items():
                for _ in range(_count_entries(document.value, key.split("."))):
                    yield f"{key} of {document.name}", Damage(what, is_entry=False)

    def _entry(self, item: Item) -> Item | Damage:
        for key, value, reason in self.dropped:
            if get_path(item, key) == value:
                return Damage(reason)
        if not self.fields:
            return item
        chosen = {name: first_path(item, keys) for name, keys in {**_LATER, **self.fields}.items()}
        found = {name: path and get_path(item, path) for name, path in chosen.items()}
        return name_columns(without_paths(item, filter(None, chosen.values())), found)

    def read_count(self, document: Document) -> object:
        """Return the number of entries that a document states; None if it states none, else an invalid value."""
        path = first_path(top_object(document), self.states.replace("+", " "))
        if path is None:
            return None
        kinds = next(kinds for each in self.states.split() if path in (kinds := each.split("+")))
        numbers = [get_path(top_object(document), kind) for kind in kinds]
        given = [number for number in numbers if number is not None]
        return sum(given) if all(isinstance(number, int) for number in given) else given


def top_object(document: Document) -> Item:
    """Return the object that a JSON file consists of; an empty one for anything else."""
    return document.value if document.form == "json" and isinstance(document.value, dict) else {}


def get_path(item: Any, path: str) -> Any:
    """Return the value at a path of keys, None if the path ends early.

    >>> get_path({"a": {"b": 1}}, "a.b"), get_path({"a": 1}, "a.b")
    (1, None)
    """
    for key in path.split("."):
        item = item.get(key) if isinstance(item, dict) else None
    return item


def first_path(item: Item, keys: str) -> str | None:
    """Return the first path whose value is not empty: an empty name must not hide a filled one.

    >>> first_path({"memory": " ", "data": "Likes tea"}, "memory text data")
    'data'
    """
    return next((key for key in keys.split() if is_filled(get_path(item, key))), None)


def without_paths(item: Item, paths: Iterable[str]) -> Item:
    """Return an object without the values at some paths.

    >>> without_paths({"a": {"b": 1, "c": 2}, "d": 3}, ["a.b", "d"])
    {'a': {'c': 2}}
    """
    rest = dict(item)
    for path in paths:
        key, _, inner = path.partition(".")
        if inner and isinstance(rest.get(key), dict):
            rest[key] = without_paths(rest[key], [inner])
        elif not inner:
            rest.pop(key, None)
    return rest


def _other_lists(document: Document, form: Format) -> dict[str, str]:
    """Return the lists of texts that a format does not know, with their nouns."""
    value, lists = top_object(document), {*form.lists.split()}
    return {
        key: f"entry of {key}"
        for key, entries in (value.items() if lists & value.keys() else ())  # else the object is an entry
        if key not in {*lists, *form.not_memories}
        and isinstance(entries, list)
        and any(has_text(entry, TEXT_KEYS) for entry in entries)
    }


def _count_entries(value: Any, keys: list[str]) -> int:
    """Count the entries of a list, or of a list in each of a list of objects."""
    found = value.get(keys[0]) if isinstance(value, dict) else None
    if not isinstance(found, list):
        return 0
    return sum(_count_entries(each, keys[1:]) for each in found) if keys[1:] else len(found)


def _openmemory_items(documents: list[Document]) -> Items:
    """Add the names of apps and categories; the JSON Lines in an archive are read only if it lacks the object."""
    for document in [each for each in documents if "memories" in top_object(each)] or documents:
        value = top_object(document)
        app_names, category_names = (
            {str(row.get("id")): row.get("name") for row in _objects_in(value.get(key))}
            for key in ("apps", "categories")
        )
        of_memory: dict[str, list[Any]] = {}
        for row in _objects_in(value.get("memory_categories")):
            of_memory.setdefault(str(row.get("memory_id")), []).append(row.get("category_id"))
        for place, item in document.items("memories"):
            if value and isinstance(item, dict):
                given = item.get("category_ids") or of_memory.get(str(item.get("id")), [])
                ids = [str(one) for one in given] if isinstance(given, list) else []
                categories = [category_names.get(one, one) for one in ids]
                yield place, item | {"categories": categories, "app": app_names.get(str(item.get("app_id")))}
            else:
                yield place, item


def _objects_in(value: Any) -> list[Item]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _is_graphiti(document: Document) -> bool:
    """Recognise a dump of a graph whose edges, if any, have facts, because other graphs have nodes and edges, too."""
    value = top_object(document)
    lists = [value[key] for key in ("facts", "edges") if isinstance(value.get(key), list)]
    edges = [edge for entries in lists for edge in entries if isinstance(edge, dict)]
    is_graph = bool(lists and value.keys() & {"entities", "nodes", "episodes"})
    return is_graph and (not edges or any("fact" in edge for edge in edges))


def _observation_items(documents: list[Document]) -> Items:
    """Make an entry of each observation of an entity, with the entity's other fields, and of each other object."""
    for document in documents:
        for place, item in document.items("entities"):
            if not isinstance(item, dict):
                yield place, item
            elif "observations" in item:
                yield from _observations_of(place, item)
            elif "relationType" in item:
                yield place, Damage("relation", is_entry=False)
            else:
                yield place, name_columns(item)


def _observations_of(place: str, item: Item) -> Items:
    entity = {"title": item.get("name"), "entity": item.get("name")}
    kind = first_path(
        item, "entityType entity_type" if item.get("type") == "entity" else "entityType entity_type type"
    )
    tags = {"tags": [item.get(kind)] if kind else []}
    rest = without_paths(item, ["name", "observations", *([kind] if kind else [])])
    if rest.get("type") == "entity":
        del rest["type"]
    found = item["observations"]
    for number, each in enumerate(found if isinstance(found, list) else [found], 1):
        at = f"observation {number} in {place}"
        if isinstance(each, dict):  # its own fields take precedence over those of the entity
            own = {
                name: value for name, value in name_columns(each).items() if name not in ("title", "entity")
            }
            yield at, name_columns({key: rest[key] for key in rest if key not in each}, entity | tags | own)
        else:
            yield at, name_columns(rest, entity | tags | {"content": each})
    if found == []:
        yield place, Damage("entity without observations")


def _pam_items(documents: list[Document]) -> Items:
    """Remove the time, platform and id that `export_memories` wrote only because the format requires them."""
    for place, item in (pair for document in documents for pair in document.items("memories")):
        own = get_path(item, "metadata.memframe")
        if isinstance(own, dict):
            times = item.get("temporal") if isinstance(item.get("temporal"), dict) else {}
            undated = {"temporal": times | {"created_at": None}} if own.get("is_undated") else {}
            named = {
                "id": own.get("origin_id") or item.get("id"),
                "provenance": {"platform": own.get("source")},
            }
            yield place, item | undated | named
        else:
            yield place, item


def _same_names(names: str) -> dict[str, str]:
    return {name: name for name in names.split()}


_LATER = {
    field.name: f"{field.name} metadata.memframe.{field.name}"
    for field in MEMORY_FIELDS
    if field.is_editable and field.since > 1
}
"""Fields that the formats below do not name: they are read under their own names."""

_USUAL = _same_names("tags created_at updated_at metadata") | {"origin_id": "id"}
"""Columns that most formats keep under the same key."""

FORMATS = {
    each.name: each
    for each in [
        Format(
            "mem0",
            "objects with `memory`, or `data` and `hash`, as get_all(), the API and the migration file have them",
            heads=("count next previous results", "kind record_count records"),
            marks=(
                *(f"memory {key}" for key in ("hash", "user_id", "agent_id", "run_id", "categories")),
                "data hash",
                "payload.data payload.hash",
            ),
            absent="isLatest isForgotten spaceId",
            lists="results memories items records",
            fields={
                "content": "memory text data content payload.data",
                "tags": "categories payload.categories",
                "source": "app_id agent_id role payload.agent_id payload.role",
                "created_at": "created_at payload.created_at",
                "updated_at": "updated_at payload.updated_at",
                "origin_id": "id",
                "origin_user_id": "user_id payload.user_id",
                "run_id": "run_id session_id payload.run_id",
            }
            | _same_names("metadata structured_attributes replaced_by expiration_date"),
            not_memories={"relations": "relation"},
            states="record_count count",
        ),
        Format(
            "mem0-markdown",
            "blocks of `id` and `created_at` between lines of ---",
            fits=is_mem0_markdown,
            items=mem0_markdown_items,
        ),
        Format(
            "openmemory",
            "`memories` and `apps` in one object, or lines with `content`, `state` and `app`",
            heads=("apps memories",),
            marks=("app content state",),
            lists="memories",
            fields=_USUAL | {"content": "content", "tags": "categories", "source": "app", "status": "state"},
            dropped=(("state", "deleted", "deleted"),),
            items=_openmemory_items,
        ),
        Format(
            "letta",
            "an agent file with `agents` and `blocks`, or `core_memory`; or passages with `text` and `archive_id`",
            heads=("agents blocks", "agent_type core_memory", "memory_blocks archival_memory"),
            marks=("text archive_id", "text is_deleted"),
            lists="blocks core_memory memory_blocks passages archival_memory",
            fields=_USUAL
            | {
                "content": "value text",
                "title": "label",
                "summary": "description",
                "limit": "limit",
                "metadata": "metadata metadata_",
            },
            dropped=(("is_deleted", True, "deleted"),),
            not_memories={
                "agents.messages": "message",
                "messages": "message",
                "files": "file",
                "sources": "source",
            },
            is_written_back=False,
            note="Letta's own agent files hold blocks, but no archival passages: those come over REST.",
            fits=lambda document: isinstance(top_object(document).get("archival_memory"), list),
            items=agent_items,
        ),
        Format(
            "claude-mem",
            "`observations`, `sessions`, `summaries` and `prompts`; objects with `memory_session_id` and `narrative`",
            heads=("observations sessions summaries prompts",),
            marks=(
                "memory_session_id narrative",
                "sdk_session_id narrative",
                "memory_session_id learned",
                "sdk_session_id learned",
            ),
            lists="observations summaries",
            fields=_USUAL
            | {
                "content": "narrative text learned completed investigated request next_steps",
                "title": "title",
                "summary": "subtitle",
                "tags": "concepts",
                "created_at": "created_at created_at_epoch",
                "kind": "type",
            },
            not_memories={"sessions": "session", "prompts": "prompt of a person"},
            states="totalObservations+totalSummaries",
            is_written_back=False,
            items=claude_mem_items,
        ),
        Format(
            "hindsight",
            "the archive of a bank: `manifest.json`, documents with `facts` and `chunks`, `observations.json`",
            heads=("id facts chunks", "source_bank_id fact_count"),
            marks=("text proof_count sources",),
            lists="facts",
            fields={
                "content": "text",
                "tags": "tags",
                "created_at": "created_at mentioned_at event_date",
                "kind": "fact_type",
            },
            not_memories={"chunks": "piece of a document"},
            states="fact_count+observation_count",
            is_written_back=False,
            items=bank_items,
        ),
        Format(
            "chatgpt",
            "conversations with a `mapping` of messages, or a list of `content` and `enabled`",
            is_written_back=False,
            fits=is_chatgpt,
            items=chatgpt_items,
        ),
        Format(
            "download",
            "a person's own download from a service of memframe, as JSON or Markdown",
            heads=("user_id email exported_at memories",),
            lists="memories",
            fields=_same_names(
                "content title summary tags importance confidence source created_at updated_at"
            )
            | {"origin_id": "id"},
            not_memories={"tags": "definition of a tag"},
            fits=is_download,
            items=download_items,
        ),
        Format(
            "claude",
            "`conversations_memory` or `project_memories`",
            is_written_back=False,
            fits=is_claude,
            items=claude_items,
        ),
        Format("pasted", "lines such as `[2024-05-01] - text`", fits=is_pasted, items=pasted_items),
        Format(
            "langgraph",
            "objects with `namespace`, `key` and `value`",
            marks=("key namespace value",),
            lists="items results",
            fields={
                "content": "value.content.content value.content value.text value.memory value.data value",
                "origin_id": "key",
                "kind": "value.kind",
            }
            | _same_names("created_at updated_at namespace"),
        ),
        Format(
            "graphiti",
            "`facts` or `edges` beside `episodes` and `entities`, or objects with `fact` and `uuid`",
            marks=("fact uuid",),
            lists="facts edges",
            fits=_is_graphiti,
            fields={"content": "fact", "title": "name", "origin_id": "uuid"}
            | _same_names("created_at valid_at invalid_at expired_at group_id attributes"),
            not_memories={"episodes": "episode", "entities": "entity", "nodes": "entity"},
        ),
        Format(
            "mcp-memory",
            "objects with `entityType` and `observations`, and relations",
            marks=("entityType observations", "name observations", "from relationType to"),
            lists="entities",
            not_memories={"relations": "relation"},
            items=_observation_items,
        ),
        Format(
            "mcp-memory-service",
            "`export_metadata` and `memories`, or objects with `content_hash` and `memory_type`",
            heads=("export_metadata memories",),
            marks=("content content_hash memory_type",),
            lists="memories",
            fields=_same_names("content tags metadata")
            | {
                "source": "export_source",
                "created_at": "created_at created_at_iso",
                "updated_at": "updated_at updated_at_iso",
                "origin_id": "content_hash",
                "kind": "memory_type",
            },
            states="export_metadata.total_memories",
        ),
        Format(
            "supermemory",
            "`memoryEntries`, or objects with `memory` and `isLatest`",
            heads=("memoryEntries",),
            marks=tuple(f"memory {key}" for key in ("isLatest", "isForgotten", "spaceId")),
            lists="memoryEntries",
            fields={
                "content": "memory",
                "created_at": "createdAt",
                "updated_at": "updatedAt",
                "origin_id": "id",
                "is_latest": "isLatest",
                "replaces": "parentMemoryId",
                "space_id": "spaceId",
            }
            | _same_names("version metadata"),
            dropped=(("isForgotten", True, "forgotten"),),
            states="pagination.totalItems",
        ),
        Format(
            "pam",
            "an object whose `schema` is portable-ai-memory",
            lists="memories",
            fields=_same_names("content summary status metadata")
            | {
                "title": "metadata.memframe.title",
                "tags": "metadata.memframe.tags tags",
                "importance": "metadata.memframe.importance",
                "confidence": "confidence.current confidence.initial metadata.memframe.confidence",
                "source": "provenance.platform",
                "created_at": "temporal.created_at",
                "updated_at": "temporal.updated_at",
                "origin_id": "id",
                "kind": "custom_type type",
                "replaced_by": "temporal.superseded_by",
                "valid_from": "temporal.valid_from",
                "valid_until": "temporal.valid_until",
            },
            dropped=(("status", "retracted", "retracted"),),
            not_memories={"relations": "relation"},
            states="integrity.total_memories",
            fits=lambda document: top_object(document).get("schema") == "portable-ai-memory",
            items=_pam_items,
        ),
        Format(
            "sections",
            "texts between lines of §, as Hermes writes them",
            fits=is_sections,
            items=section_items,
        ),
        Format(
            "profile",
            "an object with `preferences`, `user_profile` or the like, whose texts describe a person",
            fits=is_profile,
            items=profile_items,
        ),
        Format("markdown", "Markdown with frontmatter, or .md files", fits=is_markdown, items=markdown_items),
        Format("table", "rows or objects with a text under a usual name", fits=is_table, items=table_items),
    ]
}
"""Formats by name; the last two accept what no other format matches."""

GENERIC = ("markdown", "table")

REFUSALS: tuple[tuple[Callable[[Document], bool], str], ...] = (
    (
        lambda document: {"memories", "pagination"} <= top_object(document).keys(),
        "it is Supermemory's list of documents, from which its memories were made: list those, POST /v4/memories/list",
    ),
    (
        lambda document: _has_all(document, "header", "time", "title"),
        "it is Gemini's record of activity, not of memories: ask Gemini for a list of dated lines",
    ),
    (
        lambda document: _has_all(document, "uuid", "chat_messages"),
        "it contains Claude's conversations, but no memories.json: ask Claude for a list of dated lines and pass that",
    ),
    (
        is_conversation,
        (
            "it is a conversation, which holds what was said, not what is remembered. If its messages are memories "
            "all the same, read them with format='table' (--format on the command line)"
        ),
    ),
)
"""Documents that hold no memories, and why."""


def _has_all(document: Document, *keys: str) -> bool:
    entries = document.value if document.form == "json" and isinstance(document.value, list) else []
    return bool(entries) and isinstance(entries[0], dict) and entries[0].keys() >= {*keys}

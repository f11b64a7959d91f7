"""From findings to the planned state of each memory, and to the changes of a plan, each with its reason.

::

    findings ──AuditedMemories.read──> rows    each memory as it was audited, and as the service holds it now
                                         │
                                     make_draft
                                         v
                                       draft   the memories to keep, with their new fields, and those to delete or merge
                                         │
                              CleanupBuilder.changes
                                         v
                                      changes  of the plan, each with its reason
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from memframe.access import Access
from memframe.audit.fields import names_in, rescale_importance
from memframe.audit.findings import ENDING, Proposal
from memframe.audit.merge import Merge, Merging, Relations, join_fields, read_copies
from memframe.audit.planted import without_hidden
from memframe.audit.secrets.repeats import find_memories_showing
from memframe.audit.text import MemoryTexts
from memframe.cleanup.proposals import PLANNED
from memframe.cleanup.redact import Redacted, redact_memories, search_memories
from memframe.display import number_of
from memframe.errors import PlanError
from memframe.fields import MEMORY_FIELDS, TEXT_FIELDS
from memframe.plan.cells import cells_of, normalize_field, read_cell
from memframe.plan.change import FIELDS, Change, Fields, Label, Value, list_some
from memframe.plan.current import CurrentMemory, current_of, read_current
from memframe.plan.deletes import delete_of
from memframe.plan.edited_frame import EditedFrame, label_of
from memframe.plan.plan import LeftOut


class DraftRow(Struct, frozen=True, kw_only=True, dict=True):
    """One memory as it was audited, and as the service holds it now."""

    id: str
    place: int
    """Position in the audited frame."""
    label: Label
    audited: dict[str, Value]
    """Fields of the audited frame."""
    stored: CurrentMemory | None
    """The memory at the service; None if it is gone."""
    is_closed: bool
    """True if its content could not be opened for the audit, or cannot be opened now."""

    @cached_property
    def current(self) -> dict[str, Value]:
        """All fields as the service holds them now."""
        return {name: self.stored.value(name) for name in FIELDS} if self.stored else {}


class AuditedMemories:
    """The memories of one user in an audited frame, or those of a file, each once.

    Raises `PlanError` if the frame holds other users' memories alone, or one memory in two states.
    """

    def __init__(self, access: Access | None, memories: pd.DataFrame) -> None:
        self._access = access
        is_own = EditedFrame(memories, needed=()).find_own(access) if access else [True] * len(memories)
        if access and is_own and not any(is_own):
            users = memories["user_id"].map(str).unique().tolist()
            raise PlanError(
                f"the audit is of memories of user {list_some(users)}, the access is to {access.user_id}: "
                "open that user's access"
            )
        memories = memories[np.array(is_own, bool) & memories["id"].notna()]
        repeated = memories[memories["id"].duplicated(keep=False)]
        names = [name for name in FIELDS if name in memories.columns]
        states = repeated[["id", *names]].astype(str).drop_duplicates()
        repeated_ids = states["id"][states["id"].duplicated()].unique().tolist()
        if repeated_ids:  # it is not known which state a finding is about
            raise PlanError(
                f"the audited frame contains memories in more than one state ({list_some(repeated_ids)}): "
                "keep the newest row of each, and audit again"
            )
        self.memories = memories.drop_duplicates("id")
        """The rows of this user."""
        self._place = {memory_id: place for place, memory_id in enumerate(self.memories["id"])}

    def __len__(self) -> int:
        return len(self.memories)

    def __contains__(self, memory_id: object) -> bool:
        return memory_id in self._place

    def read(self, ids: Collection[str]) -> dict[str, DraftRow]:
        """Read the current state of chosen memories, in the order of the frame; that of a file is the audited one."""
        ids = sorted(ids, key=self._place.__getitem__)
        frame = self.memories.iloc[[self._place[memory_id] for memory_id in ids]]
        stored = {}
        if ids:
            access = self._access
            stored = read_current(access, ids, n_known=len(self)) if access else current_of(frame)
        names = [name for name in FIELDS if name in frame.columns]
        columns = [[read_cell(name, cell).value for cell in cells_of(frame[name])] for name in names]
        has_error = frame.get("content_error", pd.Series(None, index=frame.index, dtype="str")).notna()
        rows = {}
        for number, (memory_id, closed) in enumerate(zip(ids, has_error, strict=True)):
            current = stored.get(memory_id)
            rows[memory_id] = DraftRow(
                id=memory_id,
                place=self._place[memory_id],
                label=label_of(frame.index[number]),
                audited={name: column[number] for name, column in zip(names, columns, strict=True)},
                stored=current,
                is_closed=bool(closed) or (current is not None and current.error is not None),
            )
        return rows


def choose_tags(findings: pd.DataFrame) -> dict[str, dict[str, str | None]]:
    """Return the tags to change of each memory, with their new names; None for a tag that is removed.

    A tag keeps its name if its other spelling is a removed tag.
    """
    # evidence quotes one name for a tag to remove, and two names for a tag with another spelling
    named = list(zip(findings["id"], map(names_in, findings["evidence"]), strict=True))
    removed = {names[0] for _, names in named if len(names) == 1}
    new_name_of = {names[0]: names[1] for _, names in named if len(names) == 2}
    changes: defaultdict[str, dict[str, str | None]] = defaultdict(dict)
    for memory_id, names in named:
        if len(names) == 1:
            changes[memory_id].setdefault(names[0], None)
        elif len(names) == 2 and (new_name := _follow_names(names[0], new_name_of)) not in removed:
            changes[memory_id][names[0]] = new_name
    return dict(changes)


def _follow_names(name: str, new_name_of: Mapping[str, str]) -> str:
    """Return the last name of a chain of new names; for a cycle, its first name in the alphabet."""
    chain = [name]
    while (name := new_name_of.get(name, name)) not in chain:
        chain.append(name)
    return chain[-1] if name == chain[-1] else min(chain[chain.index(name) :])


HOLDING = tuple(
    field.name for field in MEMORY_FIELDS if field.is_editable and field.on_merge != "take highest"
)
"""Fields whose values a memory must not lose; scores are not among them."""


class Draft(Struct, frozen=True, kw_only=True):
    """Planned state of each memory of a cleanup, by id."""

    rows: Mapping[str, DraftRow]
    kept: dict[str, dict[str, Value]]
    """Planned fields of the memories that are kept."""
    deletes: dict[str, str | None]
    """Memories to delete, each with the memory that is kept in its place, if any."""
    merges: tuple[Merge, ...]
    why_left: dict[str, str]
    """Reasons for which memories that repeat another one stay."""
    conflicts: dict[str, tuple[str, ...]]
    """Fields in which memories have changed since the audit; empty for a memory that is gone."""
    hidden: dict[str, frozenset[str]]
    """Texts of each memory that no display shows."""
    redacted: frozenset[str] = frozenset()
    """Texts that are redacted in some memory."""

    def still_show_redacted(self, memories: pd.DataFrame) -> list[str]:
        """Return the ids of the memories that will still show a text which is redacted in others."""
        gone = {*self.deletes, *(copy for merge in self.merges for copy in merge.copies)}
        remaining = memories[~memories["id"].isin(gone)]
        texts = {
            name: pd.Series(
                [
                    self.kept[memory_id][name] if memory_id in self.kept else value
                    for memory_id, value in zip(remaining["id"], remaining[name], strict=True)
                ],
                dtype=object,  # a categorical column has no room for a redacted text
            )
            for name in HOLDING
            if name in remaining.columns
        }
        rows = find_memories_showing(pd.DataFrame(texts), self.redacted)
        return remaining["id"].iloc[rows].tolist()


def make_draft(
    findings: pd.DataFrame,
    rows: Mapping[str, DraftRow],
    memories: MemoryTexts,
    *,
    taken: Iterable[str],
    relations: Relations,
    known: Mapping[str, frozenset[str]],
    accepted: Collection[str] = (),
) -> Draft:
    """Plan the state of each memory that findings are about, by their ``action``.

    Parameters
    ----------
    findings : DataFrame
    rows : mapping
        Audited and current state of the memories, by id.
    memories : MemoryTexts
        All audited memories of the user.
    taken : iterable of str
        Actions to plan.
    relations : Relations
        Relations of memories that forbid merges.
    known : mapping
        Secrets that the audit found, by memory.
    accepted : collection of str
        Copies that a person has accepted, which are merged although values are lost.
    """
    findings = _leave_out_sealed(findings, rows)
    conflicts = _find_conflicts(findings, rows)
    findings = findings[~findings["id"].isin(conflicts.keys())]
    stored = {memory_id: row.current for memory_id, row in rows.items() if row.stored is not None}
    may_change = {
        memory_id: fields
        for memory_id, fields in stored.items()
        if not rows[memory_id].is_closed and memory_id not in conflicts
    }

    searched = search_memories(stored)
    edits = findings[findings["id"].isin(may_change.keys())]
    redacted = redact_memories(
        edits[edits["action"] == "redact"],
        may_change,
        searched=searched,
        apart=relations.apart,
        others=memories.once(_select_marked),
    )
    deletes = _choose_deletes(findings, may_change)
    kept = _edit_memories(edits, may_change, redacted)
    kept = {memory_id: fields for memory_id, fields in kept.items() if memory_id not in deletes}
    # merges are computed from the fields without edits, as in the audit; the edited fields are then joined
    unedited = {memory_id: may_change[memory_id] for memory_id in kept}
    merging = Merging(memories, unedited, taken=frozenset(taken), relations=relations, accepted=accepted)
    merges = tuple(merging.merges(read_copies(findings)))
    for merge in merges:
        kept[merge.keeper] = join_fields(kept[merge.keeper], [kept[copy] for copy in merge.copies])
        for copy in merge.copies:
            del kept[copy]
    return Draft(
        rows=rows,
        kept=kept,
        deletes=deletes,
        merges=merges,
        why_left=merging.why_left,
        conflicts=conflicts,
        hidden=_find_hidden(rows, stored, searched, redacted, known),
        redacted=frozenset().union(*(redaction.secrets for redaction in redacted.values())),
    )


def _select_marked(texts: MemoryTexts) -> dict[str, Fields]:
    """Return the texts of the memories whose content has a mark of an earlier redaction."""
    memories = texts.memories
    is_marked = memories["content"].str.contains("[redacted: ", regex=False).fillna(False).astype(bool)
    marked = memories.loc[is_marked].reindex(columns=["id", *TEXT_FIELDS]).astype(object)
    rows = marked.where(marked.notna(), None).to_dict("records")
    return {row["id"]: {name: row[name] for name in TEXT_FIELDS} for row in rows}


def _leave_out_sealed(findings: pd.DataFrame, rows: Mapping[str, DraftRow]) -> pd.DataFrame:
    """Leave out findings about memories that cannot be opened, except those of the check on sealed memories."""
    closed = [memory_id for memory_id, row in rows.items() if row.is_closed]
    readable_now = [
        memory_id for memory_id in closed if (stored := rows[memory_id].stored) and stored.content is not None
    ]
    is_sealed = findings["check"] == "sealed"
    return findings[(findings["id"].isin(closed) == is_sealed) & ~findings["id"].isin(readable_now)]


def _find_conflicts(findings: pd.DataFrame, rows: Mapping[str, DraftRow]) -> dict[str, tuple[str, ...]]:
    """Find memories that are gone, or that changed in fields that findings are about or that would be lost."""
    needed: defaultdict[str, set[str]] = defaultdict(set)
    columns = (findings[name] for name in ("id", "field", "action", "related_id"))
    for memory_id, field, action, related in zip(*columns, strict=True):
        is_ending = action in ENDING
        needed[memory_id].update(FIELDS if is_ending else [field])
        if is_ending and related in rows:
            needed[related].update(HOLDING)
    changed: dict[str, tuple[str, ...]] = {}
    gone: dict[str, tuple[str, ...]] = {}
    for memory_id, fields in needed.items():
        row = rows[memory_id]
        audited = {name: value for name, value in row.audited.items() if name in fields}
        if row.stored is None:
            gone[memory_id] = ()
        elif names := row.stored.find_differences(audited):
            changed[memory_id] = names
    return changed | gone


def _find_hidden(
    rows: Iterable[str],
    stored: Mapping[str, Fields],
    searched: pd.DataFrame,
    redacted: Mapping[str, Redacted],
    known: Mapping[str, frozenset[str]],
) -> dict[str, frozenset[str]]:
    """Find texts that no display may show, planned or not: secrets, and personal data of high severity."""
    is_secret = (searched["action"] == "redact") | (searched["severity"] == "high")
    found = redact_memories(searched[is_secret], stored, searched=searched)
    nothing = Redacted({}, frozenset())
    return {
        memory_id: found.get(memory_id, nothing).secrets
        | redacted.get(memory_id, nothing).secrets
        | known.get(memory_id, frozenset())
        for memory_id in rows
    }


def _edit_memories(
    findings: pd.DataFrame, memories: Mapping[str, Fields], redacted: Mapping[str, Redacted]
) -> dict[str, dict[str, Value]]:
    """Return the fields of memories after the edits that findings propose; invalid values are left out."""
    edited = {memory_id: dict(fields) for memory_id, fields in memories.items()}
    for action, edit in EDITORS.items():
        for memory_id, fields in edit(EditInput(findings[findings["action"] == action], edited, redacted)):
            edited[memory_id] |= {
                name: value for name, value in fields.items() if normalize_field(name, value).error is None
            }
    return edited


class EditInput(NamedTuple):
    """Input of an editor: the findings of its action, and the memories as they are edited so far."""

    findings: pd.DataFrame
    memories: Mapping[str, Fields]
    redacted: Mapping[str, Redacted]


Editor = Callable[[EditInput], Iterable[tuple[str, Fields]]]
"""Function that yields the ids of memories with their new fields."""


def _redact(given: EditInput) -> Iterator[tuple[str, Fields]]:
    for memory_id, redaction in given.redacted.items():
        yield memory_id, redaction.values


def _strip(given: EditInput) -> Iterator[tuple[str, Fields]]:
    fields = zip(given.findings["id"], given.findings["field"], strict=True)
    for memory_id, field in dict.fromkeys(fields):
        text = given.memories[memory_id][field]
        if isinstance(text, str):
            yield memory_id, {field: without_hidden(text)}


def _retag(given: EditInput) -> Iterator[tuple[str, Fields]]:
    for memory_id, names in choose_tags(given.findings).items():
        spelled = [names.get(str(name), str(name)) for name in given.memories[memory_id]["tags"] or ()]  # type: ignore[union-attr]
        yield memory_id, {"tags": tuple(dict.fromkeys(name for name in spelled if name is not None))}


def _rescale(given: EditInput) -> Iterator[tuple[str, Fields]]:
    for memory_id in dict.fromkeys(given.findings["id"][given.findings["field"] == "importance"]):
        importance = given.memories[memory_id]["importance"]
        if isinstance(importance, float):
            yield memory_id, {"importance": rescale_importance(importance)}


EDITORS: Mapping[Proposal, Editor] = MappingProxyType(
    {"redact": _redact, "strip": _strip, "retag": _retag, "rescale": _rescale}
)
"""Editors in the order in which they edit a memory; the other actions of `PLANNED` are `ENDING`."""


def _choose_deletes(findings: pd.DataFrame, may_stay: Collection[str]) -> dict[str, str | None]:
    """Find memories to delete, each with the one that says the same, if any, which must then stay."""
    own = findings[(findings["action"] == "delete") & (findings["check"] != "exact_duplicate")]
    related = own["related_id"].astype(object).where(own["related_id"].notna(), None)
    keepers: defaultdict[str, list[str | None]] = defaultdict(list)
    for memory_id, other in zip(own["id"], related, strict=True):
        keepers[memory_id].append(other)
    chosen: dict[str, str | None] = {}
    for memory_id, others in keepers.items():
        staying = [other for other in others if other in may_stay and other not in keepers]
        if staying or None in others:
            chosen[memory_id] = staying[0] if staying else None
    return chosen


class CleanupBuilder:
    """Build the changes of a plan from a draft, and from the findings that it was made from."""

    def __init__(self, draft: Draft, findings: pd.DataFrame) -> None:
        self._draft = draft
        self._actions = {
            str(memory_id): {*actions} for memory_id, actions in findings.groupby("id")["action"]
        }
        self._checks = {str(memory_id): {*checks} for memory_id, checks in findings.groupby("id")["check"]}
        is_ending = findings["action"].isin(ENDING)
        self._why_patched = _describe_reasons(findings[~is_ending])
        self._why_deleted = _describe_reasons(findings[is_ending])
        self._merged_into = {copy: merge.keeper for merge in draft.merges for copy in merge.copies}
        self._held_by = self._merged_into | {
            memory_id: self._merged_into.get(other, other)
            for memory_id, other in draft.deletes.items()
            if other is not None
        }
        self._held: defaultdict[str, list[str]] = defaultdict(list)
        for memory_id, keeper in self._held_by.items():
            self._held[keeper].append(memory_id)
        self._group_of = {keeper: n for n, keeper in enumerate(sorted(self._held, key=self._place_of))}
        self._after: dict[str, dict[str, Value]] = {}
        for memory_id, fields in draft.kept.items():
            stored = draft.rows[memory_id].stored
            if stored and (changed := stored.find_differences(fields)):
                self._after[memory_id] = {name: fields[name] for name in changed}

    def changes(self) -> list[Change]:
        """Return the changes, in the order of the audited frame."""
        changes = [self._patch(memory_id) for memory_id in self._after]
        changes += [self._delete(memory_id) for memory_id in (*self._draft.deletes, *self._merged_into)]
        return sorted(changes, key=lambda change: self._place_of(str(change.id)))

    def conflicts(self) -> Iterator[Change]:
        """Yield a conflict for each memory that was changed or deleted since the audit."""
        for memory_id, fields in self._draft.conflicts.items():
            row = self._draft.rows[memory_id]
            event = f"{', '.join(fields)} changed" if fields else "it was deleted"
            yield Change(
                action="conflict",
                row=row.label,
                id=memory_id,
                before={name: row.current[name] for name in fields},
                reason=f"{event} at the service since it was audited",
                hidden=self._hidden_texts(memory_id),
            )

    def notes(self, memories: pd.DataFrame) -> Iterator[str]:
        """Yield a note on memories that still show texts which the plan redacts in others."""
        if showing := self._draft.still_show_redacted(memories):
            n = number_of(len(showing), "memory still shows", "memories still show")
            yield f"{n} what is redacted in others: {list_some(showing)}. Look at the findings of `secret` there."

    def left_out(self, findings: pd.DataFrame) -> Iterator[LeftOut]:
        """Yield the memories that an audit proposes to change and the plan does not, each with the reason.

        `findings` are all of the audit about memories of this user, also those that `actions` leaves out.
        """
        changed = {*self._after, *self._draft.deletes, *self._merged_into}
        proposed = findings[findings["action"].isin(PLANNED) & findings["id"].notna()]
        actions = {
            str(memory_id): action
            for memory_id, action in zip(proposed["id"], proposed["action"], strict=True)
        }
        actions |= {memory_id: min(asked) for memory_id, asked in self._actions.items()}
        for memory_id in sorted(actions.keys() - changed):
            yield LeftOut(memory_id, actions[memory_id], self._why_left(memory_id))

    def _why_left(self, memory_id: str) -> str:
        actions = self._actions.get(memory_id)
        if not actions:
            return "not asked for in actions="
        if memory_id in self._draft.conflicts:
            return "changed or deleted at the service since the audit"
        if self._draft.rows[memory_id].is_closed:
            return "its content cannot be opened"
        if memory_id in self._draft.why_left and actions & ENDING:
            return self._draft.why_left[memory_id]
        if "delete" in actions:
            return "kept, because the memory that it repeats is deleted or may be"
        return "nothing is left to change"

    def _place_of(self, memory_id: str) -> int:
        return self._draft.rows[memory_id].place

    def _patch(self, memory_id: str) -> Change:
        row, after = self._draft.rows[memory_id], self._after[memory_id]
        held = self._held.get(memory_id, [])
        merged = [copy for copy in held if copy in self._merged_into]
        takes_in = [f"takes in {self._name_memories(merged)}"] if merged else []
        why = [*map(self._why_deleted.get, merged), self._why_patched.get(memory_id)]
        return Change(
            action="patch",
            row=row.label,
            id=memory_id,
            before={name: row.current[name] for name in after},
            after=after,
            reason="; ".join([*takes_in, *dict.fromkeys(filter(None, why))]),
            group=self._group_of.get(memory_id),
            hidden=self._hidden_texts(memory_id, *held),
            checks=self._checks_of(memory_id, *merged),
        )

    def _delete(self, memory_id: str) -> Change:
        row, keeper = self._draft.rows[memory_id], self._held_by.get(memory_id)
        whole = delete_of(row.label, row.stored) if row.stored else Change(action="delete", id=memory_id)
        kept = None if keeper is None else f"{self._name_memories([keeper])} keeps what it says"
        why = self._why_deleted.get(memory_id) or "the same text as others that are merged"
        depends_on, keeps = {}, {}
        if keeper is not None:  # the delete depends on the fields that the keeper's patch does not compare
            current, after = self._draft.rows[keeper].current, self._after.get(keeper, {})
            keeps = {keeper: str(after.get("content", current["content"]) or "")}
            depends_on = {keeper: {name: current[name] for name in HOLDING if name not in after}}
        return replace(
            whole,
            reason="; ".join(filter(None, [kept, why])),
            group=None if keeper is None else self._group_of[keeper],
            hidden=self._hidden_texts(memory_id, *filter(None, [keeper])),
            depends_on=depends_on,
            keeps=keeps,
            checks=self._checks_of(memory_id),
        )

    def _name_memories(self, ids: Sequence[str]) -> str:
        rows = (self._draft.rows[memory_id] for memory_id in ids)
        return list_some([Change(action="patch", id=row.id, row=row.label).label for row in rows])

    def _checks_of(self, *ids: str) -> tuple[str, ...]:
        return tuple(sorted(set().union(*(self._checks.get(memory_id, set()) for memory_id in ids))))

    def _hidden_texts(self, *ids: str) -> tuple[str, ...]:
        return tuple(sorted(frozenset().union(*(self._draft.hidden[memory_id] for memory_id in ids))))


def _describe_reasons(findings: pd.DataFrame) -> dict[str, str]:
    """Describe the findings of each memory, with their masked evidence."""
    reasons: defaultdict[str, dict[str, None]] = defaultdict(dict)
    columns = (findings[name] for name in ("id", "check", "kind", "evidence"))
    for memory_id, check, kind, evidence in zip(*columns, strict=True):
        reasons[memory_id][f"{check} ({kind}): {evidence}"] = None
    return {memory_id: list_some(list(parts), "; ") for memory_id, parts in reasons.items()}

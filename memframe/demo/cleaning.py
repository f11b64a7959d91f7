"""The end of the tour: what is wrong with the memories, a plan to clean them up, and the way back."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

import memframe as mf
from memframe.demo.folder import FINDINGS, REPORT, writing_to
from memframe.demo.telling import Telling, cut
from memframe.plan.change import FIELDS, Change, format_counts, mask
from memframe.progress import ProgressOption
from memframe.runtime import Runtime
from memframe.vault import open_vault

MAX_SENTENCES = 3


def audit(memories: pd.DataFrame, tags: pd.DataFrame, folder: Path, telling: Telling) -> mf.Audit:
    """Look for what is wrong, tell the worst, and keep the report."""
    telling.step("What is wrong with them? An audit, which changes nothing")
    telling.code("audit = mf.audit_memories(memories, tags=mf.load_tags(access))")
    audit = mf.audit_memories(memories, tags=tags)
    for sentence in audit.verdict[:MAX_SENTENCES]:
        telling.say(sentence)
    with writing_to(folder):
        audit.to_html(folder / REPORT)
        audit.to_json(folder / FINDINGS)
    telling.pairs(
        [
            ("proposed", f"{', '.join(audit.proposals)} (memories, each counted once)"),
            (REPORT, "the report as one page, secrets masked; it is in the folder"),
            (FINDINGS, "every finding, for scripts and for the next audit to be compared with"),
        ]
    )
    return audit


def clean_up(access: mf.Access, audit: mf.Audit, telling: Telling, progress: ProgressOption) -> None:
    """Plan what the audit proposes, carry it out, and take it back."""
    plan = _plan(access, audit, telling)
    before = mf.load_memories(access, progress=False)
    with TemporaryDirectory(prefix="memframe-") as scratch:
        here = Path(scratch)
        access.client.runtime = Runtime(
            folder=here / "runs", open_vault=partial(open_vault, here, open_keyring=None)
        )
        carry_out = partial(mf.apply_plan, access, progress=progress)
        telling.step("It is carried out, and what it did is on record before it does it")
        telling.code(f"run = mf.apply_plan(access, plan, confirm={plan.counts.get('delete', 0)})")
        run = carry_out(plan, confirm=plan.counts.get("delete"))
        run.raise_for_failures()
        _tell_what_is_left(access, telling)
        telling.step("And it is taken back")
        telling.code("mf.apply_plan(access, mf.plan_undo(access, run))")
        back = mf.plan_undo(access, run)
        carry_out(back, confirm=back.counts.get("delete")).raise_for_failures()
    telling.say(compared(before, mf.load_memories(access, progress=False)))


def compared(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Say how memories differ after an undo from what they were, their ids and dates included."""
    was, now = (frame.set_index("id") for frame in (before, after))
    both = was.index.intersection(now.index)
    n_new = len(now) - len(both)
    n_redated, n_updated = (
        int((was[name][both] != now[name][both]).sum()) for name in ("created_at", "updated_at")
    )
    is_same = _held(before) == _held(after)
    parts = [
        f"{len(after)} memories, {'every text, tag and score as it was' if is_same else 'and NOT all as they were'}",
        *([f"{n_new} with a new id and the date of today"] if n_new else []),
        *([f"{n_redated} with another date of creation"] if n_redated else []),
        *([] if n_new or n_redated else ["all with the ids and dates of creation that they had"]),
    ]
    if n_updated:
        parts.append(
            f"{n_updated} that were changed and changed back have a new updated_at, which no undo takes back"
        )
    return "; ".join(parts) + "."


def _plan(access: mf.Access, audit: mf.Audit, telling: Telling) -> mf.Plan:
    telling.step("A cleanup is a plan first: to look at, to change, to keep")
    telling.code("plan = mf.plan_cleanup(access, audit)")
    plan = mf.plan_cleanup(access, audit)
    for note in plan.notes:
        telling.say(note)
    telling.say(f"{format_counts(plan.counts)}. Three of them:")
    telling.pairs(_examples(plan))
    telling.say(
        "Merging loses nothing: where a name, a number or a source would be lost, both memories stay."
    )
    junk = audit.findings[(audit.findings["check"] == "junk") & (audit.findings["action"] == "review")]
    n_junk = len({*junk["id"]} - {change.id for change in plan.records if change.action == "delete"})
    telling.say(
        f"Deleted are only copies, heartbeats and empty rows. {n_junk} more memories read like junk and stay for "
        "review: wording alone does not tell noise from a fact."
    )
    return plan


def _examples(plan: mf.Plan) -> list[tuple[str, str]]:
    """A secret that goes, memories that become one, and a heartbeat."""
    changes = [mask(change) for change in plan.records]
    redacted = next(change for change in changes if "[redacted" in str(change.after.get("content")))
    merged = next(change for change in changes if change.reason and "near_duplicate" in change.reason)
    beat = next(
        change for change in changes if change.reason and change.reason.startswith("junk (heartbeat)")
    )
    return [
        ("redact", f"“{redacted.after['content']}”"),
        ("merge", _text_of(merged)),
        ("delete", _text_of(beat)),
    ]


def _text_of(change: Change) -> str:
    return f"“{cut(str(change.before['content']), 90)}”: {change.reason}"


def _tell_what_is_left(access: mf.Access, telling: Telling) -> None:
    left = mf.load_memories(access, progress=False)
    again = mf.audit_memories(left, tags=mf.load_tags(access))
    n_more = len(mf.plan_cleanup(access, again))
    n_secrets = int((again.findings["check"] == "secret").sum())
    telling.say(
        f"{len(left)} memories are left. A second audit finds {n_secrets or 'no'} secrets, and "
        f"{n_more or 'nothing'} more to clean up by itself."
    )


def _held(memories: pd.DataFrame) -> list[str]:
    """What memories hold, in whatever order, apart from ids and times."""
    fields = memories[list(FIELDS)].assign(tags=memories.tags.map(sorted))
    return sorted(map(repr, fields.itertuples(index=False, name=None)))

"""An audit in a notebook: the verdict, the figures, and what was not looked for.

Colours are transparent layers over whatever the page has, so that light and dark themes both do.
"""

from __future__ import annotations

from collections.abc import Sequence

from memframe.report.markup import escaped
from memframe.report.verdict import Audited, Count, details, headline, none_found, subject_of
from memframe.report.wording import SEVERITIES, memories, share, words_of
from memframe.showing import NO_FORMULAS

_STYLE = """
.memframe-audit { font-size: 13px; line-height: 1.45; max-width: 60em; }
.memframe-audit .verdict { font-size: 1.25em; font-weight: 600; margin: .1em 0; }
.memframe-audit .quiet { opacity: .65; }
.memframe-audit table { border-collapse: collapse; margin: .8em 0; font-size: inherit; }
.memframe-audit tr { background: none; }
.memframe-audit th, .memframe-audit td { padding: .2em 1.2em .2em 0; text-align: left; border: 0; }
.memframe-audit thead th { font-weight: 500; opacity: .65; border-bottom: 1px solid rgba(128, 128, 128, .6); }
.memframe-audit .n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; padding-right: .8em; }
.memframe-audit td.high { background: rgba(213, 94, 0, .28); }
.memframe-audit td.medium { background: rgba(230, 159, 0, .22); }
.memframe-audit ul { margin: .2em 0 0 1.2em; padding: 0; }
""".replace(".memframe-audit", 3 * ".memframe-audit")  # stronger than the notebook's own rules for tables


def brief_html(audit: Audited) -> str:
    """Return an audit for a notebook, as HTML without scripts."""
    counts, n = audit.counts, len(audit.memories)
    subject = f"Audit of {memories(n)} {subject_of(audit)}".strip()
    sentences = "".join(f"<div>{escaped(sentence)}</div>" for sentence in details(counts, n))
    done = ", ".join(audit.proposals)
    proposed = f"<div class='quiet'>Proposed, each memory counted once: {escaped(done)}</div>" if done else ""
    clean = none_found(counts, audit.checks)
    nothing = f"<div class='quiet'>None found: {escaped(clean)}</div>" if clean else ""
    items = "".join(f"<li>{escaped(sentence)}</li>" for sentence in audit.not_checked)
    unseen = f"<div class='quiet'>Not looked for:<ul>{items}</ul></div>" if items else ""
    return (
        f"<div class='memframe-audit {NO_FORMULAS}'><style>{_STYLE}</style><div class='quiet'>{escaped(subject)}</div>"
        f"<div class='verdict'>{escaped(headline(counts, n))}</div>{sentences}{proposed}"
        f"{_table(counts, n)}{nothing}{unseen}</div>"
    )


def _table(counts: Sequence[Count], n_memories: int) -> str:
    if not counts:
        return ""
    heads = "".join(f"<th class='n'>{name}</th>" for name in (*SEVERITIES, "memories", "of all"))
    rows = "".join(
        f"<tr><td>{escaped(words_of(count.check).title)}</td>{''.join(_cell(count, name) for name in SEVERITIES)}"
        f"<td class='n'>{count.n_memories:,}</td><td class='n'>{share(count.n_memories, n_memories)}</td></tr>"
        for count in counts
    )
    head = f"<thead><tr><th>check</th>{heads}</tr></thead>"
    return f"<div style='overflow-x: auto'><table>{head}<tbody>{rows}</tbody></table></div>"


def _cell(count: Count, severity: str) -> str:
    n = count.by_severity.get(severity, 0)
    return f"<td class='n {severity}'>{n:,}</td>" if n else "<td class='n'></td>"

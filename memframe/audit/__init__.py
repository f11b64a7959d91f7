"""The audit: what is wrong with the memories, with evidence, and what could be done about it.

One file or room a check, from `exact_duplicate` to `stale`: memories to findings. Those that relate memories share one
search for pairs (`likeness`), and all that read sentences what is known of words (`language`); what most texts are
ruled out by is asked of RE2 (`texts`, `sieve`). What no rule can tell is ranked (`candidates`) and asked of a judge
(`judge`, `chat_judge`), which sees masked texts (`judge_masks`) and is asked once (`judge_cache`). `checks` makes them
all, some in a second process (`sharing`), and `withholding` masks in the end what evidence would give away.
"""

from memframe.audit.audited import Audit
from memframe.audit.candidates import find_candidates
from memframe.audit.chat_judge import ChatJudge
from memframe.audit.checks import audit_memories
from memframe.audit.comparison import Comparison
from memframe.audit.findings import CHECKS, SEVERITIES
from memframe.audit.judge import Answer, Question
from memframe.audit.junk import find_junk
from memframe.audit.missing import find_missing
from memframe.audit.personal_data import find_personal_data, presidio_names
from memframe.audit.scores import find_scores
from memframe.audit.sealed import find_sealed
from memframe.audit.secrets import find_secrets
from memframe.audit.tags import find_tags

__all__ = [
    "CHECKS",
    "SEVERITIES",
    "Answer",
    "Audit",
    "ChatJudge",
    "Comparison",
    "Question",
    "audit_memories",
    "find_candidates",
    "find_junk",
    "find_missing",
    "find_personal_data",
    "find_scores",
    "find_sealed",
    "find_secrets",
    "find_tags",
    "presidio_names",
]

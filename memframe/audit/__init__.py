"""Audit memories: what is wrong with them, with evidence, and what could be done about it.

A check is a function from memories to findings; `run` runs them all, and those of callers, and `result` holds what they
found. Rules about texts are tables (`rules`, and the folder of that name) with examples, weights and derived
prefilters. Checks of fields are in `fields`, junk in `junk`; those that relate memories share one search for pairs.
`evidence` masks in the end what would give a secret away, and a `judge` may be asked what rules cannot know.
"""

from memframe.audit.candidates import find_candidates
from memframe.audit.chat_judge import ChatJudge
from memframe.audit.fields import find_missing, find_scores, find_sealed, find_tags
from memframe.audit.findings import CHECKS, SEVERITIES
from memframe.audit.judge import Answer, Question
from memframe.audit.junk import find_junk
from memframe.audit.personal_data import find_personal_data, presidio_names
from memframe.audit.policy import Policy
from memframe.audit.result import Audit, Comparison
from memframe.audit.run import audit_memories
from memframe.audit.secrets import find_secrets

__all__ = [
    "CHECKS",
    "SEVERITIES",
    "Answer",
    "Audit",
    "ChatJudge",
    "Comparison",
    "Policy",
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

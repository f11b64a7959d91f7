"""The rules of the service in the words of JSON Schema, for the OpenAPI document.

What `rules` decides a program can know beforehand. A keyword binds only values of its own type, so that
one beside ``anyOf`` leaves null as it was.
"""

from __future__ import annotations

from typing import Any

from memframe.service import rules

Bounds = dict[str, Any]

ANY_TEXT: Bounds = {"pattern": r"^[^\u0000]*$"}
"""Text that every database can keep."""

OF_FIELD: dict[str, Bounds] = {
    "expires_in": {"minimum": rules.MIN_TOKEN_LIFETIME_S, "maximum": rules.MAX_TOKEN_LIFETIME_S},
    "reason": {**ANY_TEXT, "maxLength": rules.MAX_REASON_CHARS},
    "user_id": ANY_TEXT,
    "content": ANY_TEXT,
    "title": ANY_TEXT,
    "summary": ANY_TEXT,
    "source": ANY_TEXT,
    "importance": {"minimum": 0, "maximum": rules.MAX_IMPORTANCE},
    "confidence": {"minimum": 0, "maximum": rules.MAX_CONFIDENCE},
    "tags": {
        "maxItems": rules.MAX_TAGS,
        "items": {"pattern": r"^[^,\u0000]*[^,\s\u0000][^,\u0000]*$", "maxLength": rules.MAX_NAME_CHARS},
    },
}
"""Of the fields of a body."""

NULLABLE = {"title", "summary", "importance", "confidence", "source", "next_cursor"}
"""Fields that may be null in an answer: what nobody has set, and the cursor after the last page."""

NEVER_SENT = {"type"}
"""Fields of answers that other services may have: problems of ours have no page of their own."""

_TIME: Bounds = {"format": "date-time"}

FORMAT_OF: dict[str, Bounds] = {
    "user_id": {"format": "uuid"},
    **dict.fromkeys(("created_at", "updated_at", "createdAt", "updatedAt", "expires_at"), _TIME),
}
"""Of the fields of an answer."""

OF_PARAMETER: dict[str, Bounds] = {
    "user_id": {**ANY_TEXT, "minLength": 1},
    "limit": {"minimum": 1},
    "importance": {"minimum": 0, "maximum": rules.MAX_IMPORTANCE_FILTER},
    "tags": ANY_TEXT,
    "searchQuery": ANY_TEXT,
    "Idempotency-Key": {"minLength": 1, "maxLength": rules.MAX_IDEMPOTENCY_KEY_CHARS},
}
"""Of the parameters of a call."""

"""Repeats of reads: which refusals are asked again, how often, and after what wait."""

from __future__ import annotations

from collections.abc import Mapping

from urllib3 import HTTPHeaderDict, HTTPResponse
from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

MAX_RETRY_AFTER_S = 300


class ReadRetry(Retry):
    """urllib3's policy, but garbage in Retry-After counts as nothing said instead of ending the read."""

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Whether it is for us: urllib3 would also repeat what asks for it and is not on our list."""
        return status_code in self.status_forcelist and super().is_retry(method, status_code, has_retry_after)

    def waited(self, headers: HTTPHeaderDict) -> ReadRetry:
        """The policy for what is left to try after a refusal, whose wait is over."""
        refusal = HTTPResponse(headers=headers)
        left = self.increment("GET", response=refusal)
        left.sleep(refusal)
        return left

    def parse_retry_after(self, retry_after: str) -> float:
        """Seconds to wait, from 0 to ``retry_after_max``."""
        return retry_after_s({"Retry-After": retry_after}) or 0


def read_retry() -> ReadRetry:
    """The policy for refusals: at most 5 repeats of a GET, from 0.3 s doubling to 20 s, or as Retry-After says."""
    return ReadRetry(
        total=5,
        connect=0,
        read=0,
        other=0,
        allowed_methods={"GET"},
        status_forcelist={429, 502, 503, 504},
        backoff_factor=0.3,
        backoff_max=20,
        backoff_jitter=0.2,
        retry_after_max=MAX_RETRY_AFTER_S,
        redirect=False,
        raise_on_status=False,
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long an answer asks to be left alone, from 0 to `MAX_RETRY_AFTER_S`; None where it says nothing.

    >>> [retry_after_s({"Retry-After": text}) for text in ("7", "86400", "soon")]
    [7.0, 300.0, None]
    """
    text = headers.get("Retry-After")
    try:
        return None if text is None else float(_WAITING.parse_retry_after(text))
    except (InvalidHeader, ValueError, OverflowError):
        return None


_WAITING = Retry(retry_after_max=MAX_RETRY_AFTER_S)

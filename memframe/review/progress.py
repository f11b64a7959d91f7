"""Progress of a review: the share of right proposals of a kind, and a bound of the share of wrong ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

PRECISION: Mapping[tuple[str, str], float] = MappingProxyType(
    {
        ("exact_duplicate", "delete"): 1.0,
        ("exact_duplicate", "merge"): 1.0,
        ("junk", "merge"): 1.0,
        ("near_duplicate", "merge"): 1.0,
        ("secret", "redact"): 0.98,
        ("stale", "review"): 0.95,
        ("junk", "review"): 0.94,
        ("near_duplicate", "review"): 0.89,
        ("version", "review"): 0.85,
        ("personal_data", "review"): 0.77,
        ("secret", "review"): 0.75,
    }
)
"""Share of right proposals by check and action, on public stores that no rule had seen: deletes and merges on 7,017
memories of 55 stores, the others in the first readings of ``docs/explanation/audit.md``."""

UNMEASURED = 0.5
"""Share that is assumed for checks and actions that are not in `PRECISION`."""

ALONE = frozenset(key for key, share in PRECISION.items() if share == 1)
"""Checks and actions of which no proposal was wrong: deletes and merges that a cleanup does by default."""

N_ALONE = 147
"""Number of such proposals in these stores, counting each text once."""

WEIGHT = 10
"""Number of a person's decisions about a kind that count as much as `PRECISION`."""

THRESHOLD = 0.05
"""Upper bound of the wrong share up to which the remaining proposals of a kind are offered at once."""

CONFIDENCE = 0.95
"""Confidence of the upper bounds."""


def share_right(check: str, proposed: str, n_right: int = 0, n_wrong: int = 0) -> float:
    """Return the expected share of right proposals of a check, by `PRECISION` and by a person's decisions.

    >>> [round(share_right("version", "review", n_wrong=n), 2) for n in (0, 10, 30)]
    [0.85, 0.42, 0.21]
    """
    known = PRECISION.get((check, proposed), UNMEASURED)
    return (WEIGHT * known + n_right) / (WEIGHT + n_right + n_wrong)


def bound_wrong_share(n: int, n_wrong: int = 0) -> float:
    """Return the one-sided upper bound, at 95 %, of the share of wrong proposals, given a random sample of `n`.

    It is the exact binomial bound of Clopper and Pearson: with this share, a sample has as few wrong ones with a
    probability of 5 %.

    >>> [round(bound_wrong_share(n), 3) for n in (30, 59, 299)]
    [0.095, 0.05, 0.01]
    >>> round(bound_wrong_share(100, 3), 4)
    0.0757
    """
    if n_wrong >= n:
        return 1.0
    if not n_wrong:
        return float(1 - (1 - CONFIDENCE) ** (1 / n))
    logs = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(n_wrong + 1)]
    low, high = n_wrong / n, 1.0
    for _ in range(60):  # halvings of the interval, which is then smaller than the precision of a float
        share = (low + high) / 2
        terms = (
            math.exp(log + k * math.log(share) + (n - k) * math.log1p(-share)) for k, log in enumerate(logs)
        )
        low, high = (share, high) if math.fsum(terms) > 1 - CONFIDENCE else (low, share)
    return high

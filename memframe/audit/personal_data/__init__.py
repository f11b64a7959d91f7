"""Personal data: how people are reached and numbered, with its place in the text."""

from __future__ import annotations

import pandas as pd

from memframe.audit.personal_data import ibans, networks, numbers
from memframe.audit.spans import Pass, Verdict, span_findings, spans_found

_VERDICTS = {
    "card": Verdict("high", "redact"),
    "ssn": Verdict("high", "redact"),
    "url_credentials": Verdict("high", "redact"),
    "iban": Verdict("medium", "review"),
    "phone": Verdict("low", "review"),
    "email": Verdict("low", "review"),
    "ip": Verdict("low", "review"),
    "mac": Verdict("low", "review"),
    "url": Verdict("info", "none"),
}
_PASSES = (
    Pass(numbers.MARKS, numbers.find_numbers),
    Pass(ibans.MARKS, ibans.find_ibans),
    Pass(networks.MARKS, networks.find_addresses),
)


def find_personal_data(memories: pd.DataFrame) -> pd.DataFrame:
    """Personal
    """
    found = spans_found(memories, _PASSES)
    return span_findings(found, check="personal_data", ids=memories["id"].tolist(), verdicts=_VERDICTS)

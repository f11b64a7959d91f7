"""Print which requirements of OWASP ASVS 5.0.0, levels 1 and 2, tests show to be met: ``python -m tests.asvs``.

The requirements, and the reasons for those that are not met, are in ``asvs.txt``; the tests carry the marker
``asvs`` with the numbers of what they show.
"""

import ast
import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent

STATUSES = ("met", "part", "open", "deployment", "not applicable")
SHOWN_BY_TESTS = {"met", "part"}

_LINE = re.compile(rf"([0-9.]+) ([12]) ([^|]+?)(?: \| ({'|'.join(STATUSES[1:])}): (.+))?")


class Requirement(NamedTuple):
    """One requirement, and why it is not met, where it is not."""

    number: str
    level: str
    subject: str
    status: str
    reason: str


def read_requirements(text):
    """Return the requirements in lines of text; `ValueError` for a line of another form."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if not (match := _LINE.fullmatch(line)) or match[1] in found:
            raise ValueError(f"not a requirement, or there twice: {line}")
        number, level, subject, status, reason = match.groups()
        found[number] = Requirement(number, level, subject, status or "met", reason or "")
    return found


def list_faults(requirements, tests):
    """Return where the requirements and the tests by number disagree, in words."""
    return [
        *(f"{number} is marked, and not in asvs.txt" for number in tests if number not in requirements),
        *(
            f"{number} is {wanted.status}, and {'not marked' if number not in tests else 'marked'}"
            for number, wanted in requirements.items()
            if (wanted.status in SHOWN_BY_TESTS) != (number in tests)
        ),
    ]


def collect_tests():
    """Return the names of the tests that are marked, by number."""
    found = {}
    for path in sorted(HERE.rglob("test_*.py")):
        for test in ast.walk(ast.parse(path.read_text())):
            for mark in getattr(test, "decorator_list", ()):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.asvs":
                    for number in map(ast.literal_eval, mark.args):
                        found.setdefault(number, []).append(f"{path.relative_to(HERE)}::{test.name}")
    return found


def count_statuses(requirements):
    """Return the sentence with the number of requirements of each status."""
    counts = Counter(requirement.status for requirement in requirements.values())
    applicable = len(requirements) - counts["not applicable"] - counts["deployment"]
    return (
        f"Of {applicable} requirements that concern memframe, {counts['met']} are met, {counts['part']} in part, and "
        f"{counts['open']} are open; {counts['deployment']} more are the operator's, and "
        f"{counts['not applicable']} do not apply."
    )


def main():
    """Print the table; 1 where it and the tests disagree."""
    requirements = read_requirements((HERE / "asvs.txt").read_text())
    tests = collect_tests()
    print("# OWASP ASVS 5.0.0, levels 1 and 2\n\n| no. | level | requirement | status |\n|---|---|---|---|")  # noqa: T201 - the table
    for number, level, subject, status, reason in requirements.values():
        shown = [f"`{name}`" for name in tests.get(number, ())]
        told = "; ".join([f"{status}: {reason}" if reason else status, *shown])
        print(f"| {number} | {level} | {subject} | {told} |")  # noqa: T201 - the table
    print(f"\n{count_statuses(requirements)}")  # noqa: T201 - the table
    for fault in (faults := list_faults(requirements, tests)):
        print(fault, file=sys.stderr)  # noqa: T201 - the table
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

"""Print which requirements of OWASP ASVS 5.0.0 and of RFCs tests show to be met: ``python -m tests.requirements``.

The requirements, and the reasons for those that are not met, are in ``asvs.txt`` and ``rfcs.txt``; tests carry the
markers ``asvs`` and ``rfc`` with the numbers of what they show. The documentation shows the same tables.
"""

import ast
import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent

FILES = {"asvs": HERE / "asvs.txt", "rfc": HERE / "rfcs.txt"}
"""The requirements by the marker of the tests that show them."""

STATUSES = ("met", "part", "open", "deployment", "not applicable")
SHOWN_BY_TESTS = {"met", "part"}

_LINE = re.compile(
    rf"((?:\d{{4}} )?\d[0-9.]*[a-z]?) ([12]|MUST|SHOULD) ([^|]+?)(?: \| ({'|'.join(STATUSES[1:])}): (.+))?"
)
_RFC_TITLE = re.compile(r"# (RFC (\d{4}), .+)")


class Requirement(NamedTuple):
    """One requirement, and why it is not met, where it is not."""

    number: str
    level: str
    subject: str
    status: str
    reason: str


def read_requirements(text):
    """Return the requirements in lines of text, by number; `ValueError` for a line of another form."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if not (match := _LINE.fullmatch(line)) or match[1] in found:
            raise ValueError(f"not a requirement, or there twice: {line}")
        number, level, subject, status, reason = match.groups()
        found[number] = Requirement(number, level, subject, status or "met", reason or "")
    return found


def find_tests(marker):
    """Return the names of the tests with a marker, by number."""
    found = {}
    for path in sorted(HERE.rglob("test_*.py")):
        if f"mark.{marker}(" not in (text := path.read_text("utf-8")):
            continue
        for function in ast.walk(ast.parse(text)):
            for mark in getattr(function, "decorator_list", ()):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == f"pytest.mark.{marker}":
                    name = f"{path.relative_to(HERE).as_posix()}::{function.name}"
                    for number in mark.args:
                        found.setdefault(number.value, []).append(name)
    return found


def list_faults(requirements, tests):
    """Return where the requirements and the tests by number disagree, in words."""
    return [
        *(f"{number} is marked, and not listed" for number in tests if number not in requirements),
        *(
            f"{number} is {wanted.status}, and {'not marked' if number not in tests else 'marked'}"
            for number, wanted in requirements.items()
            if (wanted.status in SHOWN_BY_TESTS) != (number in tests)
        ),
    ]


def count_statuses(requirements):
    """Return the sentence with the number of requirements of each status."""
    counts = Counter(requirement.status for requirement in requirements.values())
    applicable = len(requirements) - counts["not applicable"] - counts["deployment"]
    operators = f"{counts['deployment']} more are up to the operator, and " if counts["deployment"] else ""
    return (
        f"Of {applicable} requirements that concern memframe, {counts['met']} are met, {counts['part']} are met in "
        f"part, and {counts['open']} are open; {operators}{counts['not applicable']} do not apply."
    )


def render_table(requirements, tests):
    """Return a Markdown table of requirements with their status and their tests."""
    lines = ["| no. | level | requirement | status |", "|---|---|---|---|"]
    for number, level, subject, status, reason in requirements.values():
        words = [
            f"{status}: {reason}" if reason else status,
            *(f"`{name}`" for name in tests.get(number, ())),
        ]
        lines.append(f"| {number.partition(' ')[2] or number} | {level} | {subject} | {'; '.join(words)} |")
    return "\n".join(lines)


def render_asvs():
    """Return the table of ASVS, with its counts before it."""
    requirements = read_requirements(FILES["asvs"].read_text("utf-8"))
    return f"{count_statuses(requirements)}\n\n{render_table(requirements, find_tests('asvs'))}"


def render_rfcs():
    """Return a table for each RFC under a heading, with the counts before the first."""
    text = FILES["rfc"].read_text("utf-8")
    requirements, tests = read_requirements(text), find_tests("rfc")
    parts = [count_statuses(requirements)]
    for title, rfc in _RFC_TITLE.findall(text):
        own = {number: wanted for number, wanted in requirements.items() if number.startswith(rfc)}
        parts.append(f"### {title}\n\n{render_table(own, tests)}")
    return "\n\n".join(parts)


def main():
    """Print the tables; 1 where they and the tests disagree."""
    print(f"# OWASP ASVS 5.0.0, levels 1 and 2\n\n{render_asvs()}\n\n# RFCs\n\n{render_rfcs()}")  # noqa: T201 - the tables
    faults = [
        f"{path.name}: {fault}"
        for marker, path in FILES.items()
        for fault in list_faults(read_requirements(path.read_text("utf-8")), find_tests(marker))
    ]
    for fault in faults:
        print(fault, file=sys.stderr)  # noqa: T201 - the tables
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

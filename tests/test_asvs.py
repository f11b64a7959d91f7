"""The table of security requirements and the tests that show them agree."""

from collections import Counter

import pytest

from tests.asvs import HERE, count_statuses, list_faults, main, read_requirements


def test_every_requirement_is_shown_by_a_test_or_has_a_reason(capsys):
    assert main() == 0
    shown, faults = capsys.readouterr()
    assert faults == ""
    assert "| 6.2.1 | 1 | passwords have at least 8 characters | met; `service/test_validation.py::" in shown


def test_the_documentation_has_the_counts():
    requirements = read_requirements((HERE / "asvs.txt").read_text())
    assert Counter(requirement.level for requirement in requirements.values()) == {"1": 70, "2": 183}
    page = HERE.parent / "docs" / "explanation" / "security.md"
    assert count_statuses(requirements) in " ".join(page.read_text().split())


def test_a_disagreement_is_named():
    requirements = read_requirements("1.1 1 a\n1.2 1 b | open: why\n1.3 2 c | part: why\n1.4 2 d | open: why")
    assert list_faults(requirements, {"1.1": ["x"], "1.2": ["x"], "9.9": ["x"]}) == [
        "9.9 is marked, and not in asvs.txt",
        "1.2 is open, and marked",
        "1.3 is part, and not marked",
    ]


@pytest.mark.parametrize(
    "line", ["1.1 a", "1.1 3 a", "1.1 1 a | later: why", "1.1 1 a | open:", "1.1 1 a\n1.1 1 b"]
)
def test_a_line_of_another_form_is_refused(line):
    with pytest.raises(ValueError, match="not a requirement"):
        read_requirements(line)

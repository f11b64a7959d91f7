"""The tables of security requirements and the tests that show them agree."""

from collections import Counter

import pytest

from tests.requirements import FILES, list_faults, main, read_requirements


def test_every_requirement_is_shown_by_a_test_or_has_a_reason(capsys):
    code, shown = main(), capsys.readouterr()
    assert (code, shown.err) == (0, "")
    for row in (
        "| 6.2.1 | 1 | passwords have at least 8 characters | met; `pages/test_dashboard.py::",
        "| 4.1.2b | MUST | a code works once; a second use is refused and revokes its tokens | met; `pages/",
    ):
        assert row in shown.out


def test_the_lists_are_whole():
    levels = {
        marker: Counter(requirement.level for requirement in read_requirements(path.read_text()).values())
        for marker, path in FILES.items()
    }
    assert levels["asvs"] == {"1": 70, "2": 183}
    rfcs = {number[:4] for number in read_requirements(FILES["rfc"].read_text())}
    assert rfcs == {"6749", "6750", "7636", "8252", "8725", "9207", "9457", "9700"}


def test_a_disagreement_is_named():
    requirements = read_requirements("1.1 1 a\n1.2 1 b | open: why\n1.3 2 c | part: why\n1.4 2 d | open: why")
    assert list_faults(requirements, {"1.1": ["x"], "1.2": ["x"], "9.9": ["x"]}) == [
        "9.9 is marked, and not listed",
        "1.2 is open, and marked",
        "1.3 is part, and not marked",
    ]


@pytest.mark.parametrize(
    "line",
    ["1.1 a", "6749 1.1 MAY a", "1.1 1 a | later: why", "1.1 1 a\n1.1 1 b"],
)
def test_a_line_of_another_form_is_refused(line):
    with pytest.raises(ValueError, match="not a requirement"):
        read_requirements(line)

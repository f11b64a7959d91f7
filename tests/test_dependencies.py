"""Dependencies are named with their licences; both lock files and the bill of materials hold the same."""

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest

from benchmarks.lock import files_of, licence_of, make_requirements, make_sbom, read_lock

ROOT = Path(__file__).parents[1]
EXTRAS = ("service", "postgres", "dask")


def direct():
    """The packages that users install, by name, with the extra that first asks for each."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {"": project["dependencies"]} | {name: project["optional-dependencies"][name] for name in EXTRAS}
    found = {}
    for extra, lines in groups.items():
        for line in lines:
            found.setdefault(re.match(r"[\w.-]+", line).group(), extra)
    return {name: extra for name, extra in found.items() if name != "memframe"}


def test_every_dependency_is_named_with_the_licence_that_it_states():
    page = (ROOT / "docs/reference/dependencies.md").read_text("utf-8")
    named = {
        name: (extra, text)
        for name, extra, text in re.findall(r"^\| ([\w-]+) \| `?(\w*)`? \| (.+) \|$", page, re.MULTILINE)
    }
    del named["package"]
    assert {name: extra for name, (extra, _) in named.items()} == direct()
    stated = {name: metadata(name).get("License-Expression") for name in named}
    assert {name: named[name][1] for name, text in stated.items() if text} == {
        name: text for name, text in stated.items() if text
    }
    under_lgpl = {name for name in named if "LGPL" in licence_of(name) or "Lesser" in licence_of(name)}
    assert under_lgpl == {name for name, (_, text) in named.items() if "LGPL" in text}
    introduction, _, _ = page.partition("| package")
    assert all(name in introduction for name in under_lgpl)


def test_both_locks_hold_the_same_versions_and_hashes():
    assert (ROOT / "requirements.lock").read_text("utf-8") == make_requirements(read_lock())


def test_the_bill_has_every_locked_package_with_its_files():
    packages = read_lock()
    bill = make_sbom(packages)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    components = bill["components"]
    assert [(each["name"], each["version"]) for each in components] == [
        (each["name"], each["version"]) for each in packages
    ]
    assert len({each["bom-ref"] for each in components}) == len(components)
    assert [file["url"] for each in components for file in each["externalReferences"]] == [
        file["url"] for each in packages for file in files_of(each)
    ]
    assert {name.lower() for name in direct()} <= {each["name"] for each in components}


def test_a_package_that_is_not_installed_has_no_licence():
    with pytest.raises(ModuleNotFoundError):
        metadata("no-such-package")
    assert licence_of("no-such-package") == ""

"""Dependencies are named with their licences, and their bill is that of the lock file."""

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest

from tests.sbom import LOCK, licence_of, make_sbom

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


def test_the_bill_has_every_pin_with_its_hashes():
    lock = LOCK.read_text("utf-8")
    bill = make_sbom(lock)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    components = bill["components"]
    assert [f"{each['name']}=={each['version']}" for each in components] == re.findall(
        r"^([\w.-]+==[^ ]+)", lock, re.MULTILINE
    )
    assert len({each["bom-ref"] for each in components}) == len(components)
    digests = [file["hashes"][0]["content"] for each in components for file in each["externalReferences"]]
    assert digests == re.findall(r"sha256:([0-9a-f]{64})", lock)
    assert {name.lower() for name in direct()} <= {each["name"].lower() for each in components}


def test_a_package_that_is_not_installed_has_no_licence():
    with pytest.raises(ModuleNotFoundError):
        metadata("no-such-package")
    assert licence_of("no-such-package") == ""

"""Print the locked dependencies of ``pylock.toml`` (PEP 751) in another form.

    python benchmarks/lock.py requirements > requirements.lock   for pip
    python benchmarks/lock.py sbom > sbom.json                   a bill of materials, CycloneDX 1.6

To lock newer versions, first run

    uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --no-header --no-annotate --upgrade \\
        --quiet --format pylock.toml --output-file pylock.toml
"""

import json
import sys
import tomllib
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parents[1] / "pylock.toml"

Package = dict[str, Any]


def read_lock() -> list[Package]:
    """Read the packages of the lock file."""
    packages: list[Package] = tomllib.loads(LOCK.read_text("utf-8"))["packages"]
    return packages


def files_of(package: Package) -> list[dict[str, Any]]:
    """Return the files of a package: its sources, and its wheels."""
    return [package[name] for name in ("sdist",) if name in package] + package.get("wheels", [])


def make_requirements(packages: list[Package]) -> str:
    """Return the lines of a requirements file, with the hash of each file that may be installed."""
    lines = []
    for package in packages:
        marker = f" ; {package['marker']}" if "marker" in package else ""
        hashes = sorted(f"    --hash=sha256:{file['hashes']['sha256']}" for file in files_of(package))
        lines.append(" \\\n".join([f"{package['name']}=={package['version']}{marker}", *hashes]))
    return "\n".join(lines) + "\n"


def licence_of(name: str) -> str:
    """Return the licence that an installed package states; empty if it is not installed or states none."""
    try:
        stated: Message = metadata(name)
    except PackageNotFoundError:
        return ""
    classes = (text for text in stated.get_all("Classifier", []) if text.startswith("License :: "))
    named = " AND ".join(text.rpartition(" :: ")[2] for text in classes)
    return stated.get("License-Expression") or named or (stated.get("License") or "").partition("\n")[0]


def make_sbom(packages: list[Package]) -> dict[str, object]:
    """Return the bill of materials: each package with its files, their hashes, and the licence that it states."""
    components = []
    for package in packages:
        purl = f"pkg:pypi/{package['name']}@{package['version']}"
        component = {
            "type": "library",
            "bom-ref": purl,
            "name": package["name"],
            "version": package["version"],
            "purl": purl,
            "externalReferences": [
                {
                    "type": "distribution",
                    "url": file["url"],
                    "hashes": [{"alg": "SHA-256", "content": file["hashes"]["sha256"]}],
                }
                for file in files_of(package)
            ],
        }
        if licence := licence_of(package["name"]):
            component["licenses"] = [{"license": {"name": licence}}]
        components.append(component)
    about = {"type": "application", "name": "memframe", "version": version("memframe")}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": about},
        "components": components,
    }


FORMS = {
    "requirements": make_requirements,
    "sbom": lambda packages: json.dumps(make_sbom(packages), indent=1) + "\n",
}

if __name__ == "__main__":
    if sys.argv[1:] not in [[form] for form in FORMS]:
        sys.exit(f"Give one of {' and '.join(FORMS)}.")
    sys.stdout.write(FORMS[sys.argv[1]](read_lock()))

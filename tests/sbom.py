"""Print a bill of materials (CycloneDX 1.6) of the locked dependencies: ``python -m tests.sbom > sbom.json``."""

import json
import re
import sys
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements.lock"

_PIN = re.compile(r"^([\w.-]+)==([\w.+!-]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def licence_of(name: str) -> str:
    """Return the licence that an installed package states; empty if it is not installed or states none."""
    try:
        stated: Message = metadata(name)
    except PackageNotFoundError:
        return ""
    classes = (text for text in stated.get_all("Classifier", []) if text.startswith("License :: "))
    named = " AND ".join(text.rpartition(" :: ")[2] for text in classes)
    return stated.get("License-Expression") or named or (stated.get("License") or "").partition("\n")[0]


def make_sbom(lock: str) -> dict[str, object]:
    """Return the bill of a lock file, each version with the hashes of its files."""
    pins = [*_PIN.finditer(lock)]
    ends = [*(pin.start() for pin in pins[1:]), len(lock)]
    components = []
    for pin, end in zip(pins, ends, strict=True):
        name, pinned = pin.groups()
        purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{pinned}"
        files = [
            {"type": "distribution", "url": purl, "hashes": [{"alg": "SHA-256", "content": digest}]}
            for digest in _HASH.findall(lock[pin.start() : end])
        ]
        component = {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": pinned,
            "purl": purl,
            "externalReferences": files,
        }
        if licence := licence_of(name):
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


if __name__ == "__main__":
    json.dump(make_sbom(LOCK.read_text("utf-8")), sys.stdout, indent=1)

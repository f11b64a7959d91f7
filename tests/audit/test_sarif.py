"""SARIF of an audit: each finding in a file by file, line and rule, known again later, and no text of a memory."""
# ruff: noqa: E501 - a schema, a line each

import json
import warnings
from pathlib import Path

import jsonschema
import pytest

import memframe as mf
from memframe.audit.sarif import LEVELS
from memframe.errors import FrameError
from memframe.report.words import CHECK_WORDS

KEY = "sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78St90"
NOTE = f"# Rules\n\n- Likes green tea\n- The api key of the build is {KEY}\n- Likes green tea\n"

TEXT = {"type": "object", "required": ["text"], "additionalProperties": False, "properties": {"text": {"type": "string", "minLength": 1}}}  # fmt: skip
LOCATION = {
    "type": "object", "required": ["physicalLocation"], "additionalProperties": False, "properties": {
        "message": TEXT,
        "physicalLocation": {
            "required": ["artifactLocation", "region"], "additionalProperties": False, "properties": {
                "artifactLocation": {"required": ["uri"], "properties": {"uri": {"type": "string", "format": "uri-reference", "not": {"pattern": "^/|:|\\.\\.|\\\\"}}}},
                "region": {"required": ["startLine"], "properties": {"startLine": {"type": "integer", "minimum": 1}}},
            },
        },
    },
}  # fmt: skip
REQUIRED = {
    "type": "object", "required": ["$schema", "version", "runs"], "additionalProperties": False, "properties": {
        "$schema": {"type": "string", "format": "uri"}, "version": {"enum": ["2.1.0"]},
        "runs": {"type": "array", "minItems": 1, "maxItems": 1, "items": {
            "required": ["tool", "results"], "properties": {
                "columnKind": {"enum": ["unicodeCodePoints"]},
                "tool": {"required": ["driver"], "properties": {"driver": {"required": ["name", "version", "rules"], "properties": {
                    "name": {"const": "memframe"},
                    "rules": {"type": "array", "uniqueItems": True, "items": {
                        "required": ["id", "shortDescription", "fullDescription", "help"], "properties": {
                            "id": {"type": "string"}, "shortDescription": TEXT, "fullDescription": TEXT, "help": TEXT}}},
                }}}},
                "results": {"type": "array", "items": {
                    "required": ["ruleId", "level", "message", "locations", "partialFingerprints"], "additionalProperties": False,
                    "properties": {
                        "ruleId": {"type": "string"}, "ruleIndex": {"type": "integer"}, "level": {"enum": ["error", "warning", "note"]},
                        "message": TEXT, "locations": {"type": "array", "minItems": 1, "maxItems": 1, "items": LOCATION},
                        "relatedLocations": {"type": "array", "items": LOCATION},
                        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string", "pattern": "^[0-9a-f]{32}$"}},
                    }}},
            }}},
    },
}  # fmt: skip
"""What the standard and code scanners require, of the fields that are written; all others are refused."""


def results_of(path, **options):
    with warnings.catch_warnings(action="ignore"):
        audit = mf.audit_memories(mf.read_memories(path), **options)
    written = json.loads(audit.sarif())
    jsonschema.Draft202012Validator(REQUIRED, format_checker=jsonschema.FormatChecker()).validate(written)
    run = written["runs"][0]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return run["results"]


def place_of(result):
    location = result["locations"][0]["physicalLocation"]
    return location["artifactLocation"]["uri"], location["region"]["startLine"]


def prints(results):
    return [result["partialFingerprints"]["memframeFinding/v1"] for result in results]


@pytest.fixture
def note(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("MEMORY.md")
    path.write_text(NOTE)
    return path


def test_each_finding_names_its_rule_file_and_line(note):
    results = results_of(note)
    found = {(result["ruleId"], result["level"], place_of(result)) for result in results}
    assert ("secret", "error", ("MEMORY.md", 4)) in found
    assert ("exact_duplicate", "note", ("MEMORY.md", 5)) in found
    copy = next(result for result in results if place_of(result)[1] == 5)
    assert copy["relatedLocations"][0]["physicalLocation"]["region"] == {"startLine": 3}
    secret = next(result for result in results if result["ruleId"] == "secret")
    assert secret["message"]["text"] == "Secrets: token in content. Proposed: redact."


def test_no_text_of_a_memory_is_written(note):
    written = json.dumps(results_of(note))
    assert all(part not in written for part in (KEY, KEY[:8], "tea", "build", "characters"))


def test_every_severity_has_its_level_and_every_rule_its_words(note):
    assert LEVELS.keys() == {"high", "medium", "low", "info"}
    audit = mf.audit_memories(mf.read_memories(note))
    rules = json.loads(audit.sarif())["runs"][0]["tool"]["driver"]["rules"]
    assert {rule["id"]: rule["shortDescription"]["text"] for rule in rules} == {check: words.title for check, words in CHECK_WORDS.items()}  # fmt: skip


def test_a_finding_is_known_again_at_another_line_and_a_second_one_is_another(note):
    before = results_of(note)
    note.write_text(f"# More\n\n- Rows on Sundays\n\n{NOTE}")
    after = results_of(note)
    assert sorted(prints(before)) == sorted(prints(after))
    assert len({*prints(before)}) == len(before)
    assert sorted(map(place_of, before)) != sorted(map(place_of, after))
    note.write_text(NOTE.replace("Ab12", "Xy98"))  # a digest of the key itself could be guessed
    assert prints(before) == prints(results_of(note))


def test_paths_are_relative_and_quoted_and_those_elsewhere_named_alone(note, tmp_path):
    folder = Path("my notes")
    folder.mkdir()
    (folder / "a b.md").write_text(NOTE)
    (folder / "c.md").write_text("Rows")
    assert {place_of(result)[0] for result in results_of(folder)} == {"my%20notes/a%20b.md"}
    assert {place_of(result)[0] for result in results_of(tmp_path / "MEMORY.md")} == {"MEMORY.md"}
    folder.joinpath("deeper").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder / "deeper")
        assert {place_of(result)[0] for result in results_of(Path("../../MEMORY.md"))} == {"MEMORY.md"}


def test_own_checks_are_rules_too(note):
    def about_tea(memories):
        return memories.loc[memories["content"].str.contains("tea"), ["id"]]

    results = results_of(note, checks=[about_tea])
    assert [(result["ruleId"], place_of(result)) for result in results] == [
        ("about_tea", ("MEMORY.md", 3)),
        ("about_tea", ("MEMORY.md", 5)),
    ]


def test_memories_of_no_file_have_no_sarif(tmp_path):
    audit = mf.audit_memories(mf.read_memories("- Likes tea\n- Rows\n").drop(columns=["line", "file"]))
    with pytest.raises(FrameError, match="names files and lines"):
        audit.to_sarif(tmp_path / "a.sarif")

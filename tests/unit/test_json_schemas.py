"""Results against the JSON Schemas that are shipped, by a validator that knows nothing of dpassay."""

import json
import re
import subprocess
import sys
from functools import cache
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
from tests.fixtures.results import FOLDER, RESULTS, VERSION, text_of
from tools.schemas import schemas, stale

import dpassay as dp
from dpassay.errors import DpassayError, InvalidInput, StoreError
from dpassay.records import Record
from dpassay.sampling.store_files import manifest_of
from libraries.cases import RESULTS as LIBRARIES

FILES = sorted(FOLDER.glob("*/*.json"))
text_of = cache(text_of)


@cache
def validator(name):
    text = (resources.files("dpassay") / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


def problems(name, text):
    return [error.message for error in validator(name).iter_errors(json.loads(text))]


def test_the_schemas_that_are_shipped_are_those_of_the_records():
    assert stale() == [], "run make schemas"


@pytest.mark.parametrize("name", [name.removesuffix(".json") for name in schemas()])
def test_a_schema_is_valid_and_needs_no_other_file(name):
    schema = validator(name).schema
    jsonschema.Draft202012Validator.check_schema(schema)
    refers = re.findall(r'"\$ref": "(.*?)"', json.dumps(schema))
    assert {ref.removeprefix("#/$defs/") for ref in refers} == set(schema["$defs"])


@pytest.mark.parametrize("name", RESULTS)
def test_results_validate(name):
    assert problems(name.split()[0], text_of(name)) == []


def test_every_type_of_record_in_the_schemas_occurs_in_a_result():
    listed = {
        name
        for text in schemas().values()
        for name, entry in json.loads(text)["$defs"].items()
        if "const" in entry.get("properties", {}).get("type", {})
    }
    found = re.findall(r'"type": "(\w+)"', "".join(map(text_of, RESULTS)))
    assert listed <= set(found)


@pytest.mark.parametrize("path", sorted(LIBRARIES.glob("*.json")), ids=lambda path: path.stem)
def test_results_of_libraries_validate(path):
    assert problems("library-results", path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.update(violated="yes"),
        lambda v: v.update(p_value=None),
        lambda v: v.update(confidence={"$float": "one"}),
        lambda v: v.update(guarantee="certain"),
        lambda v: v.update(claim={"type": "Shown"}),
        lambda v: v.update(budget=[["a"]]),
        lambda v: v.update(evidence=["a"]),
        lambda v: v.update(schema=99),
        lambda v: v.update(type="Witness"),
        lambda v: v.update(extra=1),
        lambda v: v.pop("about"),
        lambda v: v["witness"].update(n_p=1.5),
        lambda v: v["witness"].update(schema=3),
        lambda v: v["witness"]["pair"].update(first={"$array": [1]}),
        lambda v: v["witness"]["event"].update(words=3),
    ],
)
def test_what_the_reader_refuses_for_its_form_the_schema_refuses(change):
    data = json.loads(text_of("verdict"))
    change(data)
    text = json.dumps(data)
    assert problems("verdict", text)
    with pytest.raises(InvalidInput):
        dp.Verdict.from_json(text)


def test_there_are_files_of_this_version_and_of_no_more_than_it_and_two_before():
    folders = {path.parent.name for path in FILES}
    assert VERSION in folders, "run python -m tests.fixtures.results"
    held = {path.stem.split("_")[0] for path in FILES if path.parent.name == VERSION}
    assert held == {name.split()[0] for name in RESULTS}
    assert len(folders) <= 3


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_files_of_the_last_two_minor_versions_are_read_and_validate(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    name = path.stem.split("_")[0]
    assert problems(name, text) == []
    if name == "store":
        (tmp_path / "store.json").write_text(text, encoding="utf-8")
        assert manifest_of(tmp_path).entries
        return
    found = Record.from_json(text)
    assert type(found).from_json(found.to_json()) == found
    assert str(found)


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("spectrum_relative", "dp.Spectrum"),
        ("hunt", "dp.Hunt"),
        ("monitor-state", "dp.Monitor"),
        ("verdict_boosting", "dp.Verdict"),
        ("verdict_characters", "dp.Verdict"),
        ("plan", "dp.Plan"),
        ("plan", "Record"),
        ("verification", "Record"),
        ("attack-rates", "Record"),
        ("monitor-state", "Record"),
    ],
)
def test_a_file_is_read_by_a_process_that_has_done_nothing_else(name, home):
    code = f"""
import pathlib, sys
import dpassay as dp
from dpassay.records import Record

{home}.from_json(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
"""
    subprocess.run([sys.executable, "-c", code, FOLDER / VERSION / f"{name}.json"], check=True)


def _next_minor():
    major, minor = VERSION.split(".")
    return f"{major}.{int(minor) + 1}.0"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda v: v.update(schema=4), "schema version 4 is newer .* upgrade"),
        (lambda v: v.update(schema="2; import os"), "schema version '2; import os' is newer"),
        (lambda v: v.update(insight=1), "no field 'insight'; .* newer than this .* upgrade"),
        (lambda v: v["claim"].update(type="QuantumDP"), "unknown record type .* upgrade"),
        (lambda v: v.update(dpassay=1), "dpassay must be text"),
    ],
)
def test_a_newer_file_says_that_dpassay_has_to_be_upgraded(change, words):
    data = json.loads(text_of("verdict")) | {"dpassay": _next_minor()}
    change(data)
    with pytest.raises(InvalidInput, match=words):
        dp.Verdict.from_json(json.dumps(data))


def test_a_newer_file_with_nothing_new_in_it_is_read():
    data = json.loads(text_of("verdict")) | {"dpassay": _next_minor()}
    assert dp.Verdict.from_json(json.dumps(data)) == dp.Verdict.from_json(text_of("verdict"))


def test_a_store_of_another_format_names_the_version_that_reads_it(tmp_path):
    data = json.loads(text_of("store")) | {"format": 99, "dpassay": "7.1"}
    (tmp_path / "store.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(StoreError, match="format 99, .* reads format 2: .* 7.1"):
        manifest_of(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('pathlib').Path('made').touch()",
        "$(touch made)",
        "../made",
        "made",
        "builtins:open",
        "O",
        "<U500000000",
        "(100000000,)i8",
    ],
)
def test_no_text_of_a_file_becomes_code_or_a_path(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written = json.loads(text_of("verdict files"))
    for place in (
        lambda v: v["witness"]["pair"].update(first=text),
        lambda v: v["witness"]["pair"].update(first={"$array": ["a"], "dtype": text}),
        lambda v: v["witness"]["pair"].update(first={"$repr": text}),
        lambda v: v["witness"]["pair"].update(first={"type": text}),
        lambda v: v["witness"]["event"].update(words=text),
        lambda v: v["about"]["files"][0].update(file=text, sha256=text),
        lambda v: v["about"].update(method=text, digest=text),
        lambda v: v.update(type=text),
        lambda v: v.update(dpassay=text),
    ):
        data = json.loads(json.dumps(written))
        place(data)
        try:
            found = dp.Verdict.from_json(json.dumps(data))
            str(found), found._repr_html_(), found.to_json()
        except DpassayError:
            continue
    assert list(Path().iterdir()) == []

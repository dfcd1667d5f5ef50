"""JSON Schema files of results, stores and library results, written from the types that are serialised.

    python -m tools.schemas            writes src/dpassay/schemas/*.json (make schemas)
    python -m tools.schemas --check    says which of them are not current

A schema describes the form of a file: fields, their types, which may be missing. A field with a default
value may be missing, so that files from before it was added stay valid. What the form cannot say, such as
counts that are at most n, is checked when dpassay reads the file.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import dpassay
from dpassay._typing import BoolArray, FloatArray, IntArray
from dpassay.records import SCHEMA, Record, choices
from dpassay.sampling.store_files import FORMAT, Entry
from libraries.cases import Audited

FOLDER = Path(dpassay.__file__).parent / "schemas"
#: The records that are written to files; of a base class any of its classes.
ROOTS = (
    "AttackRates",
    "CanaryPlan",
    "Claim",
    "Estimate",
    "Hunt",
    "LowerBound",
    "MonitorState",
    "Plan",
    "Profile",
    "RenyiCurve",
    "Spectrum",
    "TradeoffCurve",
    "TradeoffPoint",
    "Verdict",
    "Verification",
    "Witness",
)
Schema = dict[str, Any]


def _tag(name: str, content: Schema, **more: Schema) -> Schema:
    given = {name: content, **more}
    return {
        "type": "object",
        "properties": given,
        "required": list(given),
        "additionalProperties": False,
    }


_VALUE: Schema = {"$ref": "#/$defs/value"}
_FLOAT_TAG = _tag("$float", {"enum": ["inf", "-inf", "nan"]})
#: What records of any type refer to.
_SHARED: dict[str, Schema] = {
    "float": {
        "description": "A number; JSON has none that is infinite or undefined.",
        "anyOf": [{"type": "number"}, _FLOAT_TAG],
    },
    "value": {
        "description": "Data of a mechanism. What JSON lacks is tagged.",
        "anyOf": [
            {"type": ["null", "boolean", "number", "string"]},
            {"type": "array", "items": _VALUE},
            _FLOAT_TAG,
            _tag("$tuple", {"type": "array", "items": _VALUE}),
            _tag("$array", _VALUE, dtype={"type": "string"}),
            _tag(
                "$dict",
                {
                    "type": "array",
                    "items": {"type": "array", "items": _VALUE, "minItems": 2, "maxItems": 2},
                },
            ),
            _tag("$repr", {"type": "string"}),
            {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
            {
                "type": "object",
                "not": {"required": ["type"]},
                "propertyNames": {"pattern": r"^(?!\$)"},
                "additionalProperties": _VALUE,
            },
        ],
    },
}
_ARRAYS: tuple[tuple[str, Any, Schema], ...] = (
    ("floats", FloatArray, {"$ref": "#/$defs/float"}),
    ("integers", IntArray, {"type": "integer"}),
    ("booleans", BoolArray, {"type": "boolean"}),
)
for _name, _, _item in _ARRAYS:  # an array may have several dimensions
    _SHARED[_name] = {
        "type": "array",
        "items": {"anyOf": [_item, {"$ref": f"#/$defs/{_name}"}]},
    }
_PLAIN: dict[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    str: {"type": "string"},
    type(None): {"type": "null"},
}


class Definitions:
    """The `$defs` of one file, which grow as types are referred to."""

    def __init__(self, tagged: bool) -> None:
        self.tagged = tagged  # whether records.encode writes it, or plain json.dumps
        self.found: dict[str, Schema] = {}

    def _refer(self, name: str, make: Any) -> Schema:
        if name not in self.found:
            self.found[name] = {}  # it may refer to itself
            self.found[name] = make()
        return {"$ref": f"#/$defs/{name}"}

    def _share(self, name: str) -> Schema:
        return self._refer(name, lambda: _SHARED[name])

    def of(self, hint: Any) -> Schema:
        """The schema of a type annotation."""
        for name, array, _ in _ARRAYS:
            if hint == array:
                if name == "floats":
                    self._share("float")
                return self._share(name)
        if hint is Any:
            return self._share("value") if self.tagged else {}
        if hint is float:
            return self._share("float") if self.tagged else {"type": "number"}
        if hint in _PLAIN:
            return _PLAIN[hint]
        several = choices(hint)
        if len(several) > 1:
            return {"anyOf": [self.of(one) for one in several]}
        if get_origin(hint) is tuple:
            return self._tuple(get_args(hint))
        if get_origin(hint) in (Mapping, dict):
            return {"type": "object", "additionalProperties": self.of(get_args(hint)[1])}
        if issubclass(hint, Enum):
            return {"enum": [one.value for one in hint]}
        found = [
            self._refer(one.__name__, lambda one=one: self.fields(one)) for one in _concrete(hint)
        ]
        return found[0] if len(found) == 1 else {"anyOf": found}

    def _tuple(self, inner: tuple[Any, ...]) -> Schema:
        if inner[-1] is Ellipsis:
            return {"type": "array", "items": self.of(inner[0])}
        items = [self.of(one) for one in inner]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}

    def fields(self, cls: Any, outermost: bool = False) -> Schema:
        """The object that a dataclass becomes."""
        record = issubclass(cls, Record)
        properties: dict[str, Schema] = {"type": {"const": cls.__name__}} if record else {}
        if record and outermost:
            properties |= {"schema": {"const": SCHEMA}, "dpassay": {"type": "string"}}
        required = [name for name in properties if name != "dpassay"]
        hints = get_type_hints(cls)
        for field in dataclasses.fields(cls):
            if not field.metadata.get("live"):
                verbatim = field.metadata.get("verbatim")
                properties[field.name] = self.of(Any if verbatim else hints[field.name])
                if field.default is field.default_factory is dataclasses.MISSING:
                    required.append(field.name)
        return {
            "description": cls.__doc__.split("\n")[0],
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }


def _concrete(cls: Any) -> list[Any]:
    """The classes that a field of this type may hold: those with fields, itself and derived ones."""
    if not issubclass(cls, Record):
        return [cls]
    ours: list[Any] = [
        one for one in Record._types.values() if one.__module__.startswith("dpassay.")
    ]
    return [
        one
        for one in sorted(ours, key=lambda one: one.__name__)
        if issubclass(one, cls) and dataclasses.is_dataclass(one) and dataclasses.fields(one)
    ]


def _file(title: str, body: Schema, definitions: Definitions, version: int) -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:dpassay:schema:{version}:{title}",
        "title": title,
        **body,
        "$defs": dict(sorted(definitions.found.items())),
    }


def _of_record(name: str) -> Schema:
    definitions = Definitions(tagged=True)
    several = _concrete(Record._types[name])
    found = [definitions.fields(one, outermost=True) for one in several]
    body = found[0] if len(found) == 1 else {"anyOf": found}
    return _file(_words(name), body, definitions, SCHEMA)


def _of_store() -> Schema:
    """`store.json`, as `Manifest.to_bytes` writes it."""
    definitions = Definitions(tagged=True)
    body = {
        "description": "The manifest of a store of draws.",
        **_tag("format", {"const": FORMAT}),
    }
    body["properties"] |= {
        "dpassay": {"type": "string"},
        "seed": {"type": "integer"},
        "pairs": {
            "type": "object",
            "propertyNames": {"pattern": "^[0-9]+$"},
            "additionalProperties": definitions.of(Entry),
        },
    }
    return _file("store", body | {"required": list(body["properties"])}, definitions, FORMAT)


def _of_library() -> Schema:
    definitions = Definitions(tagged=False)
    return _file("library-results", definitions.fields(Audited), definitions, 1)


def _words(name: str) -> str:
    """LowerBound → lower-bound."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def schemas() -> dict[str, str]:
    """The text of every schema file, by its name."""
    for module in pkgutil.walk_packages(dpassay.__path__, "dpassay."):
        if not module.name.endswith(("__main__", "pytest_plugin")):
            importlib.import_module(module.name)  # so that all records are known
    made = {one["title"]: one for one in (*map(_of_record, ROOTS), _of_store(), _of_library())}
    return {
        f"{title}.json": json.dumps(one, ensure_ascii=False) + "\n" for title, one in made.items()
    }


def stale(folder: Path = FOLDER) -> list[str]:
    """Files that are missing, left over or not what `schemas` makes."""
    made = schemas()
    held = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    return sorted(name for name in made.keys() | held.keys() if made.get(name) != held.get(name))


def main() -> int:
    """Write the files, or with --check only compare them."""
    out_of_date = stale()
    if "--check" in sys.argv[1:]:
        if out_of_date:
            print(f"run python -m tools.schemas: {', '.join(out_of_date)} not current")
        return int(bool(out_of_date))
    made = schemas()
    FOLDER.mkdir(exist_ok=True)
    for name in out_of_date:
        if name in made:
            (FOLDER / name).write_text(made[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())

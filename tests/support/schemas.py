"""Files held against their JSON schemas, which docs/formats.md explains."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from nodeprint.campaign import gathered, job_status, run_files
from nodeprint.data.format import record_format
from nodeprint.judge import verdict
from nodeprint.machine.topology import serialized
from nodeprint.settings.measurements import measurements
from nodeprint.structure import printed_structure
from tests.support.real_parts import ROOT

#: Files of a campaign that are one JSON object, and their schema.
_OBJECTS = {"status.json": "status", "topology.json": "topology", "fleet.json": "fleet", "verdict.json": "verdict"}
#: Pairs, cells and the like are alike: so many of a file are looked at, spread over all of it.
_MOST = 200


#: Schemas that are files, by name.
SCHEMAS = {
    path.stem: path
    for path in (*(ROOT / "nodeprint/schemas").glob("*.json"), ROOT / "nodeprint_addons/iodie/iodie.json")
}


@cache
def schema(name: str) -> dict[str, Any]:
    """The schema of this name: most are made from types, those of the configuration and of an add-on are files."""
    made = {
        "topology": serialized.schema,
        "structure": printed_structure.schema,
        "status": job_status.schema,
        "fleet": gathered.schema,
        "verdict": verdict.schema,
        "record": record_format.schema,
    }
    if name in made:
        return made[name]()
    content = json.loads(SCHEMAS[name].read_text())
    assert isinstance(content, dict)
    return content


@cache
def _validator(name: str, part: str = "") -> jsonschema.Draft202012Validator:
    """Of a whole schema, or of one of its definitions: that alone is faster, and complains of what it means."""
    whole = schema(name)
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": whole["$defs"]} if part else whole)


def valid(content: object, name: str, where: object = "", part: str = "") -> None:
    """Assert that `content` is as the schema `name` (or its definition `part`) says."""
    error = jsonschema.exceptions.best_match(_validator(name, part).iter_errors(content))
    assert error is None, f"{where or name} {part}: {error.json_path}: {error.message}"


def valid_records(path: Path, text: bytes = b"") -> None:
    """Assert that a record file, plain or compressed, is as its schema says; a last line that was cut is left out.

    `text` is what it holds where that is in an archive.
    """
    text = text or (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    lines = [json.loads(line) for line in text.split(b"\n")[:-1]]
    many = [record for record in lines if record["record"] in ("pair", "cell")]
    few = [record for record in lines if record["record"] not in ("pair", "cell")]
    assert few and few[0]["record"] == "header", path
    quantities = {(of.kernel, of.operation): (of.quantity, of.unit) for of in measurements().values()}
    head = few[0]
    asked, made = (head["kernel"], head["operation"]), (head["quantity"], head["unit"])
    assert "imported" in head or quantities.get(asked, made) == made, f"{path}: measurements.yaml has another quantity"
    for record in few[:_MOST] + few[-1:] + many[:: len(many) // _MOST + 1]:
        assert record["record"] in schema("record")["$defs"], f"{path}: record {record['record']}"
        valid(record, "record", path, record["record"])


def valid_campaign(folder: Path) -> list[str]:
    """Assert that every record file and every JSON file of a campaign is as its schema says; their names, each once."""
    seen = []
    for path in sorted(folder.rglob("*")):
        if path.name.endswith((".jsonl", ".jsonl.gz")):
            valid_records(path)
            seen.append("records")
        elif path.name.endswith(run_files.ARCHIVE) and path.name.startswith("run"):
            problems: list[str] = []
            for member, text in run_files.members(path, problems):
                valid_records(member, text)
            assert not problems
            seen.append("records")
        elif path.name in _OBJECTS:
            valid(json.loads(path.read_text()), _OBJECTS[path.name], path)
            seen.append(path.name)
    return sorted(set(seen))

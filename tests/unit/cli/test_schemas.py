"""The schemas themselves, and what is made without a machine: simulated, imported and printed by the command line."""

import gzip
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import pytest
import xarray as xr
import zstandard

from nodeprint import simulate, structure
from nodeprint.data.format import record_format, records
from nodeprint.data.store.packing import pack
from nodeprint.judge.campaign import judge
from nodeprint.judge.outcome import FleetOutcome, Outcome
from nodeprint.machine.topology import model, presets, serialized
from nodeprint.machine.topology.model import Cpu, Machine
from nodeprint.report import verdict_files
from tests.support.made_records import TRAILER, cell, cell_header, header, lines, pair
from tests.support.real_parts import ROOT
from tests.support.schemas import SCHEMAS, schema, valid, valid_campaign, valid_records


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_schema_is_one_and_is_documented(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    documents = (ROOT / "docs/formats.md").read_text() + (ROOT / "config/README.md").read_text()
    assert f"`{SCHEMAS[name].relative_to(ROOT)}`" in documents.replace("`schemas/", "`nodeprint/schemas/")


def test_the_words_are_those_of_the_code() -> None:
    pairs = schema("record")["$defs"]["pair"]["properties"]
    assert set(records.PAIR_KEYS) | set(records.PAIR_VALUES) | set(records.PAIR_CLOCKS) <= set(pairs)
    assert set(pairs["flags"]["items"]["enum"]) == set(record_format.FLAGS)


def test_the_schema_of_a_verdict_is_made_from_its_types() -> None:
    made = schema("verdict")
    jsonschema.Draft202012Validator.check_schema(made)
    assert set(made["$defs"]["Outcome"]["enum"]) == {outcome.value for outcome in Outcome}
    assert set(made["$defs"]["FleetOutcome"]["enum"]) == {outcome.value for outcome in FleetOutcome}
    assert made["$defs"]["Agreement"]["properties"]["within"]["type"] == ["number", "null"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"outcome": "GOOD"}, "'GOOD' is not one of"),
        ({"odd": 1}, "Additional properties"),
        ({"findings": [{"id": "core-slow"}]}, "is a required property"),
    ],
)
def test_a_verdict_that_is_not_as_its_types_is_refused(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    plan = simulate.Plan(presets.preset("graviton3-64"), nodes=3, runs=2, passes=1, defects=("node001: global +9%",))
    verdict = json.loads(verdict_files.as_json(judge(simulate.write(plan, tmp_path / "c")).verdict))
    valid(verdict, "verdict")
    verdict["nodes"]["node001"] |= change
    with pytest.raises(AssertionError, match=expected):
        valid(verdict, "verdict")


def test_every_key_of_a_header_is_explained() -> None:
    rules = schema("record")["$defs"]["header"]["properties"]
    assert [name for name, rule in rules.items() if not rule.get("description")] == []


@pytest.mark.parametrize(
    ("record", "change"),
    [
        ("header", {"home": None, "imported": None}),
        ("header", {"start_time": "yesterday"}),
        ("header", {"cpus": [0, 0]}),
        ("header", {"applicable": False}),
        ("pair", {"latency_ns": 0}),
        ("pair", {"latency": 3}),
        ("pair", {"flags": ["odd"]}),
        ("trailer", {"cells": 3}),
    ],
)
def test_a_wrong_record_is_refused(record: str, change: dict[str, Any], tmp_path: Path) -> None:
    good = {"header": header(), "pair": pair(0, 1), "trailer": TRAILER}
    path = tmp_path / "r.jsonl"
    path.write_text(lines(*good.values()))
    valid_records(path)
    path.write_text(lines(*(good | {record: good[record] | change}).values()))
    with pytest.raises(AssertionError, match=f"r.jsonl {record}"):
        valid_records(path)


def test_cells_and_what_is_not_applicable(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    head = {key: value for key, value in cell_header().items() if key != "home"}
    tail = {key: value for key, value in TRAILER.items() if key != "pairs"} | {"cells": 1}
    path.write_text(lines(head, cell(0, "l1"), tail))
    valid_records(path)
    path.write_text(lines(head | {"applicable": False, "reason": "one NUMA node"}, tail))
    valid_records(path)


def test_a_simulated_campaign(tmp_path: Path) -> None:
    plan = simulate.Plan(presets.preset("graviton3-64"), nodes=3, runs=1, passes=1, defects=("node002: missing",))
    folder = simulate.write(plan, tmp_path / "c")
    pack(folder)
    verdict_files.write(judge(folder).verdict, folder)
    assert valid_campaign(folder) == ["fleet.json", "records", "status.json", "verdict.json"]
    arrays = {*folder.glob("store/fleet/*")} - {folder / "store/fleet/index.json"}  # which says it for them
    unmarked = [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file()
        and path not in arrays
        and not path.name.endswith(".seal.json")
        and "simulated" not in _content(path).lower()
    ]
    assert unmarked == []


def _content(path: Path) -> str:
    """What a file says; of an archive its members' names, of a netCDF file its attributes."""
    if path.suffix == ".nc":
        return str([group.attrs for group in xr.open_datatree(path).subtree])
    if path.name.endswith(".tar.gz"):
        return str(tarfile.open(path).getnames())
    data = path.read_bytes()
    if path.suffix == ".zst":
        _, value = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(data))
        if path.name == "jobs.msgpack.zst":
            return "simulated" if all(job["status"]["simulated"] for job in value) else ""
        return str(value)
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def test_a_campaign_made_up_by_the_tests(campaign: Callable[..., Path]) -> None:
    folder = campaign("n1", "n2")
    pack(folder)
    assert valid_campaign(folder) == ["fleet.json", "records", "status.json"]


@pytest.mark.parametrize("name", ["rome-2x64", "graviton3-64"])
def test_labels(name: str) -> None:
    valid(json.loads(json.dumps(serialized.as_json(presets.preset(name)))), "topology")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (lambda cpu: {key: part for key, part in cpu.items() if key != "ccx"}, "'ccx' is a required property"),
        (lambda cpu: cpu | {"ccx": "3"}, "ccx"),
        (lambda cpu: cpu | {"quadrants": 3}, "'quadrants' was unexpected"),
    ],
)
def test_labels_with_other_keys_or_values_are_refused(
    changed: Callable[[dict[str, Any]], dict[str, Any]], expected: str
) -> None:
    labels = json.loads(json.dumps(serialized.as_json(presets.preset("rome-2x64"))))
    labels["cpus"][5] = changed(labels["cpus"][5])
    with pytest.raises(AssertionError, match=expected):
        valid(labels, "topology")


def test_labels_that_are_not_known() -> None:
    valid(serialized.as_json(model.Topology(Machine(), (Cpu(0), Cpu(3)))), "topology")


def test_structure() -> None:
    rng = np.random.default_rng(1)
    group = np.arange(16) // 4
    matrix = np.where(group[:, None] == group, 30.0, 120.0) + rng.normal(0, 1, (16, 16))
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, np.nan)
    labels = model.Topology(Machine(), tuple(Cpu(i, socket=0, ccx=i // 4, core=i) for i in range(16)))
    found = structure.find(matrix, tuple(range(16)), labels, None).as_json()
    assert found["levels"]
    assert found["agreement"]
    valid({"simulated": False, **found, "quadrants": []}, "structure")

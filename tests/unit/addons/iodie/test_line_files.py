"""`nodeprint iodie` of record files and of tables with a row for each pair and address."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.presets import from_part
from nodeprint.simulate import Modes, Plan, write
from nodeprint.structure.matrix_arithmetic import rand_index
from nodeprint_addons.iodie import analysis, campaign_dies, line_files
from tests.support import routed_dies as apart
from tests.support.schemas import valid

SMALL = from_part("EPYC 74F3", 1, smt=False)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = Plan(SMALL, nodes=1, runs=2, passes=2, detail=True, modes=Modes(6.0, die="mesh"))
    return write(plan, tmp_path_factory.mktemp("files") / "a")


def table(path: Path, *, lack: int = 0) -> apart.Made:
    """A table of a small part as core-to-core-latency writes one; the last `lack` rows are missing."""
    made = apart.make(SMALL, "2x2", 8.0, np.random.default_rng(3), runs=1, passes=1, lines=48)
    (one,) = made.passes
    rows = [
        f"{a},{b},0x{0x7F0000 + 64 * line:x},{ns:.2f}"
        for a, b, of_pair in zip(one.a.values.tolist(), one.b.values.tolist(), one.ns.values.tolist(), strict=True)
        for line, ns in enumerate(of_pair)
    ]
    inside = [(a, b) for cpus in SMALL.groups("ccx").values() for a in cpus for b in cpus if a < b]
    rows = [f"{a},{b},0x{0x7F0000 + 64 * line:x},{25 + line % 3}" for a, b in inside for line in range(48)] + rows
    path.write_text("\n".join(["cpu1,cpu2,addr,latency_ns", *rows[: len(rows) - lack]]) + "\n")
    return made


def test_record_files_have_the_labels_of_their_node(campaign: Path) -> None:
    files = sorted((campaign / "nodes/node000").rglob("coherence-cas.jsonl.gz"))
    assert len(files) == 2
    found, passes, _ = line_files.read(files, None)
    assert len(passes) == 4 and len(found.topology.groups("ccd")) == 8 and found.missing == ()
    by_folder = json.loads(CliRunner().invoke(app, ["iodie", str(campaign / "nodes/node000"), "--json"]).stdout)
    facts = json.loads(CliRunner().invoke(app, ["iodie", *map(str, files), "--json"]).stdout)
    valid(facts, "iodie")
    assert facts["nodes"][0]["dies"][0]["map"] == by_folder["nodes"][0]["dies"][0]["map"]
    assert facts["simulated"] is True


def test_a_record_file_alone_has_the_groups_that_its_hops_show(campaign: Path, tmp_path: Path) -> None:
    alone = shutil.copy(next((campaign / "nodes/node000").rglob("coherence-cas.jsonl.gz")), tmp_path)
    found, _, _ = line_files.read([Path(alone)], None)
    expected = {frozenset(cpus) for cpus in SMALL.groups("ccx").values()}
    assert {frozenset(cpus) for cpus in found.topology.groups("ccx").values()} == expected
    assert any(
        sentence.startswith("no labels: the core-to-core latencies give the groups") for sentence in found.missing
    )


def test_a_table_of_addresses_gives_the_planted_die(tmp_path: Path) -> None:
    made = table(tmp_path / "per_address.csv")
    found = analysis.analyze(*line_files.read([tmp_path / "per_address.csv"], None))
    (die,) = found.dies
    assert die.level == "ccx" and die.sites is not None and die.sites.count == 4
    assert rand_index(die.sites.of_end, made.site_of_ccd) == 1
    text = CliRunner().invoke(app, ["iodie", str(tmp_path / "per_address.csv")]).stdout
    assert "per_address.csv: a table of addresses" in text and "48 lines, in 4 clusters" in text
    piped = CliRunner().invoke(app, ["iodie", "-"], input=(tmp_path / "per_address.csv").read_bytes())
    assert "48 lines, in 4 clusters" in piped.stdout


def test_rows_that_lack_are_named(tmp_path: Path) -> None:
    table(tmp_path / "t.csv", lack=10)
    found, _, _ = line_files.read([tmp_path / "t.csv"], None)
    assert found.missing[0] == "t.csv: 1 of 276 pairs lack addresses and are left out"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b,latency_ns\n0,1,30.5\n0,2,31.5\n", "no column of addresses"),
        ("a,b,addr,latency_ns\n0,1,1,30.5\n0,2,2,31.5\n1,2,3,31\n", "no address was measured by most pairs"),
        ("a,b,addr,latency_ns\n0,1,1,x7\n", "line 2, column 4"),
        (",,\n25.5,,\n20,91,\n", "no records, and no table with a row for each pair and address"),
        ("a,b,addr,latency_ns\n", "no records, and no table with a row"),
        ('{"record":"header"}\n', "no pair has the value of each line"),
    ],
)
def test_other_files_are_refused_with_what_to_do(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(NodeprintError) as error:
        campaign_dies.of_files([tmp_path / "t.csv"], None)
    assert says in str(error.value) and ";" in str(error.value)


def test_two_cpus_make_no_map_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,addr,latency_ns\n0,1,0,30.5\n0,1,64,31.5\n")
    result = CliRunner().invoke(app, ["iodie", str(tmp_path / "t.csv")], catch_exceptions=False)
    assert result.exit_code == 0 and "NO MAP: no socket has core-to-core latencies between 3" in result.stdout


def test_several_sockets_need_labels(tmp_path: Path) -> None:
    two = from_part("EPYC 74F3", 2, smt=False)
    folder = write(Plan(two, nodes=1, runs=1, passes=1, detail=True), tmp_path / "a")
    record = shutil.copy(next(folder.rglob("coherence-cas.jsonl.gz")), tmp_path)
    with pytest.raises(NodeprintError, match="nothing says in which of them lines are at home; name the machine's"):
        line_files.read([Path(record)], None)
    assert len(campaign_dies.of_files([Path(record)], two).dies) == 2


#: A table of six CPUs in two L3s, which its first lines are nearer to by turns.
TINY = "a,b,addr,latency_ns\n" + "".join(
    f"{a},{b},{line},{25 if a // 3 == b // 3 else 110 + 8 * (line % 2)}\n"
    for a in range(6)
    for b in range(a + 1, 6)
    for line in range(10)
)
_PIECES = st.sampled_from(
    ["", "0", "1", "-1", "nan", "1e308", "3000000000", "9" * 30, ",", "\n", "x", '"', "7.5", "\0", "é"]
)


@settings(max_examples=200)
@given(st.data())
def test_mutated_records_end_in_one_sentence(
    campaign: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Some records of each kind, with other text in some places."""
    file = next((campaign / "nodes/node000").rglob("coherence-cas.jsonl.gz"))
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    by_kind: dict[str, list[str]] = {}
    for line in lines:
        by_kind.setdefault(json.loads(line)["record"], []).append(line)
    content = "\n".join(line for of_kind in by_kind.values() for line in of_kind[:3]) + "\n"
    _mapped_or_refused(_mutated(content, data), tmp_path_factory.getbasetemp() / "mutated.jsonl")


@settings(max_examples=400)
@given(st.data())
def test_mutated_tables_end_in_one_sentence(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    _mapped_or_refused(_mutated(TINY, data), tmp_path_factory.getbasetemp() / "mutated.csv")


def _mutated(content: str, data: st.DataObject) -> str:
    """A text with other pieces in up to four places."""
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(content)))
        content = content[:place] + data.draw(_PIECES) + content[place + data.draw(st.integers(0, 9)) :]
    return content


def _mapped_or_refused(content: str, path: Path) -> None:
    """A file of this content gives a map that can be written, or one sentence."""
    path.write_text(content)
    try:
        found = campaign_dies.of_files([path], None)
        campaign_dies.as_text([found], {})
        json.dumps(campaign_dies.as_json([found], {}), allow_nan=False)
    except NodeprintError as error:
        assert "\n" not in str(error)

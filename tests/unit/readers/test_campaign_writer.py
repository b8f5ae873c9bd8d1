"""Imported files as a campaign."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nodeprint.campaign import node_sheet
from nodeprint.cli import app
from nodeprint.data.format import records
from nodeprint.data.job import jobs
from nodeprint.data.store import store
from nodeprint.errors import NodeprintError
from nodeprint.judge.campaign import judge
from nodeprint.judge.outcome import Outcome
from nodeprint.machine.topology import presets, serialized
from nodeprint.readers import campaign_writer, matrix_file
from tests.support.latencies import epyc
from tests.support.schemas import valid_campaign
from tests.support.tool_output import C2CLAT, FILES, LINKTEST, LOWER, MLC, labeled, read_text

Write = Callable[..., Path]


def test_campaign_of_imported_files(tmp_path: Path, write: Write) -> None:
    made = epyc(1, 2, 2, 4, 1)
    text = "\n".join(",".join("" if np.isnan(v) else f"{v:.3f}" for v in row) for row in made.matrix)
    items = [
        matrix_file.read_output(write(text, "EPYC a&b.csv")),
        matrix_file.read_output(write(C2CLAT, "EPYC a_b.txt")),
        matrix_file.read_output(write(MLC, "EPYC a+b.txt")),
    ]
    campaign = tmp_path / "out" / "campaign"
    names = campaign_writer.write_campaign(items, campaign, [labeled(16), None, None])
    assert names == ["EPYC-a-b", "EPYC-a_b", "EPYC-a-b-2"]
    sheet = node_sheet.read_sheet(campaign / "nodes.tsv")
    assert [(node.node, node.cpus, node.measure) for node in sheet] == list(
        zip(names, (16, 4, 0), [False] * 3, strict=True)
    )

    folders = [campaign / "nodes" / name for name in names]
    cores, other, mlc = (jobs.read(folder / "job1") for folder in folders)
    assert cores.problems == other.problems == mlc.problems == ()
    assert [job.hosts for job in (cores, other, mlc)] == [{name} for name in names]
    assert valid_campaign(campaign) == ["records", "status.json", "topology.json"]
    values = matrix_file.read_matrix(folders[0]).ns
    assert np.allclose(values, items[0].core_matrix().ns, rtol=1e-5, equal_nan=True)
    header = cores.measured["coherence-cas"].header
    assert header["home"] is None
    assert header["imported"] == {
        "format": "core-to-core-latency",
        "source": "EPYC a&b.csv",
        "unknown": ["home", "topology", "spread", "cpu numbers"],
        "notes": [],
    }
    assert serialized.from_text(store.survey(folders[0]).topology).cpus == labeled(16).cpus
    assert store.survey(folders[1]).topology == ""
    assert set(other.measured) == {"coherence-imported"}
    idle = mlc.measured["mlc-idle-latency"].columns["latency_ns"]
    assert idle.ravel().tolist() == pytest.approx([82.2, 129.6, 131.1, 81.6])
    assert {job.status.outcome for job in (cores, other, mlc) if job.status} == {"complete"}

    with pytest.raises(NodeprintError, match="holds a campaign already"):
        campaign_writer.write_campaign(items, campaign)


def test_matrices_of_unknown_processors_are_no_peers(tmp_path: Path, write: Write) -> None:
    """Of as many CPUs and without labels: they may be of any machine."""
    noise = np.random.default_rng(1)
    for name, factor in (("a", 1.0), ("b", 1.1), ("c", 1.0), ("d", 1.0), ("e", 1.0)):
        rows = factor * (100 + 0.2 * noise.normal(size=(16, 16)))
        text = "\n".join(",".join(f"{rows[a, b]:.3f}" if b < a else "" for b in range(16)) for a in range(16))
        write(text, f"{name}.csv")
    files = sorted(tmp_path.rglob("?.csv"))
    campaign_writer.write_campaign([matrix_file.read_output(file) for file in files], tmp_path / "out")
    nodes = judge(tmp_path / "out").verdict.nodes
    assert {figure.name for node in nodes.values() for figure in node.classes} == {"every pair"}
    assert {node.outcome for node in nodes.values()} == {Outcome.NO_PEERS}
    assert not any(node.findings for node in nodes.values())
    assert all("--part or --xml" in node.reasons[0].detail for node in nodes.values())


def test_matrices_of_two_processors_with_one_layout_are_no_peers(tmp_path: Path, write: Write) -> None:
    """A 7742 and a 7702 have the same CCXs at other clocks."""
    noise = np.random.default_rng(1)
    parts = [presets.from_part(name, 1, smt=False) for name in ("EPYC 7742", "EPYC 7742", "EPYC 7702", "EPYC 7702")]
    for number in range(4):
        rows = 100 + noise.normal(size=(64, 64))
        text = "\n".join(",".join(f"{rows[a, b]:.3f}" if b < a else "" for b in range(64)) for a in range(64))
        write(text, f"{number}.csv")
    items = [matrix_file.read_output(file) for file in sorted(tmp_path.rglob("?.csv"))]
    campaign_writer.write_campaign(items, tmp_path / "out", parts)
    assert [group.tolist() for group in judge(tmp_path / "out").population.configurations] == [[0, 1], [2, 3]]


def cli(*words: object) -> tuple[int, str]:
    """Exit status and all that a command prints."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return result.exit_code, result.output


def test_published_matrices_of_different_processors_are_no_peers(data: Path, tmp_path: Path) -> None:
    names = (
        "AMD Ryzen 7 5700X",
        "AMD Ryzen 7 5800U",
        "AMD Ryzen 9 5900HX @ 3.3 GHz",
        "Intel Core i9-9900K CPU @ 3.60 GHz",
    )
    files = [data / f"c2c/core-to-core-latency/{name}.csv" for name in names]
    assert cli("import", *files, "--out", tmp_path / "out")[0] == 0
    status, output = cli("judge", tmp_path / "out")
    assert status == 0 and "name it by --part or --xml" in " ".join(output.split())
    nodes = judge(tmp_path / "out").verdict.nodes
    assert len(nodes) == 4 and {node.outcome for node in nodes.values()} == {Outcome.NO_PEERS}
    assert cli("judge", tmp_path / "out", "--fail-on", "not-same")[0] == 3


@pytest.mark.parametrize(
    ("names", "peers"),
    [
        (("run1", "run2", "run3"), False),
        (("7302 (1)", "7302 (2)", "7302 (3)"), False),
        (("monday", "tuesday", "friday"), False),
        (("cn01", "cn02", "cn03"), True),
        (("cn01/latency", "cn02/latency", "cn03/latency"), True),
    ],
)
def test_runs_of_one_machine_do_not_accuse_each_other(tmp_path: Path, names: tuple[str, ...], *, peers: bool) -> None:
    """Three imports of one processor were a fleet: one with a slow CCX was SUSPECT."""
    noise = np.random.default_rng(1)
    files = [tmp_path / f"{name}.csv" for name in names]
    for number, file in enumerate(files):
        ns = np.where(np.arange(16)[:, None] // 2 == np.arange(16) // 2, 25 * (1 + 0.3 * (number == 1)), 100.0)
        ns *= np.exp(0.003 * noise.standard_normal((16, 16)))
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(",".join(f"{ns[a, b]:.3f}" if b < a else "" for b in range(16)) for a in range(16)))
    status, said = cli("import", *files, "--part", "EPYC 7302", "--no-smt", "--out", tmp_path / "out")
    assert status == 0 and ("may be runs of one machine" in said) is not peers
    outcomes = [node.outcome for node in judge(tmp_path / "out").verdict.nodes.values()]
    assert (outcomes == [Outcome.NO_PEERS] * 3) is not peers
    assert ("node01.csv" in " ".join(cli("judge", tmp_path / "out")[1].split())) is not peers


@pytest.mark.parametrize("part", ["EPYC 9999", "Quantum 1", "Ryzen 9 1234X", "7", "EPYC"])
def test_a_part_that_is_not_in_the_table_is_one_sentence(tmp_path: Path, write: Write, part: str) -> None:
    with pytest.raises(NodeprintError, match=r"part of the table|more than one part") as error:
        CliRunner().invoke(
            app, ["import", str(write(LOWER)), "--part", part, "--out", str(tmp_path / "out")], catch_exceptions=False
        )
    assert "\n" not in str(error.value) and "--xml" in str(error.value)
    assert not (tmp_path / "out").exists()


def test_records_of_an_import_are_complete(tmp_path: Path, write: Write) -> None:
    campaign_writer.write_campaign(
        [matrix_file.read_output(write(LOWER)), matrix_file.read_output(write(MLC, "b"))], tmp_path / "c"
    )
    files = sorted((tmp_path / "c").rglob("*.jsonl.gz"))
    assert len(files) == 6
    assert all(records.read(path).complete and not records.read(path).notes for path in files)


def test_empty_import(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="no file"):
        campaign_writer.write_campaign([], tmp_path / "c")


def test_what_is_there_twice_is_refused(tmp_path: Path, write: Write) -> None:
    rows = "\n".join(",".join("" if a == b else f"{40 + a + b}.5" for b in range(8)) for a in range(8))
    first, copy = matrix_file.read_output(write(rows, "first.csv")), matrix_file.read_output(write(rows, "copy.csv"))
    with pytest.raises(NodeprintError, match=r"copy.csv: has the same figures as .*first.csv"):
        campaign_writer.write_campaign([first, copy], tmp_path / "out")
    small = [matrix_file.read_output(write(",59\n59,\n", name)) for name in ("a.csv", "b.csv")]
    assert campaign_writer.write_campaign(small, tmp_path / "two") == ["a", "b"]  # alike by chance
    with pytest.raises(NodeprintError, match="same figures"):
        campaign_writer.write_campaign([small[0], small[0]], tmp_path / "again")


def test_topology_must_have_the_matrix_cpus(tmp_path: Path, write: Write) -> None:
    with pytest.raises(NodeprintError, match="CPU 4 of the matrix"):
        campaign_writer.write_campaign([matrix_file.read_output(write(C2CLAT))], tmp_path / "c", labeled(4))
    assert not (tmp_path / "c").exists()


RECORDS = (
    '{"record":"header","schema":1,"segment":0,"kernel":"linktest","operation":"%s","quantity":"message","unit":"ns","host":"n",'
    '"job":1,"run":1,"cpus":[0,1,2],"home":null,"message_bytes":1048576,"arguments":[],"passes":1,"directed":%s}\n'
    '{"record":"pair","a":0,"b":1,"home":-1,"pass":0,"latency_ns":178000.0,"flags":[]}\n'
    '{"record":"pair","a":0,"b":2,"home":-1,"pass":0,"latency_ns":174000.0,"flags":[]}\n'
    '{"record":"pair","a":1,"b":2,"home":-1,"pass":0,"latency_ns":184000.0,"flags":[]}\n'
    '{"record":"trailer","elapsed_s":0.1,"pairs":3,"complete":true}\n'
)


#: What of each file the judge has: every format that is imported can be judged.
MEASUREMENTS = {
    **dict.fromkeys(("long-table", "chips-and-cheese", "c2clat"), "coherence-imported"),
    **dict.fromkeys(("core-to-core-latency-terminal", "core-to-core-latency"), "coherence-cas"),
}


@pytest.mark.parametrize(
    ("text", "measurement"),
    [
        *((FILES[name], measurement) for name, measurement in MEASUREMENTS.items()),
        (LINKTEST, "linktest-node"),
        (RECORDS % ("semidirectional", "false"), "linktest-node"),
        (RECORDS % ("bidirectional", "false"), "linktest-node-bidirectional"),
        (RECORDS % ("unidirectional", "true"), "linktest-node-unidirectional"),
    ],
)
def test_what_is_imported_can_be_judged(tmp_path: Path, text: str, measurement: str) -> None:
    campaign = tmp_path / "campaign"
    campaign_writer.write_campaign([read_text(tmp_path, text)], campaign)
    node = judge(campaign).verdict.nodes["m"]
    assert node.outcome is Outcome.NO_PEERS
    assert {figure.measurement for figure in node.classes} == {measurement}

"""The two hosts of an output between nodes: from a line, the path or --path; never taken for a node's."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from nodeprint.errors import NodeprintError
from nodeprint.judge import of_table
from nodeprint.judge.verdict import Verdict
from nodeprint.readers import pair_lines, table_file

SIZES = (1, 1024, 1 << 20)


def osu(latency: float) -> str:
    rows = "".join(f"{size:<16d}{latency * (1 + size / 1e4):.2f}\n" for size in SIZES)
    return f"# OSU MPI Latency Test v7.3\n# Size          Latency (us)\n{rows}"


def imb(latency: float) -> str:
    rows = "".join(f"{size:>13} 1000 {latency:>12.2f} {size / latency:>12.2f}\n" for size in SIZES)
    return f"# Benchmarking PingPong\n# #processes = 2\n       #bytes #repetitions      t[usec]   Mbytes/sec\n{rows}"


def outputs(
    folder: Path,
    name: str,
    head: str = "",
    of: Callable[[float], str] = osu,
    keep: Callable[[int, int], bool] = lambda *_: True,
) -> Path:
    """Files of all pairs of six nodes in two runs; node cn004 is slow in its pairs."""
    rng = np.random.default_rng(1)
    for run in (1, 2):
        for a, b in (ends for ends in combinations(range(1, 7), 2) if keep(*ends)):
            words = {"a": f"cn{a:03}", "b": f"cn{b:03}", "run": run, "id": 4711 + 100 * run + 10 * a + b}
            path = folder / name.format(**words)
            path.parent.mkdir(parents=True, exist_ok=True)
            slower = 1.4 if 4 in (a, b) else 1.0
            path.write_text(head.format(**words) + of(1.9 * slower * float(np.exp(0.01 * rng.standard_normal()))))
    return folder


def verdict(folder: Path, pattern: str = "") -> Verdict:
    figures = table_file.read_table(folder, path_pattern=pattern)
    return of_table.judge(figures, "outputs", of_table.rules_of(figures)).verdict


def slow(of: Verdict) -> set[str]:
    return {str(finding.component.where["node"]) for fabric in of.fabric for finding in fabric.findings}


@pytest.mark.parametrize(
    ("name", "head", "pattern"),
    [
        ("run{run}/osu-{a}-{b}.txt", "", ""),
        ("osu-{a}_{b}/run{run}.out", "", ""),
        ("run{run}/osu-{a}-{b}.txt", "", "run{run}/osu-{node}-{peer}.txt"),
        ("run{run}/out.{id}", "SLURM_JOB_NODELIST={a},{b}\n", ""),
        ("out.{id}.txt", "### {a} {b} ###\n", ""),
        ("out.{id}.txt", "between {a} and {b}\n", ""),
    ],
)
def test_the_pair_of_each_output_is_stated_and_the_slow_node_named(
    tmp_path: Path, name: str, head: str, pattern: str
) -> None:
    of = verdict(outputs(tmp_path, name, head), pattern)
    assert slow(of) == {"cn004"} and {finding.component.term for finding in of.fabric[0].findings} == {"fabric-node"}
    assert of.fabric[0].message_bytes == SIZES[-1] and len(of.nodes) == 6
    assert of.identity and of.identity.pairs == 15 and of.identity.most_runs == 2


def test_a_rate_of_imb_is_judged_by_its_time(tmp_path: Path) -> None:
    of = verdict(outputs(tmp_path, "run{run}/{a}-{b}.log", of=imb))
    assert [(fabric.measurement, fabric.shown.better) for fabric in of.fabric] == [
        ("imb-pingpong", "lower"),
        ("imb-pingpong-rate", "higher"),
    ]
    assert slow(of) == {"cn004"} and all(fabric.findings for fabric in of.fabric)


@pytest.mark.parametrize("keep", [lambda a, _: a == 1, lambda a, b: b == a + 1], ids=["star", "chain"])
def test_a_node_with_few_links_is_no_node_with_values(tmp_path: Path, keep: Callable[[int, int], bool]) -> None:
    with pytest.raises(NodeprintError, match="fewer than four nodes that are each linked to three others"):
        verdict(outputs(tmp_path, "run{run}/osu-{a}-{b}.txt", keep=keep))


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        ("### cn001 cn002", ("cn001", "cn002")),
        ("nodes: cn[001-002]", ("cn001", "cn002")),
        ("cn017.cluster.org -> cn018.cluster.org", ("cn017", "cn018")),
        ("nodes: cn001", None),
        ("cn001 cn002 cn003", None),
        ("module load ucx-1.15 hdf5", None),
        ("gpu0 to gpu1", None),
    ],
)
def test_a_line_names_two_hosts_or_none(line: str, hosts: tuple[str, str] | None) -> None:
    found = pair_lines.ends([line, "1 2.0"])
    assert (found[0] if found else None) == hosts


def test_lines_with_two_pairs_or_with_a_further_host_name_no_pair() -> None:
    assert pair_lines.ends(["cn1 cn2", "cn1 cn3"]) is None
    assert pair_lines.ends(["cn1 cn2", "HOST=cn3"]) is None
    assert pair_lines.ends(["cn1 cn2", "HOST=cn1", "1 2.0"]) == (("cn1", "cn2"), ["", "", "1 2.0"])


def test_a_collective_over_two_named_hosts_is_of_no_link(tmp_path: Path) -> None:
    text = osu(3.0).replace("Latency Test", "Allreduce Latency Test")
    folder = outputs(tmp_path, "run{run}/out.{id}", "SLURM_JOB_NODELIST={a},{b}\n", of=lambda _: text)
    with pytest.raises(NodeprintError, match="several hosts are named"):
        verdict(folder)

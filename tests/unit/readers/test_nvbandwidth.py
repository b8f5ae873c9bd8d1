"""The output of nvbandwidth."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from nodeprint.cli import app
from tests.support.tool_output import of_text, values

#: https://github.com/NVIDIA/nvbandwidth, README.md (its example's form), output.cpp (host and devices)
NVBANDWIDTH = """nvbandwidth Version: v0.8
Driver Version: 560.35.05

gpu07
Device 0: NVIDIA H100 (00000000:19:00)
Device 1: NVIDIA H100 (00000000:3b:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     55.31     55.29

SUM host_to_device_memcpy_ce 110.60

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    381.02
 1    382.11       N/A

SUM device_to_device_memcpy_read_ce 763.13

Running host_device_latency_sm.
memory latency SM CPU(row) <-> GPU(column) (ns)
           0         1
 0    772.58    773.10

Running multinode_device_to_device_memcpy_read_ce.
Waived: system has too few nodes
"""


def test_nvbandwidth(tmp_path: Path) -> None:
    figures = of_text(tmp_path, NVBANDWIDTH)
    assert set(figures.frame["node"]) == {"gpu07"}
    assert values(figures) == {
        ("nvbandwidth-host_to_device_memcpy_ce", "0", ""): 55.31,
        ("nvbandwidth-host_to_device_memcpy_ce", "1", ""): 55.29,
        ("nvbandwidth-device_to_device_memcpy_read_ce", "1", "0"): 381.02,
        ("nvbandwidth-device_to_device_memcpy_read_ce", "0", "1"): 382.11,
        ("nvbandwidth-host_device_latency_sm", "0", ""): 772.58,
        ("nvbandwidth-host_device_latency_sm", "1", ""): 773.1,
    }
    assert set(figures.frame["unit"]) == {"GB/s", "ns"}


def test_nvbandwidth_as_json(tmp_path: Path) -> None:
    """Keys and texts of json_output.cpp."""
    case = {
        "name": "device_to_device_memcpy_read_ce",
        "status": "Passed",
        "sum": 763.1,
        "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
        "bandwidth_matrix": [["N/A", "381.02"], ["382.11", "N/A"]],
    }
    content = {
        "CUDA Runtime Version": 12060,
        "GPU Device list": ["0: NVIDIA H100 (00000000:19:00): (gpu07)"],
        "testcases": [case, {"name": "host_to_device_bidirectional_memcpy_ce", "status": "Waived"}],
    }
    figures = of_text(tmp_path, json.dumps({"nvbandwidth": content}, indent=1))
    assert set(figures.frame["node"]) == {"gpu07"}
    assert sorted(figures.frame["value"]) == [381.02, 382.11]


def test_nvbandwidth_of_several_hosts_in_one_file(tmp_path: Path) -> None:
    other = NVBANDWIDTH.replace("gpu07", "gpu08").replace("381.02", "191.02")
    frame = of_text(tmp_path, NVBANDWIDTH + other).frame
    assert frame.groupby("node")["value"].min().to_dict() == {"gpu07": 55.29, "gpu08": 55.29}
    assert frame[frame["value"] == 191.02]["node"].tolist() == ["gpu08"]


def _matrix(values: np.ndarray, name: str, title: str) -> str:
    rows = "\n".join(
        f" {row} " + "".join("       N/A" if np.isnan(value) else f"{value:10.2f}" for value in own)
        for row, own in enumerate(values)
    )
    head = "".join(f"{gpu:10d}" for gpu in range(values.shape[1]))
    return f"Running {name}.\nmemcpy CE {title} bandwidth (GB/s)\n  {head}\n{rows}\n\nSUM {name} 1.0\n\n"


def _output(node: int, rng: np.random.Generator) -> str:
    """Of a node with eight GPUs: gn05 has a slow bus of GPU 3, gn09 a slow link, and gn12 a GPU with slow links."""
    host = 55.3 * (1 + 0.004 * rng.standard_normal((1, 8)))
    links = 381 * (1 + 0.004 * rng.standard_normal((8, 8)))
    np.fill_diagonal(links, np.nan)
    host[0, 3] *= 0.5 if node == 5 else 1
    links[2, 6] *= 0.7 if node == 9 else 1
    for ends in ((4, slice(None)), (slice(None), 4)):
        links[ends] *= 0.8 if node == 12 else 1
    return (
        f"nvbandwidth Version: v0.8\n\ngn{node:02d}\n"
        + _matrix(host, "host_to_device_memcpy_ce", "CPU(row) -> GPU(column)")
        + _matrix(links, "device_to_device_memcpy_read_ce", "GPU(row) -> GPU(column)")
    )


def test_slow_gpus_and_links_of_sixteen_nodes_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for node in range(16):
        for run in range(1, 4):
            (tmp_path / f"gn{node:02d}-run{run}.log").write_text(_output(node, rng))
    said = " ".join(CliRunner().invoke(app, ["judge", str(tmp_path)]).stdout.split())
    assert "13 of 16 nodes match" in said and "gn[05,09,12]" in said
    assert "gn05: WARN (SUSPECT). nvbandwidth-host_to_device_memcpy_ce of gpu 3 is " in said
    assert "gn09: WARN (SUSPECT). nvbandwidth-device_to_device_memcpy_read_ce of gpu 6, peer gpu 2 is " in said
    assert re.search(
        r"gn12: WARN \(SUSPECT\)\. nvbandwidth-device_to_device_memcpy_read_ce of (?:peer )?gpu 4 is", said
    )

"""The output of nvbandwidth."""

from __future__ import annotations

import json
from pathlib import Path

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

"""The output of DCGM's diagnostic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import of_text, values


def dcgm(status: str, info: list[str]) -> str:
    """NVIDIA DCGM 3, nvvs/include/JsonOutput.h: categories, tests, results with their information."""
    results = [{"gpu_ids": "3", "status": status, "info": info}]
    tests = [
        {"name": "PCIe", "results": results},
        {"name": "NVML Library", "results": [{"gpu_ids": "3", "status": "Pass"}]},
    ]
    return json.dumps(
        {"DCGM GPU Diagnostic": {"test_categories": [{"category": "Integration", "tests": tests}]}}, indent=1
    )


def test_dcgm(tmp_path: Path) -> None:
    info = ["GPU 3 GPU to Host bandwidth:\t\t52.41 GB/s", "GPU 3 GPU to Host latency:\t\t1.56 us"]
    figures = of_text(tmp_path, f"Successfully ran diagnostic for group.\n{dcgm('Pass', info)}")
    assert values(figures) == {("dcgm-gpu-to-host-bandwidth", "3"): 52.41, ("dcgm-gpu-to-host-latency", "3"): 1.56}
    with pytest.raises(NodeprintError, match="test PCIe of GPU 3 failed"):
        of_text(tmp_path, dcgm("Fail", info))
    with pytest.raises(NodeprintError, match="its tests only pass or fail; give level 3"):
        of_text(tmp_path, dcgm("Pass", []))

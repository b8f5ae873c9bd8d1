"""The output of CUDA's bandwidthTest."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import of_text, values

TEXT = """\
[CUDA Bandwidth Test] - Starting...
Running on...

 Device 1: NVIDIA A100
 Quick Mode

 Host to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)	Bandwidth(GB/s)
   32000000			24.6

 Device to Host Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)	Bandwidth(GB/s)
   32000000			25.9

Result = PASS
"""


def test_each_direction_has_its_rate(tmp_path: Path) -> None:
    assert values(of_text(tmp_path, TEXT)) == {("cuda-host-to-device", "1"): 24.6, ("cuda-device-to-host", "1"): 25.9}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace("PASS", "FAIL"), "line 17: the test failed"),
        (TEXT[: TEXT.index("   32000000\t\t\t25.9")], "line 14: a table without a line"),
    ],
)
def test_what_failed_or_is_cut_is_rejected(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(NodeprintError, match=message):
        of_text(tmp_path, text)


def test_lines_of_csv_have_the_rates_of_the_tables(tmp_path: Path) -> None:
    csv = """\
 Device 2: Tesla V100-PCIE-32GB
 Shmoo Mode

bandwidthTest-H2D-Pinned, Bandwidth = 12.1 GB/s, Time = 0.00528 s, Size = 64000000 bytes, NumDevsUsed = 1
bandwidthTest-H2D-Paged, Bandwidth = 6.1 GB/s, Time = 0.01056 s, Size = 64000000 bytes, NumDevsUsed = 1
bandwidthTest-D2D, Bandwidth = 738.2 GB/s, Time = 0.00009 s, Size = 64000000 bytes, NumDevsUsed = 1
"""
    assert values(of_text(tmp_path, csv)) == {
        ("cuda-host-to-device", "2"): 12.1,
        ("cuda-host-to-device-paged", "2"): 6.1,
        ("cuda-device-to-device", "2"): 738.2,
    }

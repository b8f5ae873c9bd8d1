"""Outputs of perftest, written after its format strings (src/perftest_parameters.h)."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.readers import tool_logs
from tests.support.tool_output import of_text, values

RULE = "-" * 87
HEAD = "{rule}\n                    {test} Test\n Dual-port       : OFF\t\tDevice         : {device}\n{rule}\n"
BANDWIDTH = " #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]\n"
LATENCY = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"
    "   99% percentile[usec]   99.9% percentile[usec] \n"
)


def bandwidth(average: float, device: str = "mlx5_0", unit: str = "MB/sec") -> str:
    head = HEAD.format(rule=RULE, test="RDMA_Write BW", device=device) + BANDWIDTH.format(unit=unit)
    return f"{head} 65536      5000             0.00               {average:.2f} \t\t   0.375123\n{RULE}\n"


def test_the_average_rate_of_an_adapter(tmp_path: Path) -> None:
    read = of_text(tmp_path, bandwidth(23450.1))
    (value,) = values(read).values()
    assert value == 23450.1 and set(read.frame["metric"]) == {"perftest-rdma-write-bw"}
    assert set(read.frame["unit"]) == {"MiB/s"}
    assert set(of_text(tmp_path, bandwidth(196.7, unit="Gb/sec")).frame["unit"]) == {"Gb/s"}


def test_the_typical_time(tmp_path: Path) -> None:
    row = " 2       1000          0.93           4.51         0.96   \t       0.97   \t0.05   \t\t1.01   \t\t4.51\n"
    text = HEAD.format(rule=RULE, test="Send Latency", device="mlx5_0") + LATENCY + row
    assert [*values(of_text(tmp_path, text)).values()] == [0.96]
    text = text.replace(
        LATENCY + row, " #bytes        #iterations       t_avg[usec]    tps average\n 2  10000  1.19  840336.1\n"
    )
    assert [*values(of_text(tmp_path, text)).values()] == [1.19]


def test_adapters_are_parts_of_their_node(tmp_path: Path) -> None:
    text = "hostname: gn01\n" + "".join(bandwidth(23450.0 + port, f"mlx5_{port}") for port in range(3))
    (tmp_path / "gn01.log").write_text(text)
    found = {value.copy["adapter"]: (value.node, value.value) for value in tool_logs.identified(tmp_path)}
    assert found == {f"mlx5_{port}": ("gn01", 23450.0 + port) for port in range(3)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (bandwidth(1.0).rpartition(" 65536")[0], "line 5: a table without a line"),
        (bandwidth(1.0).replace("RDMA_Write BW Test", ""), "line 5: a table without the title of its test"),
    ],
)
def test_what_is_cut_is_rejected(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match=message):
        of_text(tmp_path, text)

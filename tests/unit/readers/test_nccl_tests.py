"""The output of nccl-tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import WrongResultError
from tests.support.tool_output import of_text, values

HEAD = """\
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 0 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
# Using devices
#  Rank  0 Group  0 Pid   3595 on      gn001 device  0 [0x81] NVIDIA A100
#  Rank  1 Group  0 Pid   3595 on      {other} device  1 [0x82] NVIDIA A100
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
ROWS = """\
           0             0     float     sum      -1    12.10    0.00    0.00    N/A    11.90    0.00    0.00    N/A
        1024           256     float     sum      -1    13.20    0.08    0.08      0    13.30    0.08    0.08      0
     4194304       1048576     float     sum      -1    90.40   46.40   46.41  {wrong}  91.10   46.04   46.05      0
# Out of bounds values : 0 OK
"""


def text(other: str = "gn001", wrong: int = 0) -> str:
    return HEAD.format(other=other) + ROWS.format(wrong=wrong)


def test_small_messages_have_a_time_and_large_ones_a_rate(tmp_path: Path) -> None:
    figures = of_text(tmp_path, text())
    assert values(figures) == {
        ("nccl-all_reduce-time", "1024"): 13.2,
        ("nccl-all_reduce-time-in-place", "1024"): 13.3,
        ("nccl-all_reduce-busbw", "4194304"): 46.41,
        ("nccl-all_reduce-busbw-in-place", "4194304"): 46.05,
    }
    assert set(figures.frame["node"]) == {"gn001"}
    assert set(figures.frame["unit"]) == {"us", "GB/s"}


def test_ranks_on_two_hosts_are_no_node(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match=r"a job on 2 nodes \(gn001 and gn002\)"):
        of_text(tmp_path, text(other="gn002"))


def test_wrong_data_are_a_wrong_result(tmp_path: Path) -> None:
    with pytest.raises(WrongResultError, match="line 11: received data are wrong"):
        of_text(tmp_path, text(wrong=3))


def test_a_table_that_is_cut_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="line 7: a table without a line"):
        of_text(tmp_path, HEAD.format(other="gn001"))


OLD = """\
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
          32             1   float            89.00    0.00    0.00    N/A    85.13    0.00    0.00    N/A
"""


def test_an_old_test_without_an_operation_prints_a_blank_for_it(tmp_path: Path) -> None:
    assert set(values(of_text(tmp_path, OLD)).values()) == {89.0, 85.13}


def test_a_line_cut_in_a_cell_is_not_one_with_a_blank(tmp_path: Path) -> None:
    cut = OLD.replace("float      ", "float   sum").replace("0.00    N/A\n", "0.00\n")
    with pytest.raises(NodeprintError, match="a table without a line"):
        of_text(tmp_path, cut)


def pair(first: int, second: int, rate: float, before: str = "") -> str:
    """The test of a pair of GPUs, which CUDA_VISIBLE_DEVICES numbers 0 and 1; the bus tells them apart."""
    own = text().replace("[0x81]", f"[0x8{first}]").replace("[0x82]", f"[0x8{second}]")
    return before + own.replace("46.41", f"{rate}")


@pytest.mark.parametrize("before", ["", "CUDA_VISIBLE_DEVICES={0},{1}\n", "GPU {0} -> GPU {1}\n"])
def test_pairs_of_gpus_are_links(tmp_path: Path, before: str) -> None:
    rates = {(0, 1): 46.1, (0, 2): 46.2, (1, 2): 23.3}
    tests = [pair(*gpus, rate, before.format(*gpus)) for gpus, rate in rates.items()]
    found = values(of_text(tmp_path, "".join(tests)))
    assert {tuple(key[1:3]): value for key, value in found.items() if key[0] == "nccl-all_reduce-busbw"} == {
        (f"0x8{a}", f"0x8{b}"): rate for (a, b), rate in rates.items()
    }


def test_the_same_pair_again_is_a_run(tmp_path: Path) -> None:
    frame = of_text(tmp_path, pair(0, 1, 46.1) + pair(0, 1, 46.2)).frame
    assert "peer gpu" not in frame and sorted(frame["run"].unique()) == ["1", "2"]


def test_different_sets_of_gpus_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="tests of 2 different sets of GPUs, which are not all pairs; give"):
        of_text(tmp_path, pair(0, 1, 46.1) + pair(0, 2, 46.2).replace("#  Rank  1", "#  Rank1"))

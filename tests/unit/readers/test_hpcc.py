"""The summary of HPC Challenge, written after its format strings (src/hpcc.c, HPCC_Finalize)."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.readers.parsing import WrongResultError
from tests.support.tool_output import of_text, values

TEXT = """\
########################################################################
Begin of Summary section.
VersionMajor=1
CommWorldProcs=64
Success=1
HPL_Tflops=2.81437
HPL_time=812.5
StarDGEMM_Gflops=41.7
PTRANS_GBs=11.4
MPIRandomAccess_GUPs=0.25
StarSTREAM_Triad=3.1
RandomlyOrderedRingLatency_usec=1.9
End of Summary section.
########################################################################
"""


def test_rates_and_times_of_the_summary(tmp_path: Path) -> None:
    read = of_text(tmp_path, TEXT)
    assert {name: value for (name, *_), value in values(read).items()} == {
        "hpcc-hpl": 2.81437,
        "hpcc-stardgemm": 41.7,
        "hpcc-ptrans": 11.4,
        "hpcc-mpirandomaccess": 0.25e9,
        "hpcc-starstream-triad": 3.1,
        "hpcc-randomlyorderedringlatency": 1.9,
    }


def test_a_failed_test_is_a_wrong_result(tmp_path: Path) -> None:
    with pytest.raises(WrongResultError, match="line 5: a test of HPCC failed"):
        of_text(tmp_path, TEXT.replace("Success=1", "Success=0"))

"""The experiments of macos-core-to-core-latency, and the table that its script prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import MACOS, read_text

#: As pandas prints a table whose rows and columns have names.
TABLE = """CPU: Apple M4 Pro (12C)
Num cores: 3
Samples per core pair: min: 300 avg: 300.0 max: 300
Median Core-to-core latency (ns):
toCore       0     1  4101
fromCore
   0       NaN    25    91
   1        26   NaN    90
4101        91    90   NaN
Stored plot to results.png
"""
#: Tables that its option --verbose prints before.
SAMPLES = """Partial csv dump:
       fromIndex  toIndex fromCore toCore  fromCoreLatencyNs  toCoreLatencyNs
0              0        1     4101      1              85.49            85.51
1              0        1     4101      1              61.51            61.51

Core-to-core latency aggregates (ns):
                 count   min  median
fromCore toCore
0        1         300  24.9    25.0
         4101      300  90.1    91.0

"""


def test_the_median_of_experiments(tmp_path: Path) -> None:
    cores = read_text(tmp_path, MACOS).core_matrix()
    assert cores.cpus == (0, 1, 4101)
    assert cores.ns[1].tolist()[::2] == [25.5, 90.25] and cores.ns[0, 2] == 91


def test_another_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="line 4, column 1: not the line of an experiment"):
        read_text(tmp_path, MACOS.replace("   1,  2,        1,     0,     25.10 ns", "zsh: killed", 1))


@pytest.mark.parametrize("text", [TABLE, TABLE.replace("Median", SAMPLES + "Median")])
def test_the_script_s_table(tmp_path: Path, text: str) -> None:
    """Its line `Num cores:` was taken for that of core-to-core-latency, which rejected it."""
    imported = read_text(tmp_path, text)
    assert (imported.tool, imported.core_matrix().cpus) == ("core-to-core-latency", (0, 1, 4101))
    nan = np.nan
    assert np.array_equal(imported.core_matrix().ns, [[nan, 25, 91], [26, nan, 90], [91, 90, nan]], equal_nan=True)

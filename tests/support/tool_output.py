"""Other tools' output, made up in their formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.model import Cpu, Machine, Topology
from nodeprint.readers import matrix_file, tool_logs
from nodeprint.readers.tool_output import ToolOutput
from nodeprint.readers.value_table import ValueTable

C2CLAT = """ CPU    0    2    4    6
   0    0   92   66   62
   2   92    0   50   54
   4   66   50    0   48
   6   62   54   48    0
"""
LOWER = ",,\n25.5,,\n90.25,91,\n"
MLC = """Intel(R) Memory Latency Checker - v3.9
Measuring idle latencies (in ns)...
\t\tNuma node
Numa node\t     0\t     1\t
       0\t  82.2\t 129.6\t
       1\t 131.1\t  81.6\t

Measuring Peak Injection Memory Bandwidths for the system
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
ALL Reads        :\t225097.1\t

Measuring Memory Bandwidths between nodes within system
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
Using all the threads from each core if Hyper-threading is enabled
Using Read-only traffic type
\t\tNuma node
Numa node\t     0\t     1\t
       0\t113139.4\t50923.4\t
       1\t50916.6\t113249.2\t

Measuring Loaded Latencies for the system
Inject\tLatency\tBandwidth
Delay\t(ns)\tMB/sec
==========================
 00000\t261.50\t 225452.5

Measuring cache-to-cache transfer latency (in ns)...
Local Socket L2->L2 HIT  latency\t51.6
Local Socket L2->L2 HITM latency\t51.7
Remote Socket L2->L2 HITM latency (data address homed in writer socket)
\t\t\tReader Numa Node
Writer Numa Node     0\t     1\t
            0\t     -\t 111.3\t
            1\t 111.1\t     -\t
Remote Socket L2->L2 HITM latency (data address homed in reader socket)
\t\t\tReader Numa Node
Writer Numa Node     0\t     1\t
            0\t     -\t 175.8\t
            1\t 176.7\t     -\t
"""
PINGPONG = """avg latency to communicate a modified line from one core to another
times are in ns

          1       2       5
 0:    12.5    88.0    89.5
 1:            87.0    90.0
 2:                    13.5

"""
GNUPLOT = """reset
set autoscale fix
set title "Inter-core one-way data latency between CPU cores"
set xlabel "Core N°"
unset key
$data << EOD
    0   92   66
   92    0   50
   66   50    0
EOD
plot '$data' matrix with image, '' matrix using 1:2:(sprintf('%d', $3)) with labels font ',auto'
"""
TRIANGLE = np.array([[np.nan, 25.5, 90.25], [25.5, np.nan, 91], [90.25, 91, np.nan]])
TERMINAL = """CPU: AMD EPYC 7742 64-Core Processor
Num cores: 3
Num iterations per samples: 5000
Num samples: 300

1) CAS latency on a single shared cache line

           0       1       2   \n      0
      1   25±0 \n      2   90±0    91±12\n
    Min  latency: 25.2ns ±0.0 cores: (1,0)
    Max  latency: 91.0ns ±0.3 cores: (2,1)
    Mean latency: 68.6ns
"""
OFFSETS = "Cache line offset: {}\nx,25.5,90.25\n25.5,x,91\n90.25,91,x\n"
PAIRS = "a,b,ns\n0,1,25.5\n0,2,90.25\n1,2,91\n"
MACOS = """# Info: Core count: 3
# Info: Experiments per core pair: 2
   0,  1,     4101,     1,     90.10 ns,  90.25,    3.04 GHz, 3.12,    2.40, 2.40
   1,  2,        1,     0,     25.10 ns,  25.00,    3.93 GHz, 3.87,    2.40, 2.38
   1,  2,        1,     0,     25.10 ns,  26.00,    3.93 GHz, 3.87,    2.40, 2.38
   0,  2,     4101,     0,     91.10 ns,  91.00,    3.93 GHz, 3.87,    2.40, 2.38
# Info: Successful experiments:   4 /   17138 (0.02%)
"""
FILES = {
    "long-table": PAIRS,
    "macos-core-to-core-latency": MACOS,
    "chips-and-cheese": OFFSETS.format(0),
    "core-to-core-latency-terminal": TERMINAL,
    "core-to-core-latency": ",0,1,2\n0,0.0,25.5,90.25\n1,25.5,0.0,91.0\n2,90.25,91.0,0.0\n",
    "c2clat": " CPU    0    1    2\n   0    0   92   66\n   1   92    0   50\n   2   66   50    0\n",
}
# As linktest_spec.c prints a serial run with two ranks a line and a pass over both directions.
LINKTEST = """\
 Serial   PingPong for step     1:
      0->     1:    78.00000us (12820.51 MB/s) (l=0)
      1->     0:    78.20000us (12787.72 MB/s) (l=1)
      2->     3:    74.00000us (13513.51 MB/s) (l=2)
      3->     2:    74.00000us (13513.51 MB/s) (l=3)
  avg=    76.050us (13149.2 MB/s) min=    74.000us (13513.51 MB/s) max=    78.200us (12787.72 MB/s)
 Serial   PingPong for step     2:
      0->     2:    84.00000us (11904.76 MB/s) (l=0)
      2->     0:    84.00000us (11904.76 MB/s) (l=2)
RESULT: Min Time:                     74.00000000us (13513.51 MB/s) [iter  1 ]
     0: PINGPONG      0  <->       2:  1st:    84.0000us (11904.76 MB/s)    2nd:    83.9000us (11918.95 MB/s)
"""


def refused(path: Path, line: int, column: int) -> str:
    """The sentence with which a file is refused, which must begin with the place."""
    with pytest.raises(NodeprintError) as error:
        matrix_file.read_output(path)
    sentence = str(error.value)
    assert sentence.startswith(f"{path}, line {line}, column {column}: ")
    assert "\n" not in sentence
    return sentence


def labeled(cpus: int) -> Topology:
    """CPUs in CCXs of four."""
    return Topology(Machine(name="made up"), tuple(Cpu(i, socket=0, ccx=i // 4, core=i) for i in range(cpus)))


def read_text(tmp_path: Path, text: str) -> ToolOutput:
    path = tmp_path / "m.txt"
    path.write_text(text)
    return matrix_file.read_output(path)


OUTPUTS = Path(__file__).parents[1] / "unit/readers/outputs"


def values(figures: ValueTable) -> dict[tuple[str, ...], float]:
    """By metric, and its parts, the values of the runs' last."""
    keys = figures.frame[["metric", *figures.parts]].astype(str).itertuples(index=False, name=None)
    return dict(zip(keys, figures.frame["value"].tolist(), strict=True))


def of_text(tmp_path: Path, text: str, name: str = "cn001.log") -> ValueTable:
    """The figures of a file that is stated to be one node's."""
    (tmp_path / name).write_text(text)
    return tool_logs.read_logs(tmp_path / name, pattern="{node}.*")


def stream(triad: float, threads: int = 2) -> str:
    text = (OUTPUTS / "stream.txt").read_text().replace("3033.0", f"{triad:.1f}")
    return text if threads > 1 else "".join(line for line in text.splitlines(True) if "Threads" not in line)

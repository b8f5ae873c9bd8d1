"""What likwid's groups counted is read from what likwid-perfctr prints, or why nothing could be."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nodeprint.machine import counters
from nodeprint.machine.counters import Counters
from nodeprint.machine.tree import open_tree
from nodeprint.report import readings

#: As likwid 5.2 prints a group of two sockets with `-O` (printOutput and printcsv of its likwid.lua): uncore counters
#: are of the first CPU of a socket, rows of a table are filled up with commas, and a table of sums follows.
MEM = """\
--------------------------------------------------------------------------------
CPU name:,AMD EPYC 7742 64-Core Processor
STRUCT,Info,3,,,
CPU name:,AMD EPYC 7742 64-Core Processor,,,,
CPU type:,AMD K17 (Zen2) architecture,,,,
CPU clock:,2.2454 GHz,,,,
TABLE,Group 1 Raw,MEM,3,,
Event,Counter,HWThread 0,HWThread 1,HWThread 64,HWThread 65
ACTUAL_CPU_CLOCK,FIXC1,3300000000,3300000000,3300000000,3300000000
DRAM_CHANNEL_0,DFC0,15625000,0,15625000,0
TABLE,Group 1 Raw STAT,MEM,3,,
Event,Counter,Sum,Min,Max,Avg
DRAM_CHANNEL_0 STAT,DFC0,31250000,0,15625000,7812500
TABLE,Group 1 Metric,MEM,4,,
Metric,HWThread 0,HWThread 1,HWThread 64,HWThread 65,
Runtime (RDTSC) [s],0.5000,0.5000,0.5000,0.5000,
Clock [MHz],3350.5,-,3340.1,nan,
Memory bandwidth [MBytes/s],64000,0,60000,0,
Memory data volume{channels} [GBytes],32.0,0,30.0,0,
TABLE,Group 1 Metric STAT,MEM,4,,
Metric,Sum,Min,Max,Avg,,
Memory data volume{channels} [GBytes] STAT,62.0,0,32.0,15.5,,
"""
CELL = '{"record":"cell","scope":"socket","threads":4,"slice_bytes":5e8,"sweeps":14,"cpu":0,"core_hz":3.3e9}\n'
BANDWIDTH = '{"record":"header","placement":{"0":{"bytes":1e9},"1":{"bytes":1e9}}}\n' + CELL * 2
TOGETHER = "".join(f'{{"record":"cell","cpu":{cpu},"core_hz":{hz}}}\n' for cpu, hz in ((0, 3.3e9), (64, 3.4e9)))


def read(folder: Path, **files: str) -> Counters | None:
    below = folder / counters.FOLDER
    below.mkdir(parents=True)
    (folder / "proc").mkdir()
    (folder / "proc/cpuinfo").touch()
    for name, text in files.items():
        (below / name.replace("_", ".")).write_text(text)
    return counters.read(open_tree(folder))


def test_volume_and_clock_are_beside_what_the_kernels_recorded(tmp_path: Path) -> None:
    mem = MEM.format(channels="")
    found = read(tmp_path, CLOCK_csv=mem, CLOCK_jsonl=TOGETHER, MEM_csv=mem, MEM_jsonl=BANDWIDTH)
    assert found is not None
    expected = Counters(3345.3e6, 3.35e9, 2, 62e9, 60e9, 2e9, 0.5)
    assert found == expected, "of the cores that the kernel timed; 15 sweeps through 2 GB, twice"
    clock, memory = readings.of_counters({"counters": msgspec.to_builtins(found)})
    assert "3.345 GHz with all cores busy, where the kernel times 3.35 GHz (2 cores, -0.1%)" in clock
    assert "62 GB in 500 ms. In this time, the kernel fills 2 GB and reads 60 GB or more (1.00 times; 124" in memory


def test_groups_that_count_half_of_the_channels_are_added(tmp_path: Path) -> None:
    halves = {f"MEM{half}_csv": MEM.format(channels=f" (channels {half})") for half in (1, 2)}
    found = read(tmp_path, **halves, MEM1_jsonl=BANDWIDTH, MEM2_jsonl=BANDWIDTH)
    assert found is not None
    assert (found.counted_bytes, found.read_bytes, found.filled_bytes, found.seconds) == (124e9, 60e9, 2e9, 0.5)


def test_one_half_alone_is_no_bandwidth(tmp_path: Path) -> None:
    found = read(tmp_path, MEM1_csv=MEM.format(channels=""), MEM1_jsonl=BANDWIDTH, MEM2_err="in use\n")
    assert found is not None
    assert found.counted_bytes == 0
    assert found.not_readable["MEM"] == "in use"


def test_what_cannot_be_read_has_its_reason(tmp_path: Path) -> None:
    why = "Cannot get access to MSRs. Please check permissions to the MSRs\n"
    found = read(tmp_path / "msr", CLOCK_err=why, MEM_err="likwid has no group MEM for this processor\n")
    assert found is not None
    words = readings.of_counters({"counters": {"not_readable": found.not_readable}})
    assert words[0].endswith("CLOCK: not readable: Cannot get access to MSRs. Please check permissions to the MSRs.")
    assert words[1].endswith("group MEM: not readable: likwid has no group MEM for this processor.")
    cut = read(tmp_path / "cut", MEM_csv=MEM.format(channels=""), MEM_jsonl='{"record":"hea', MEM_err="Killed\n")
    assert cut is not None
    assert (cut.counted_bytes, cut.not_readable["MEM"]) == (0, "Killed")
    assert read(tmp_path / "older") is None
    assert readings.of_counters({}) == ()

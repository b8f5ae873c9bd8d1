"""A campaign's figures at a glance, for a terminal of 80 columns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from msgspec.structs import replace

from nodeprint.report import files, glance
from tests.support import verdicts


def test_medians_of_one_node_have_intervals_and_of_several_ranges() -> None:
    alone = glance.medians({"cn1": verdicts.node()})
    assert alone[0] == "node cn1, AMD EPYC 7713 64-Core Processor"
    assert any("same socket" in line and "112 ns  95 %: 112 to 112" in line for line in alone)
    slower = verdicts.node(classes=tuple(replace(c, median_ns=c.median_ns * 1.1) for c in verdicts.classes()))
    several = glance.medians({"cn1": verdicts.node(), "cn2": slower})
    assert several[0].startswith("medians over 2 nodes") and any("112 to 123" in line for line in several)
    assert all(len(line) <= 80 for line in (*alone, *several))


def test_mixture_is_shown_by_group() -> None:
    mixed = replace(verdicts.classes()[1], groups={"socket 0": 132.0, "socket 1": 267.0})
    lines = glance.medians({"cn1": verdicts.node(classes=(mixed,))})
    assert any("same socket, socket 1" in line and "267 ns" in line for line in lines)
    assert not any("112 ns" in line for line in lines)


def test_matrix_is_part_by_part_and_marked_as_simulated(tmp_path: Path) -> None:
    verdicts.campaign(tmp_path, "milan-2x64", nodes=1)
    text = glance.summary(tmp_path).plain
    assert text.startswith("SIMULATED: node node000") and "CCD by CCD" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_verdict_alone_has_no_matrix(tmp_path: Path) -> None:
    files.write(verdicts.verdict({"cn1": verdicts.node()}), tmp_path)
    assert "by" not in glance.summary(tmp_path).plain.split("\n\n")[-1].split()


def test_drawing_is_not_imported_where_there_is_no_matrix(tmp_path: Path) -> None:
    verdicts.campaign(tmp_path, "milan-2x64", nodes=4)
    program = (
        "import sys, pathlib; from nodeprint.report import glance; glance.summary(pathlib.Path(sys.argv[1]));"
        " print(*{'matplotlib', 'scipy', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"

"""A campaign's figures at a glance, for a terminal of 80 columns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from msgspec.structs import replace

from nodeprint.judge.outcome import Outcome
from nodeprint.report import glance, verdict_files
from nodeprint.report.pages import common
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


def test_names_are_in_full_and_alike_only_where_they_are() -> None:
    names = [f"other group, cores with {threads} threads of several kinds each" for threads in ("one", "two")]
    classes = tuple(replace(verdicts.classes()[0], name=name) for name in names)
    lines = glance.medians({"cn1": verdicts.node(classes=classes)})
    assert all(name in " ".join(lines) for name in names)
    assert all(len(line) <= 80 for line in lines)
    assert "23.9 to 24.1 ns" in " ".join(" ".join(lines).split()), "what has no room is on a line of its own"


def test_what_has_no_short_name_has_a_line_on_a_machine_alone() -> None:
    cells = tuple(replace(verdicts.cells()[0], measurement="fence-cost", name=f"cpu {n}", median=n) for n in (3.0, 1.0))
    of_cells = verdicts.node(classes=(), cells=cells)
    (line,) = (line for line in glance.medians({"cn1": of_cells}) if "fence-cost" in line)
    assert line.index("cpu 1.0") < line.index("cpu 3.0")
    assert not any("fence-cost" in line for line in glance.medians({"cn1": of_cells, "cn2": of_cells}))
    assert "fence-cost" in str(common.further_cells(of_cells).rows), "and a row on its page"


def test_machines_of_several_kinds_have_no_common_median() -> None:
    alone = {f"cn{n}": verdicts.node(Outcome.NO_PEERS) for n in range(2)}
    assert [glance.of_nodes(alone).count(line) for line in ("node cn0, AMD EPYC 7713 64-Core Processor",)] == [1]
    assert not any("over 2 nodes" in line for line in glance.of_nodes(alone))
    assert any("over 2 nodes" in line for line in glance.of_nodes({"cn0": verdicts.node(), "cn1": verdicts.node()}))


def test_matrix_is_part_by_part_and_marked_as_simulated(tmp_path: Path) -> None:
    verdicts.campaign(tmp_path, "milan-2x64", nodes=1)
    text = glance.summary(tmp_path).plain
    assert text.startswith("SIMULATED: node node000") and "CCD by CCD" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_verdict_alone_has_no_matrix(tmp_path: Path) -> None:
    verdict_files.write(verdicts.verdict({"cn1": verdicts.node()}), tmp_path)
    assert "by" not in glance.summary(tmp_path).plain.split("\n\n")[-1].split()


def test_drawing_is_not_imported_where_there_is_no_matrix(tmp_path: Path) -> None:
    verdicts.campaign(tmp_path, "milan-2x64", nodes=4)
    program = (
        "import sys, pathlib; from nodeprint.report import glance; glance.summary(pathlib.Path(sys.argv[1]));"
        " print(*{'matplotlib', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"

"""A campaign in brief: what `show` prints of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from msgspec.structs import replace

from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge.outcome import Outcome, ReasonDetail
from nodeprint.report import text, verdict_files
from nodeprint.report.pages import brief, cluster, medians, pictures, tables
from nodeprint.report.pages.blocks import Bullets, Text
from nodeprint.report.pages.judged_campaign import Campaign
from tests.support import printed, verdicts


def test_medians_are_those_of_paper() -> None:
    """A terminal had a table of its own, with other rows and words."""
    alone = printed.medians({"cn1": verdicts.node(Outcome.NO_PEERS)}, 80)
    assert alone[0] == "node cn1, AMD EPYC 7713 64-Core Processor"
    assert any(re.search(r"same socket +\S+ +112 ns +112 to 112 ns", line) for line in alone)
    slower = verdicts.node(classes=tuple(replace(c, median_ns=c.median_ns * 1.1) for c in verdicts.classes()))
    nodes = {"cn1": verdicts.node(), "cn2": slower}
    several = printed.medians(nodes)
    assert several[0] == "medians over 2 nodes"
    assert any(re.search(r"same socket +2 +118 ns +112 ns +cn1 +123 ns +cn2", line) for line in several)
    of_paper = {cell for row in medians.on_paper(nodes).rows for cell in row if isinstance(cell, str)}
    assert all(cell in "\n".join(several) for cell in of_paper)
    narrow = printed.medians(nodes, 50)
    assert any(re.search(r"same socket +118 ns +112 ns +123 ns$", line) for line in narrow)
    assert all(len(line) <= 50 for line in narrow)


def test_two_runs_that_disagree_have_no_median() -> None:
    apart = {"runs": 2, "left_out": 2}
    hop = replace(verdicts.classes()[1], median_ns=58.4, ci_low_ns=36.9, ci_high_ns=79.9, **apart)
    memory = replace(verdicts.cells()[0], median=100.0, ci_low=80.0, ci_high=120.0, **apart)
    both = verdicts.node(classes=(hop,), cells=(memory,))
    agreeing = verdicts.node(classes=(verdicts.classes()[1],), cells=())
    shown = " ".join(printed.medians({"cn1": both}))
    assert {"36.9 to 79.9 ns", "80 to 120 ns"} <= set(re.split("  +", shown))
    of_tables = [tables.class_table((hop,)), tables.cell_table((memory,)), medians.table({"cn1": both, "cn2": both})]
    below = pictures.medians((hop, replace(hop, groups={"socket 0": 58.4})), hop.measurement)
    assert below == ("same socket: 36.9 to 79.9 ns",) * 2
    for words in (shown, " ".join(printed.medians({"cn1": both, "cn2": both})), *map(str, of_tables)):
        assert not re.search(r"\b(58.4|100) ns", words)
    fleet = {"cn1": both, "cn2": agreeing, "cn3": agreeing}
    table = medians.table(fleet)
    assert [cells[table.header.index("of")] for cells in table.rows] == ["same socket (runs disagree on cn1)"]


def test_mixture_is_shown_by_group() -> None:
    mixed = replace(verdicts.classes()[1], groups={"socket 0": 132.0, "socket 1": 267.0})
    lines = printed.medians({"cn1": verdicts.node(classes=(mixed,))})
    assert any("socket 1" in line and "267 ns" in line for line in lines)
    assert not any("112 ns" in line for line in lines)


def test_names_are_in_full_and_alike_only_where_they_are() -> None:
    names = [f"other group, cores with {threads} threads of several kinds each" for threads in ("one", "two")]
    classes = tuple(replace(verdicts.classes()[0], name=name) for name in names)
    lines = printed.medians({"cn1": verdicts.node(classes=classes)}, 80)
    assert set(" ".join(names).split()) <= set(" ".join(lines).split())
    assert all(len(line) <= 80 for line in lines)
    assert "23.9 to 24.1 ns" in " ".join(" ".join(lines).split())


def test_other_measurements_are_in_a_row_for_a_single_machine() -> None:
    cells = tuple(replace(verdicts.cells()[0], measurement="wake-futex", name=f"cpu {n}", median=n) for n in (3.0, 1.0))
    of_cells = verdicts.node(classes=(), cells=cells)
    (line,) = (line for line in printed.medians({"cn1": of_cells}) if "wake-up time" in line)
    assert re.search(r"wake-up time +1 ns +cpu 1.0 +3 ns +cpu 3.0", line)
    assert not any("wake-up time" in line for line in printed.medians({"cn1": of_cells, "cn2": of_cells}))


def test_machines_of_several_kinds_have_no_common_median() -> None:
    """Four machines without peers had medians over all of them."""
    for count in (2, 4, 40):
        lines = printed.medians({f"cn{n}": verdicts.node(Outcome.NO_PEERS) for n in range(count)})
        assert lines.count("node cn0, AMD EPYC 7713 64-Core Processor") == (count < 40)
        assert not any("over" in line for line in lines)
    simulated = verdicts.verdict({"cn0": verdicts.node(), "cn1": verdicts.node()}, simulated=True)
    (first, *_) = brief.medians_of(simulated)
    assert first.blocks[0] == Text("SIMULATED: medians over 2 nodes")


def test_matrix_is_part_by_part_and_marked_as_simulated(tmp_path: Path) -> None:
    verdicts.campaign(tmp_path, "milan-2x64", nodes=1)
    shown = printed.campaign(tmp_path, 80)
    assert shown.startswith("SIMULATED: node node000") and "CCD by CCD" in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if "/" not in line)


def test_verdict_alone_has_no_matrix(tmp_path: Path) -> None:
    verdict_files.write(verdicts.verdict({"cn1": verdicts.node()}), tmp_path)
    assert " by " not in printed.campaign(tmp_path)


def test_drawing_is_not_imported_where_there_is_no_matrix(tmp_path: Path) -> None:
    verdicts.campaign(tmp_path, "milan-2x64", nodes=4)
    program = (
        "import sys, pathlib; from nodeprint.report.pages import brief; brief.campaign(pathlib.Path(sys.argv[1]));"
        " print(*{'matplotlib', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_summary_begins_with_the_outcome_and_ends_with_the_report(tmp_path: Path) -> None:
    verdict_files.write(verdicts.verdict(), tmp_path)
    first, *_, last = printed.campaign(tmp_path).split("\n\n")[-1].splitlines()
    assert first.startswith("FAIL (DEVIATIONS): 7 of 8 nodes match") and not brief.is_complete(tmp_path)
    assert last == f"no report yet: run `nodeprint report {tmp_path}`"
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "cluster.pdf").touch()
    assert brief.is_complete(tmp_path)


def test_large_fleets_list_what_needs_action(tmp_path: Path) -> None:
    nodes = {f"cn{n:03}": verdicts.node() for n in range(60)}
    nodes["cn070"] = verdicts.node(Outcome.INVALID, ReasonDetail.DISTURBED, disturbances=(verdicts.disturbed(),))
    verdict_files.write(verdicts.verdict(nodes), tmp_path)
    summary = printed.campaign(tmp_path)
    assert "cn070: UNDETERMINED (INVALID)" in summary and "cn[000-059]: PASS (SAME)" not in summary
    assert "60 nodes that need no action" in summary
    assert "`make run NODES=cn070` measures cn070 again" in summary
    # what the campaign was measured with: its preset, and its own name
    (tmp_path / "config.yaml").write_text("campaign: rack\nresults: res\npreset: quick\n")
    summary = printed.campaign(tmp_path)
    assert "`make run CONFIG=res/rack/config.yaml NODES=cn070` measures cn070 again" in summary


def test_disturbed_data_that_count_are_said_second(tmp_path: Path) -> None:
    busy = verdicts.disturbed(invalid=False, kind="loud-cpus", share=0.87)
    verdict_files.write(
        verdicts.verdict({"cn1": verdicts.node(disturbances=(busy,)), "cn2": verdicts.node()}), tmp_path
    )
    second = printed.campaign(tmp_path).split("\n\n")[-1].splitlines()[1]
    assert second.startswith("  CPUs with background load on cn1: the system took up to 87.0% of the time of CPUs 3-4")
    of_one = text.disturbance(verdicts.disturbed(invalid=False, kind="loud-cpus", share=0.87, cpus=(0,)))
    assert of_one == "the system took up to 87.0% of the time of CPU 0 in job1/run1"


def test_problems_of_one_record_are_not_counted_as_records() -> None:
    problems = [verdicts.disturbed(invalid=False, kind="record", detail=f"run1, line {n}: damaged") for n in (1, 2, 3)]
    (line,) = text.disturbed(verdicts.verdict({"cn1": verdicts.node(disturbances=tuple(problems))}))
    assert line.endswith("on cn1: run1, line 1: damaged; 2 other problems.")


def test_what_was_not_measured_is_said_with_its_reason(tmp_path: Path) -> None:
    """As often as the campaign is shown, once for nodes that lack the same."""
    why = "no MPI here: mpirun is not installed; install Open MPI"
    nodes = {f"cn{n}": verdicts.node(untaken={"linktest-node": why}) for n in (1, 2)}
    likwid = {"id": "likwid", "text": "likwid-pin is not installed: the kernels pinned themselves", "advice": "get it"}
    nodes["cn3"] = verdicts.node(untaken={"fault-huge": "memory in fragments; use --pages base"}, warnings=(likwid,))
    verdict_files.write(verdicts.verdict(nodes), tmp_path)
    lines = printed.campaign(tmp_path).splitlines()
    where = "In the configuration that is `arguments: {fault-huge: --pages base}`."
    alike = lines.index(f"  note: Not measured on cn[1-2]: time of a message by MPI ({why}).")
    missing = "memory without huge pages (memory in fragments; use --pages base)"
    assert lines[alike + 1] == f"  note: Not measured on cn3: {missing}. {where}"
    assert lines[alike + 2] == "  cn3: likwid-pin is not installed: the kernels pinned themselves; get it."
    assert lines[-1].startswith("no report yet")


def test_what_the_preset_leaves_out_is_named_at_the_end(tmp_path: Path) -> None:
    verdict_files.write(verdicts.verdict({"cn1": verdicts.node()}), tmp_path)
    (tmp_path / "config.yaml").write_text("measure: [coherence-cas, chase-curve, bandwidth-cpus]\npreset: quick\n")
    shown = printed.campaign(tmp_path)
    assert "Not in this preset: chase-curve, bandwidth-cpus; a longer one measures them" in shown
    (tmp_path / "config.yaml").write_text("measure: [coherence-cas]\npreset: quick\n")
    assert "Not in this preset" not in printed.campaign(tmp_path)


def test_settings_that_differ_are_on_page_1_as_on_the_terminal() -> None:
    """A node with another BIOS was SAME, and page 1 said nothing of it."""
    other = ({"id": "fingerprint-bios"}, {"id": "fingerprint-microcode"})
    nodes = {"cn1": verdicts.node(), "cn2": verdicts.node(warnings=other), "cn3": verdicts.node(warnings=other)}
    nodes["cn4"] = verdicts.node(warnings=other[:1])
    verdict = verdicts.verdict(nodes)
    campaign = Campaign(verdict, PackedFleet("c", simulated=False, nodes=(), quantities=()))
    first = cluster.page(campaign, {}).sections[0]
    sentences = [item for block in first.blocks if isinstance(block, Bullets) for item in block.items]
    (bios, microcode) = brief.drift(Path(verdict.campaign), verdict)
    assert {bios, microcode} <= set(sentences) & set(brief.remarks(Path(verdict.campaign), verdict))
    assert bios.startswith("cn[2-4] differ from the other nodes in BIOS;") and "cn[2-3] differ" in microcode


def test_control_nodes_of_a_recheck_are_named_as_such() -> None:
    """The list of a recheck has healthy nodes, too, and a reader took them for suspects."""
    nodes = {"cn1": verdicts.node(Outcome.SUSPECT), "cn2": verdicts.node(), "cn3": verdicts.node()}
    (sentence,) = brief.recheck(verdicts.verdict(nodes, recheck=("cn1", "cn2", "cn3")))
    assert "outcome of cn1;" in sentence and sentence.endswith("with them: cn[2-3]")
    assert brief.recheck(verdicts.verdict(nodes)) == []

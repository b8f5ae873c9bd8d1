"""What a terminal shows of a campaign."""

from __future__ import annotations

from pathlib import Path

from nodeprint.judge.outcome import Outcome, ReasonDetail
from nodeprint.report import terminal, text, verdict_files
from tests.support import verdicts


def test_summary_begins_with_the_outcome_and_ends_with_the_report(tmp_path: Path) -> None:
    verdict_files.write(verdicts.verdict(), tmp_path)
    summary, printed = terminal.summary(tmp_path)
    first, *_, last = summary.splitlines()
    assert first.startswith("FAIL (DEVIATIONS): 7 of 8 nodes match") and not printed
    assert last == f"no report yet: run `nodeprint report {tmp_path}`"
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "cluster.pdf").touch()
    assert terminal.summary(tmp_path)[1]


def test_large_fleets_list_what_needs_action(tmp_path: Path) -> None:
    nodes = {f"cn{n:03}": verdicts.node() for n in range(60)}
    nodes["cn070"] = verdicts.node(Outcome.INVALID, ReasonDetail.DISTURBED, disturbances=(verdicts.disturbed(),))
    verdict_files.write(verdicts.verdict(nodes), tmp_path)
    summary, _ = terminal.summary(tmp_path)
    assert "cn070: UNDETERMINED (INVALID)" in summary and "cn[000-059]: PASS (SAME)" not in summary
    assert "60 nodes that need no action" in summary
    assert "`make run NODES=cn070` measures cn070 again" in summary
    # what the campaign was measured with: its preset, and its own name
    (tmp_path / "config.yaml").write_text("campaign: rack\nresults: res\npreset: quick\n")
    summary, _ = terminal.summary(tmp_path)
    assert "`make run CONFIG=res/rack/config.yaml NODES=cn070` measures cn070 again" in summary


def test_disturbed_data_that_count_are_said_second(tmp_path: Path) -> None:
    busy = verdicts.disturbed(invalid=False, kind="loud-cpus", share=0.87)
    verdict_files.write(
        verdicts.verdict({"cn1": verdicts.node(disturbances=(busy,)), "cn2": verdicts.node()}), tmp_path
    )
    second = terminal.summary(tmp_path)[0].splitlines()[1]
    assert second.startswith("  CPUs with other load on cn1: the system took up to 87.0 % of the time of CPUs 3-4")
    of_one = text.disturbance(verdicts.disturbed(invalid=False, kind="loud-cpus", share=0.87, cpus=(0,)))
    assert of_one == "the system took up to 87.0 % of the time of CPU 0 in job1/run1"


def test_paths_are_never_broken() -> None:
    path = "report: /a/very/long/path/that/is/longer/than/the/terminal/cluster.pdf"
    assert terminal.wrapped(path, 30) == path
    assert terminal.wrapped("it is slower by 12.0 % and more", 21).splitlines()[1] == "    12.0 % and more"


def test_a_broken_row_of_a_table_goes_on_below_its_text() -> None:
    """A sentence that is broken is indented, and a name that leaves no room has none of it below."""
    rows = f"    cn[001-004]  {'word ' * 7}\n  cn005: {'word ' * 7}\n    {'n' * 30}  {'word ' * 7}"
    first, second, *others = terminal.wrapped(rows, 40).split("\n")
    assert first.index("word") == second.index("word") == 17
    indents = [len(line) - len(line.lstrip()) for line in others]
    assert set(indents) == {2, 4} and all(len(line) <= 40 for line in others)


def test_what_was_not_measured_is_said_with_its_reason(tmp_path: Path) -> None:
    """As often as the campaign is shown, once for nodes that lack the same."""
    why = "no MPI here: mpirun is not installed; install Open MPI"
    nodes = {f"cn{n}": verdicts.node(untaken={"linktest-node": why}) for n in (1, 2)}
    likwid = {"id": "likwid", "text": "likwid-pin is not installed: the kernels pinned themselves", "advice": "get it"}
    nodes["cn3"] = verdicts.node(untaken={"fault-huge": "memory in fragments; use --pages base"}, warnings=(likwid,))
    verdict_files.write(verdicts.verdict(nodes), tmp_path)
    lines = terminal.summary(tmp_path)[0].splitlines()
    where = "In the configuration that is `arguments: {fault-huge: --pages base}`."
    alike = lines.index(f"  note: Not measured on cn[1-2]: linktest-node ({why}).")
    assert (
        lines[alike + 1] == f"  note: Not measured on cn3: fault-huge (memory in fragments; use --pages base). {where}"
    )
    assert lines[alike + 2] == "  cn3: likwid-pin is not installed: the kernels pinned themselves; get it."
    assert lines[-1].startswith("no report yet")


def test_outcomes_are_in_color_and_the_longest_word_wins() -> None:
    """Of spans that overlap the last one counts. A class that is a node's or the messages' has its own color."""
    words = "FAIL (SPLIT): cn1: WARN (SUSPECT). cn2: PASS (SAME). NON-UNIFORM; FAIL (messages between nodes)"
    out = terminal.coloured(words)
    of_words = {out.plain[span.start : span.end]: str(span.style) for span in out.spans}
    assert of_words["WARN (SUSPECT)"] == "bold yellow" and of_words["PASS (SAME)"] == "bold green"
    assert of_words["FAIL (SPLIT)"] == of_words["FAIL (messages between nodes)"] == "bold red"
    assert of_words["NON-UNIFORM"] == "bold yellow"
    assert list(of_words).index("UNIFORM") < list(of_words).index("NON-UNIFORM")


def test_what_the_preset_leaves_out_is_named_at_the_end(tmp_path: Path) -> None:
    verdict_files.write(verdicts.verdict({"cn1": verdicts.node()}), tmp_path)
    (tmp_path / "config.yaml").write_text("measure: [coherence-cas, chase-curve, bandwidth-cpus]\npreset: quick\n")
    shown = terminal.summary(tmp_path)[0]
    assert "Not in this preset: chase-curve, bandwidth-cpus; a longer one measures them" in shown
    (tmp_path / "config.yaml").write_text("measure: [coherence-cas]\npreset: quick\n")
    assert "Not in this preset" not in terminal.summary(tmp_path)[0]

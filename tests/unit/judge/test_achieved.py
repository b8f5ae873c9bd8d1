"""What nodes reach of the theoretical peak, which no comparison of them shows."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nodeprint.campaign import node_sheet
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import limits
from nodeprint.judge.acceptance_file import Acceptance, ContractLimit
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Accepted, FleetOutcome
from nodeprint.judge.verdict import Verdict
from nodeprint.machine.node_configuration import read_fingerprint
from nodeprint.machine.topology.presets import preset
from nodeprint.machine.tree import open_tree
from nodeprint.report import protocol, text, verdict_files
from nodeprint.report.pages.blocks import SiteTexts
from nodeprint.simulate.survey import survey as simulated_survey
from tests.support import printed
from tests.support.command_line import call
from tests.support.fleets import made

ROW = "machine, load, huge"


def packed_fleet(change: str = "") -> PackedFleet:
    """A simulated fleet of four nodes with two EPYC 7742, all of which have this change."""
    defects = tuple(f"node{i:03d}: fingerprint {change}" for i in range(4)) if change else ()
    return made(*defects, nodes=4, cells=True, machine="rome-2x64")


def fleet(change: str = "") -> Verdict:
    """The same, judged by their surveys."""
    arrays = packed_fleet(change)
    topology = preset("rome-2x64")
    nodes = []
    for node in arrays.nodes:
        survey = simulated_survey(topology, node.name, {key: str(value) for key, value in node.fingerprint.items()})
        with tempfile.NamedTemporaryFile(suffix=".tar.gz") as file:
            file.write(survey)
            file.flush()
            nodes.append(replace(node, fingerprint=dict(read_fingerprint(open_tree(Path(file.name))))))
    return judge(replace(arrays, nodes=tuple(nodes))).verdict


@pytest.fixture(scope="module")
def slow() -> Verdict:
    return fleet("memory_mts=2133")


def test_a_fleet_that_shares_a_low_clock_is_not_only_uniform(slow: Verdict) -> None:
    assert slow.fleet.outcome is FleetOutcome.UNIFORM
    (achieved,) = slow.fleet.memory
    assert len(achieved.nodes) == 4 and achieved.of_most / achieved.of_configured == pytest.approx(2133 / 3200)
    row = next(row for row in slow.nodes["node001"].cells if row.name == ROW)
    assert row.peak == pytest.approx(16 * 3200e6 * 8) and 0.4 < row.achieved < 0.6
    of_row = text.peak(slow.nodes["node001"])[0]
    assert "16 x DDR4-3200" in of_row and "configured as 16 x DDR4-2133" in of_row
    assert any("16 x DDR4-2133" in note and "16 x DDR4-3200" in note for note in text.fleet_notes(slow))


def test_every_door_says_with_the_outcome_what_all_nodes_lack(
    slow: Verdict, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (warning,) = text.memory_warnings(slow.fleet)
    share = f"{100 * slow.fleet.memory[0].of_most:.0f}%"
    of_peak = f"{share} of the theoretical peak (best stream of the machine, median of the nodes)"
    assert warning == f"All nodes reach {of_peak}; their memory runs at 2,133 of 3,200 MT/s."
    assert text.first_line(slow).startswith(f"SIMULATED: PASS (UNIFORM): {warning} ")
    assert printed.summary(slow).startswith(f"SIMULATED: PASS (UNIFORM): {warning} ")
    assert f'<property name="warning" value="{warning}"' in verdict_files.junit(slow)
    shown = [
        line
        for line in verdict_files.prometheus(slow).splitlines()
        if line.startswith("nodeprint_memory_achieved_ratio{")
    ]
    assert len(shown) == 4 and 'node="node001"' in shown[1]
    assert text.headline(slow)[0] == warning
    assert protocol.decision([Accepted.ACCEPTED] * 4, [slow]) == "accepted with reservations"
    described = protocol.content([protocol.JudgedCampaign(tmp_path, slow, "", "", {})], "", SiteTexts())
    assert described.pages[0].lead[-1] == warning
    # the status of the campaign, which reads the same verdict
    nodes = [node_sheet.Node(name, name, state="simulated") for name in slow.nodes]
    node_sheet.write_sheet(tmp_path / "nodes.tsv", nodes)
    for name in slow.nodes:
        (tmp_path / "nodes" / name / "job1").mkdir(parents=True)
    assert call("status", tmp_path) == 0 and warning not in capsys.readouterr().out
    verdict_files.write(slow, tmp_path)
    assert call("status", tmp_path) == call("status", tmp_path, "--json") == 0
    text_, json_ = capsys.readouterr().out.split("{", 1)
    assert text_.splitlines()[-1] == warning and json.loads("{" + json_)["warnings"] == [warning]
    assert verdict_files.read_fleet(tmp_path) == verdict_files.read(tmp_path).fleet
    (tmp_path / "verdict.json").write_text("{")
    assert call("status", tmp_path) == 0
    assert "verdict.json: not readable as JSON" in capsys.readouterr().out


def test_a_fleet_that_shares_a_missing_channel_is_not_only_uniform() -> None:
    verdict = fleet("memory_channels_empty=1")
    assert verdict.fleet.outcome is FleetOutcome.UNIFORM
    assert "14 of 16 memory channels have modules." in text.first_line(verdict)
    assert any("14 x DDR4-3200" in note for note in text.fleet_notes(verdict))


def test_memory_as_good_as_it_can_be_is_not_mentioned() -> None:
    assert not fleet().fleet.memory


def test_a_contract_may_ask_for_a_share_of_what_is_peak(slow: Verdict) -> None:
    rows = slow.nodes["node000"].cells
    achieved = 100 * next(row.achieved for row in rows if row.name == ROW)
    for percent, outside in ((achieved - 1, 0), (achieved + 1, 1)):
        limit = ContractLimit(
            measurement="bandwidth-machine", row=ROW, at_least_percent=percent, reason="contract, 4.2"
        )
        assert len(list(limits.outside((), rows, Acceptance(limits=(limit,)), "job1"))) == outside
    unknown = [msgspec.structs.replace(row, peak=0.0) for row in rows]
    assert ("bandwidth-machine", ROW) not in limits.applied((), [unknown], share=True), "said as a limit not applied"


def test_operations_are_compared_with_what_the_vectors_can_at_the_clock_of_the_ladder(slow: Verdict) -> None:
    cells = {(row.measurement, row.name): row for row in slow.nodes["node000"].cells}
    clock = cells["load-ladder", "socket, 1, vector"].median
    assert cells["load-alone", "all"].peak == pytest.approx(16 * clock)
    assert msgspec.to_builtins(cells["load-alone", "all"])["peak"] > 0

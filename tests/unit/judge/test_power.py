"""Detection limits of simulated fleets: fewer nodes or runs find less."""

from __future__ import annotations

from nodeprint.judge import power
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Spread


def test_more_nodes_and_more_runs_find_smaller_differences() -> None:
    few, more_runs, more_nodes = power.power(preset("graviton3-64"), Spread(), nodes=(4, 10), runs=(2, 6), seeds=1)[:3]
    assert [(of.nodes, of.runs) for of in (few, more_runs, more_nodes)] == [(4, 2), (4, 6), (10, 2)]
    for family, effect in few.smallest_effect.items():
        assert more_runs.smallest_effect[family] < effect and more_nodes.smallest_effect[family] < effect
    title, head, *rows = power.as_text([few, more_runs]).splitlines()
    assert title.startswith("SIMULATED") and head.split() == ["nodes", "runs", *few.smallest_effect]
    assert [row.split()[:2] for row in rows] == [["4", "2"], ["4", "6"]]
    assert len({len(line) for line in (head, *rows)}) == 1
    assert rows[0].split()[2] == f"{next(iter(few.smallest_effect.values())):.1%}"

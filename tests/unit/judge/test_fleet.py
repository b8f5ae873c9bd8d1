"""Which nodes are measured again beside another, of any number of nodes as by a look at all of them."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nodeprint.judge.fleet import _Companions
from nodeprint.judge.judge import judge
from nodeprint.report import text
from tests.support.fleets import judged, made


@pytest.mark.parametrize("seed", range(30))
def test_companions_are_the_nearest_calm_nodes_of_the_rack_and_then_of_all(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.choice([1, 2, 3, 5, 12, 40])
    names = [f"node{i:03d}" for i in range(count)]
    racks = [chance.choice(["", "a", "b"][: chance.randint(1, 3)]) for _ in names]
    nodes = {name: SimpleNamespace(rack=rack) for name, rack in zip(names, racks, strict=True)}
    calm = [chance.random() < 0.6 for _ in names]
    compared = {i: 0 for i in range(count) if chance.random() < 0.8}
    configuration = [i for i in range(count) if chance.random() < 0.9]
    companions = _Companions(np.array(configuration, dtype=np.int64), names, nodes, calm, compared)  # type: ignore[arg-type]
    for i in range(count):
        free = [j for j in configuration if calm[j] and j in compared]
        expected = sorted(free, key=lambda j: (racks[j] != racks[i], abs(j - i), names[j]))[:2]
        assert companions.of(i, racks[i]) == expected


def test_what_one_job_cannot_show_is_named_and_no_more_where_jobs_show_it() -> None:
    once, twice = (judged(jobs=jobs, cells=True).verdict for jobs in (1, 2))
    assert once.fleet.assumed_jobs["core-to-core"] == pytest.approx(0.001)
    assert once.fleet.assumed_jobs["bandwidth"] == pytest.approx(0.005, rel=0.01)
    assert not twice.fleet.assumed_jobs
    assert any("assumed" in line and "0.1 % (core to core)" in line for line in text.rests_on(once))


@pytest.mark.parametrize("simulated", [True, False])
def test_a_verdict_says_whether_its_fleet_was_simulated(simulated: bool) -> None:
    assert judge(replace(made(nodes=3), simulated=simulated)).verdict.simulated is simulated

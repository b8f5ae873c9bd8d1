"""Figures of nodes: no median is shown that few pairs are near. Published matrices where NODEPRINT_DATA names them."""

from pathlib import Path

import numpy as np
import pytest

from nodeprint import importers
from nodeprint.judge.campaign import judge
from nodeprint.judge.figures import Floats, few_near
from nodeprint.judge.verdict import ClassFigure
from nodeprint.machine.topology.model import Topology
from nodeprint.machine.topology.presets import from_part
from nodeprint.report.pages.common import class_table
from tests.support import published

#: Published matrices whose CPUs the labels of a part fit.
LABELLED = {"Dual AMD EPYC 7742 64-Core Processor": ("EPYC 7742", 2), "AMD EPYC 7773X": ("EPYC 7773X", 1)}


def classes_of(path: Path, campaign: Path, machine: Topology | None = None) -> tuple[ClassFigure, ...]:
    """The classes of pairs of an imported matrix."""
    importers.write_campaign([importers.read(path)], campaign, machine)
    (node,) = judge(campaign).verdict.nodes.values()
    return node.classes


def near(latency_ns: Floats, median: float) -> float:
    """The share of all pairs that are within 10 % of a median."""
    pairs = latency_ns[np.triu_indices(len(latency_ns), 1)]
    return float(np.mean(np.abs(pairs[np.isfinite(pairs)] / median - 1) <= 0.1))


@pytest.mark.parametrize("name", [*published.CHOSEN_ON, *published.HELD_OUT])
def test_a_published_median_has_pairs_near_it(data: Path, tmp_path: Path, name: str) -> None:
    folder = data / "c2c" / "core-to-core-latency"
    pairs = published.machine(folder, name).matrix
    (figure,) = classes_of(folder / f"{name}.csv", tmp_path / "campaign")
    if not figure.groups:
        assert near(pairs, figure.median_ns) >= 1 / 3
    else:
        assert near(pairs, figure.median_ns) < 1 / 3
        siblings = 1 / (2 * len(pairs))  # half of the fewest pairs that a level has, those of two threads of a core
        assert all(near(pairs, median) >= siblings for median in figure.groups.values())
        (row,) = class_table((figure,)).rows
        assert all(group in str(row[3]) for group in figure.groups)
        assert f"{figure.median_ns:.3g} ns" not in str(row[3])


@pytest.mark.parametrize("name", LABELLED)
def test_a_published_class_has_pairs_near_its_median(data: Path, tmp_path: Path, name: str) -> None:
    folder = data / "c2c" / "core-to-core-latency"
    pairs = published.machine(folder, name).matrix
    figures = classes_of(folder / f"{name}.csv", tmp_path / "campaign", from_part(*LABELLED[name], True))
    assert len(figures) > 3
    total = len(pairs) * (len(pairs) - 1) / 2
    for figure in figures:
        for median in figure.groups.values() or [figure.median_ns]:
            assert near(pairs, median) >= 0.2 * figure.pairs / total, f"{figure.name}: {median:.0f} ns"


def test_few_are_near_the_median_of_two_kinds() -> None:
    assert few_near(np.array([80.0, 120.0]), 100.0)
    assert few_near(np.array([50.0, 50.0, np.nan, 90.0, 200.0, 200.0]), 90.0)
    assert not few_near(np.array([99.0, 100.0, 200.0]), 100.0)
    assert not few_near(np.array([np.nan]), np.nan)

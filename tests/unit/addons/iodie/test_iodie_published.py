"""The map of the I/O die against what was published of real parts: matrices, where NODEPRINT_DATA names them, and the
latencies of two papers. No published matrix has the value of each line, so that quadrants come from the order of CCDs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from nodeprint.machine.topology.model import Topology
from nodeprint.machine.topology.presets import from_part
from nodeprint.readers import matrix_file
from nodeprint.simulate.lines import STEP_NS
from nodeprint_addons.iodie import analysis, data, geometry, line_clusters, paths
from nodeprint_addons.iodie.geometry import Geometry, WayCosts
from nodeprint_addons.iodie.sites import Sites

#: Local memory and that of the three other NUMA nodes of the socket under NPS4, ns, loads on two EPYC 7702 (Velten et
#: al., ICPE 2022, table 2, section 7.1).
MEMORY_NS = (110.0, 115.0, 124.0, 127.5)
#: Two sites of four each, whose ways from CPU to CPU are not known.
ENDS = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
UNKNOWN = WayCosts(4, ENDS, np.full(6, np.nan), np.full(6, np.nan))

MATRICES = [
    ("Dual AMD EPYC 7742 64-Core Processor", from_part("EPYC 7742", 2, smt=False), 0),
    ("Dual AMD EPYC 7742 64-Core Processor", from_part("EPYC 7742", 2, smt=False), 1),
    ("AMD EPYC 7773X", from_part("EPYC 7763", 1, smt=False), 0),
]
of_matrices = pytest.mark.parametrize("name, topology, socket", MATRICES, ids=["7742-0", "7742-1", "7773X"])


def hops(folder: Path, name: str, topology: Topology, socket: int) -> xr.Dataset:
    """A published matrix as a pass over one line at home in a socket, without siblings."""
    cores = len(topology.cpus)
    ns = matrix_file.read_output(folder / f"c2c/core-to-core-latency/{name}.csv").core_matrix().ns
    a, b = np.tril_indices(cores, -1)
    return data.pass_over_lines(
        "run1", 0, socket, a, b, np.zeros(1, dtype=int), ns[a, b][:, None], np.full((len(a), 2), np.nan)
    )


def between_quadrants(one: xr.Dataset, topology: Topology, order: np.ndarray) -> tuple[paths.Fit, WayCosts]:
    """What the ways between quadrants cost, the CCDs of the socket being dealt to them in some order."""
    ((tensor,), _) = data.tensors([one], topology)
    quadrant = np.unique(tensor["label"].to_numpy()[tensor["here"].to_numpy()], return_inverse=True)[1][order]
    sites = Sites(quadrant, np.zeros(1, dtype=np.int64))
    fit = paths.fit(tensor, line_clusters.of_hops(tensor), sites)
    assert not fit.identified[list(fit.positions("line").values())].any()  # one line says nothing of ways to lines
    return fit, geometry.to_cpus(fit, sites)


@of_matrices
def test_ways_between_quadrants_of_a_published_matrix(data: Path, name: str, topology: Topology, socket: int) -> None:
    """On real Rome and Milan the two quadrants of a half are near each other and a way along the die costs more; both
    CCDs of a quadrant are equally far from the one line, and quadrants are not."""
    fit, ways = between_quadrants(hops(data, name, topology, socket), topology, np.arange(8))
    across, along, both = (ways.ns[list(of)].mean() for of in ((0, 5), (1, 4), (2, 3)))
    assert -1 < across < 9 and 2.5 * across < along < 22 and along < both + 1
    ends = fit.value[:8].reshape(4, 2)
    assert np.abs(np.diff(ends)).max() < 3.5 and np.ptp(ends.mean(axis=1)) > 3


def test_a_published_rome_is_a_mesh(data: Path) -> None:
    """The socket of two 7742 whose distances are within 1 ns: a mesh of 2 x 2, and none of CCDs in another order."""
    one = hops(data, *MATRICES[1])
    found = geometry.find(between_quadrants(one, MATRICES[1][1], np.arange(8))[1], UNKNOWN)
    assert isinstance(found, Geometry) and (found.kind, found.sites) == ("mesh", 4)
    assert found.hop_ns == pytest.approx([5.6, 16.7], abs=0.1)
    wrong = between_quadrants(one, MATRICES[1][1], np.array([0, 2, 4, 6, 1, 3, 5, 7]))[1]
    assert isinstance(geometry.find(wrong, UNKNOWN), str)


@of_matrices
def test_one_line_makes_no_map(data: Path, name: str, topology: Topology, socket: int) -> None:
    one = hops(data, name, topology, socket)
    (die,) = analysis.analyze(analysis.NodeDies("node", "coherence-cas", topology, (), False), [one], ()).dies
    assert die.sites is None and die.no_map == "all lines are alike"


def test_published_latencies_of_memory_are_a_mesh_with_a_long_and_a_short_side() -> None:
    """The three distances of Velten et al., the other quadrants taken to see the same: the steps add up to the third
    within 2 ns. The simulator's step is between both."""
    across, along, both = (ns - MEMORY_NS[0] for ns in MEMORY_NS[1:])
    ns = np.array([across, along, both, both, along, across])
    found = geometry.find(WayCosts(4, ENDS, ns, np.full(6, 0.5)), UNKNOWN)
    assert isinstance(found, Geometry) and (found.kind, found.sites) == ("mesh", 4)
    assert sorted(found.hop_ns) == pytest.approx([across, along], abs=1)
    assert across < STEP_NS < along

"""How long is a very large fleet judged from the store? Simulated rome-2x64 with every measurement, two runs a job.

    python -m bench.scale                          10,000 nodes, one job
    python -m bench.scale --nodes 1000 --jobs 2

A few dozen nodes are simulated; every other one has the values of one of them, all moved by a factor of its own. Only
the store is written, as `store/fleet/` of a campaign without records, so that nothing but the judge is measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench import table
from bench.fleet import nodeprint
from bench.table import Row, row
from nodeprint import files
from nodeprint.campaign.derived import values_file
from nodeprint.data.places.measured import Floats, Measured
from nodeprint.data.store import packed
from nodeprint.data.store.packed import PackedFleet
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan
from nodeprint.simulate import fleet as simulated

#: Nodes that are simulated.
DRAWN = 40
#: The defects of some of them, of which each has a share of 1/DRAWN.
DEFECTS = ("node003: core 37 +6.9ns", "node011: link q0-q2 +6%", "node019: memory-channel node 1 -12%")
#: The standard deviation of a node's factor.
_OF_NODE = 0.002


def store(folder: Path, nodes: int, jobs: int, defects: tuple[str, ...] = ()) -> Path:
    """A campaign that has a store of so many nodes and nothing else."""
    drawn = simulated(Plan(preset("rome-2x64"), nodes=min(nodes, DRAWN), jobs=jobs, cells=True, defects=defects))
    factors = np.random.default_rng(1).normal(1, _OF_NODE, nodes)
    names = tuple(
        replace(drawn.nodes[i % len(drawn.nodes)], name=f"node{i:05d}", host=f"node{i:05d}") for i in range(nodes)
    )
    with files.replacing_folder(folder / packed.FOLDER) as partial:
        quantities = tuple(
            _repeated(quantity, factors, values_file(partial, quantity.measurement, number))
            for number, quantity in enumerate(drawn.quantities)
        )
        packed.write_index(PackedFleet(folder.name, True, names, quantities), partial, "")
    return folder


def _repeated(quantity: Measured, factors: Floats, path: Path) -> Measured:
    """A quantity of as many nodes as there are factors, its values in a file."""
    rows_of, node = _rows_of(quantity), np.arange(len(factors))
    rows = [rows_of[i % len(rows_of)] for i in node.tolist()]
    counts = [len(of_node) for of_node in rows]
    shape = (sum(counts), *quantity.values.shape[1:])
    values = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    begin = 0
    for of_node, factor in zip(rows, factors, strict=True):
        values[begin : begin + len(of_node)] = quantity.values[of_node] * np.float32(factor)
        begin += len(of_node)
    every = np.concatenate(rows)
    return quantity.assign(
        values=values,
        node=np.repeat(node, counts),
        job=quantity.job[every],
        run=quantity.run[every],
        started=tuple(quantity.started[at] for at in every.tolist()),
        disturbed=quantity.disturbed[every],
    )


def _rows_of(quantity: Measured) -> list[np.ndarray]:
    return [np.flatnonzero(quantity.node == node) for node in np.unique(quantity.node)]


def measured(campaign: Path, nodes: int, jobs: int) -> Iterator[Row]:
    """Rows of one fleet."""
    wall, cpu, memory = nodeprint("judge", campaign)
    name, large = f"{nodes} nodes, {jobs} job{'s'[: jobs - 1]}", nodes >= 10_000
    yield row(f"{name}: judged from the store", cpu, 180 if large else None, "s CPU")
    yield row(f"{name}: wall time", wall, 180 if large else None, "s")
    yield row(f"{name}: memory", memory, 4 if large and jobs == 1 else None, "GiB")


def main() -> int:
    """Measure and print; 1 where a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000, help="nodes of the fleet (10000)")
    parser.add_argument("--jobs", type=int, default=1, help="jobs of each node (1)")
    parser.add_argument("--keep", type=Path, help="make the store in this folder and leave it")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="nodeprint-bench-") as folder:
        campaign = store(arguments.keep or Path(folder, "fleet"), arguments.nodes, arguments.jobs, DEFECTS)
        rows = [*measured(campaign, arguments.nodes, arguments.jobs)]
    table.keep("scale", rows, load)
    return int(any(of.missed for of in rows))


if __name__ == "__main__":
    sys.exit(main())

"""The dataset of a measurement as other programs get it: names, numbers of the operating system, and files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from nodeprint.data.export import datasets
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.presets import from_part
from nodeprint.simulate import Plan, fleet


@pytest.fixture(scope="module")
def two() -> PackedFleet:
    return fleet(Plan(from_part("EPYC 7302", 2, False), nodes=2, jobs=2, runs=2, passes=2, cells=True))


def test_rows_have_node_job_run_and_points_have_levels(two: PackedFleet) -> None:
    measured = two.pairs[0]
    made = datasets.dataset(two, measured)
    assert made["value"].dims == ("row", "pass", "point") and made["value"].attrs["units"] == "ns"
    assert np.shares_memory(made["value"].values, measured.values), "a view"
    assert list(dict.fromkeys(made["node"].values)) == [node.name for node in two.nodes]
    assert made["started"].dtype.kind == "M" and not np.isnat(made["started"].values).any()
    for level in ("socket", "quadrant", "ccd", "ccx", "core", "thread"):
        assert {f"{level}_a", f"{level}_b"} <= set(made.coords)
    near = made["value"].where(made["ccx_a"] == made["ccx_b"], drop=True)
    assert set(near["class"].values) <= {"same core", "same CCX"}
    assert made.attrs["quantity"] == "hop" and made.attrs["home"] == "pair"
    clocks = next(of for of in two.others if of.measurement == "clock-together")
    assert {"socket", "ccx", "core", "thread"} <= set(datasets.dataset(two, clocks).coords)


def test_parts_that_are_numa_nodes_have_their_numbers(two: PackedFleet) -> None:
    """A level of the slots may be called so, as with sub-NUMA clustering."""
    measured = two.pairs[0]
    levels = tuple("numa" if level == "ccd" else level for level in measured.layout.levels)
    clustered = measured.assign(layout=replace(measured.layout, levels=levels))
    expected = measured.dataset["ccd_a"].values
    assert clustered.dataset["numa_a"].values.tolist() == expected.tolist() and expected.max() > 0
    assert "numa_a" not in measured.dataset.coords


def test_cpus_have_the_numbers_of_the_operating_system(two: PackedFleet) -> None:
    """Over points where all nodes number them alike, over rows and points where they do not."""
    measured, (first, second) = two.pairs[0], two.nodes
    a = measured.pairs[-1, 0]
    alike = datasets.dataset(two, measured)
    assert alike["a"].dims == ("point",) and int(alike["a"][-1]) == first.cpus[a]
    other = replace(second, cpus=tuple(reversed(second.cpus)))
    differing = datasets.dataset(replace(two, nodes=(first, other)), measured)
    assert differing["a"].dims == ("row", "point")
    assert differing["a"].isel(point=-1).values.tolist() == [first.cpus[a]] * 4 + [other.cpus[a]] * 4


def test_every_value_is_in_one_row_of_the_table(two: PackedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = two.pairs[0]
    values = measured.values.copy()
    values[0, 1, 2] = np.nan
    some = replace(two, quantities=(measured.assign(values=values),))
    monkeypatch.setattr(datasets, "_VALUES_AT_ONCE", 3 * values[0].size)
    frames = list(datasets.frames(datasets.dataset(some, some.quantities[0])))
    assert [len(frame) for frame in frames] == [3 * values[0].size - 1, 3 * values[0].size, 2 * values[0].size]
    rows = pd.concat(frames)
    assert rows["value"].astype(np.float64).sum() == pytest.approx(np.nansum(values, dtype=np.float64))
    assert (rows["simulated"] & (rows["unit"] == "ns")).all()


def test_netcdf_has_the_dataset_and_the_same_bytes_again(two: PackedFleet, tmp_path: Path) -> None:
    for measured in (two.pairs[0], two.others[0], next(of for of in two.others if of.names)):
        made = datasets.dataset(two, measured)
        path = datasets.write_netcdf(made, tmp_path / "a.nc")
        with xr.open_dataset(path, engine="h5netcdf") as read:
            xr.testing.assert_identical(read.load(), made)
        assert datasets.write_netcdf(made, tmp_path / "b.nc").read_bytes() == path.read_bytes()


def test_slurms_job_is_a_coordinate_of_its_rows(two: PackedFleet) -> None:
    nodes = (replace(two.nodes[0], slurm_jobs={1: "4711"}), two.nodes[1])
    made = datasets.dataset(replace(two, nodes=nodes), two.pairs[0])
    assert made["slurm_job"].values.tolist() == ["4711"] * 2 + [""] * 6


def test_a_measurement_of_two_layouts_asks_for_a_node(two: PackedFleet) -> None:
    other = fleet(Plan(from_part("EPYC 7302", 1, False), nodes=1, runs=1, passes=1))
    moved = other.quantities[0].assign(node=np.array([2]), former=None)
    both = replace(two, nodes=(*two.nodes, replace(other.nodes[0], name="x")), quantities=(*two.quantities, moved))
    with pytest.raises(NodeprintError, match=r"2 kinds of machines.*name a node of the kind, as node000 or x"):
        datasets.chosen(both, "coherence-cas")
    assert datasets.chosen(both, "coherence-cas", "x") is moved
    with pytest.raises(NodeprintError, match="node000 has no values of nothing; choose from coherence-cas"):
        datasets.chosen(both, "nothing", "node000")

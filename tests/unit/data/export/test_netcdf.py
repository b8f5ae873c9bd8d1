"""node.nc: the same bytes of the same records, and what other programs find in it."""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

from nodeprint.data.export import netcdf
from nodeprint.data.job import jobs
from nodeprint.data.store import store
from nodeprint.machine import topology
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate.survey import survey

Make = Callable[..., Path]


def test_node_nc_of_the_same_records_is_the_same_to_the_last_byte(campaign: Make) -> None:
    node = campaign("n1") / "nodes/n1"
    first = hashlib.sha256(netcdf.write(node).read_bytes()).hexdigest()
    time.sleep(1.1)  # times in HDF5, if there were any, would be whole seconds
    assert hashlib.sha256(netcdf.write(node).read_bytes()).hexdigest() == first


def test_node_nc_has_dimensions_units_and_both_sides(campaign: Make) -> None:
    folder = campaign("n1")
    node = folder / "nodes/n1"
    (node / "job1/survey.tar.gz").write_bytes(survey(preset("graviton3-64"), "n1", {}))
    assert netcdf.export(folder) == [node / "node.nc"]
    tree = xr.open_datatree(node / "node.nc", engine="h5netcdf").load()
    assert len(topology.from_text(str(tree["topology"].item())).cpus) == 64
    data = tree["job1/coherence-cas"]
    assert dict(data.sizes) == {"run": 2, "pass": 2, "home": 1, "a": 2, "b": 2}
    latency = data["latency_ns"]
    assert latency.attrs["units"] == "ns"
    np.testing.assert_allclose(latency.sel({"run": 2, "pass": 1, "a": 0, "b": 1}), 52.1, rtol=1e-6)
    np.testing.assert_array_equal(latency, latency.transpose("run", "pass", "home", "b", "a"))
    assert np.isnan(latency.sel(a=0, b=0)).all()
    (again,), labels = netcdf.read(node / "node.nc")
    np.testing.assert_array_equal(
        again.measured["coherence-cas"].columns["latency_ns"],
        jobs.read(node / "job1").measured["coherence-cas"].columns["latency_ns"],
    )
    assert labels == store.survey(node).topology
    written = (node / "node.nc").stat().st_mtime_ns
    netcdf.export(folder)
    assert (node / "node.nc").stat().st_mtime_ns == written, "nothing is newer"

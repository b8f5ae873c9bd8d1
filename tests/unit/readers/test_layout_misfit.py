"""Labels that contradict an imported matrix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nodeprint.machine.topology.model import Cpu, Machine, Topology
from nodeprint.readers import layout_misfit, matrix_file
from tests.support.latencies import epyc

Write = Callable[..., Path]


@pytest.mark.parametrize(("ccx", "said"), [(4, ""), (8, "4 groups of 4 CPUs, which are not the 2 CCXs of 8 CPUs")])
def test_a_layout_that_is_not_the_matrix_s_is_named(write: Write, ccx: int, said: str) -> None:
    made = epyc(1, 2, 2, 4, 1).matrix
    path = write("\n".join(",".join("" if np.isnan(v) else f"{v:.3f}" for v in row) for row in made))
    labels = Topology(Machine(), tuple(Cpu(i, socket=0, ccx=i // ccx, core=i) for i in range(16)))
    found = "; ".join(layout_misfit.warnings([matrix_file.read_output(path)], labels))
    assert said in found and bool(found) == bool(said)
    assert found == "" or (found.startswith(f"{path}: ") and "give the part, --sockets and --no-smt" in found)

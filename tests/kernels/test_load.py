"""Load: that what cores calculate is right, and that one which is wrong in a single bit is named."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_parts import ALLOWED, ROOT, built, need
from tests.support.schemas import valid_records

pytestmark = pytest.mark.machine

OPERATIONS = {"alone": (), "ladder": (), "together": ("--seconds", "2"), "check": ("--seconds", "2")}


def cells_of(load: Path, out: Path, operation: str) -> list[dict[str, Any]]:
    cpus = f"{ALLOWED[0]},{ALLOWED[-1]}"
    command: list[str | Path] = [
        load,
        "--op",
        operation,
        *OPERATIONS[operation],
        "--cpus",
        cpus,
        "--passes",
        "1",
        "--out",
        out,
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    valid_records(out)
    return [line for line in map(json.loads, out.read_text().splitlines()) if line["record"] == "cell"]


@pytest.fixture(scope="session")
def flipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build in which a bit flips in the middle of each burst of the last CPU."""
    need("make", "gcc", cpus=2)
    folder = tmp_path_factory.mktemp("flipped")
    flip = f"CPPFLAGS=-DFLIP_A_BIT_ON_CPU={ALLOWED[-1]}"
    subprocess.run(
        ["make", "-C", ROOT / "kernels", f"BUILD={folder}", flip, folder / "load"], check=True, capture_output=True
    )
    return folder / "load"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_vectors_end_where_scalar_operations_do(tmp_path: Path, operation: str) -> None:
    cells = cells_of(built() / "load", tmp_path / "r.jsonl", operation)
    assert all("difference" not in cell for cell in cells)
    assert all(cell["wrong_bursts"] == 0 for cell in cells if cell.get("work") != "scalar")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_cpu_that_calculates_wrongly_is_named_with_the_place(flipped: Path, tmp_path: Path, operation: str) -> None:
    cells = cells_of(flipped, tmp_path / "r.jsonl", operation)
    wrong = [cell for cell in cells if cell.get("wrong_bursts")]
    of_the_cpu = "cores" if operation == "ladder" else "cpu"
    for cell in cells:
        taken_part = cell[of_the_cpu] == (2 if operation == "ladder" else ALLOWED[-1]) and cell.get("work") != "scalar"
        assert (cell in wrong) == taken_part, cell
    for cell in wrong:
        difference = cell["difference"]
        assert difference["cpu"] == ALLOWED[-1] and difference["expected"] != difference["found"]


def test_every_unit_of_this_cpu_is_checked(tmp_path: Path) -> None:
    cells = cells_of(built() / "load", tmp_path / "r.jsonl", "check")
    assert {"fma", "integer", "l1", "l2"} <= {cell["unit"] for cell in cells}
    assert all(cell["bursts"] > 0 for cell in cells)
    assert len({cell["unit"] for cell in cells}) * len({cell["cpu"] for cell in cells}) == len(cells)


def test_units_that_need_no_cache_are_checked_where_no_cache_is_reported(tmp_path: Path) -> None:
    command: list[str | Path] = [built() / "load", "--op", "check", "--seconds", "1", "--cpus", str(ALLOWED[0])]
    environment = {"NODEPRINT_SYSFS": str(tmp_path)}
    done = subprocess.run(
        [*command, "--passes", "1", "--out", tmp_path / "r.jsonl"], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    units = {json.loads(line).get("unit") for line in (tmp_path / "r.jsonl").read_text().splitlines()[1:]}
    assert {"fma", "integer"} <= units and not units & {"l1", "l2", "l3"}

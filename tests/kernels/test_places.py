"""Lines and blocks held in another core's L1, L2 or L3: what is planned, and what proves that they are there."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.support import machines
from tests.support.real_parts import ALLOWED, built, need
from tests.support.small_machine import small_machine

pytestmark = pytest.mark.machine

PLACES = ("l1", "l2", "l3")
#: The compared value of each operation.
VALUES = {"place": "latency_ns", "stream": "rate_bytes_per_s"}


def planned(folder: Path, operation: str, name: str, sockets: int, sizes: tuple[int, ...]) -> dict[str, str]:
    """The plan on a whole machine by name with caches of so many KiB."""
    machine = machines.epyc(machines.WHOLE[name], sockets=sockets, threads=1)
    root = machine.write(folder)
    for level in root.glob("sys/devices/system/cpu/cpu*/cache/index*/level"):
        level.with_name("size").write_text(f"{sizes[int(level.read_text()) - 1]}K\n")
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/status").write_text(f"Mems_allowed_list:\t0-{sockets - 1}\n")
    environment = os.environ | {"NODEPRINT_SYSFS": str(root / "sys"), "NODEPRINT_PROCFS": str(root / "proc")}
    cpus = f"0-{len(machine.rows) - 1}"
    command: list[str | Path] = [built() / "coherence", "--op", operation, "--plan", "--passes", "1", "--cpus", cpus]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def cells(out: Path, operation: str, *words: str, env: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """The records of this machine's first and last CPU."""
    command: list[str | Path] = [built() / "coherence", "--op", operation, "--cpus", f"{ALLOWED[0]},{ALLOWED[-1]}"]
    subprocess.run([*command, "--out", out, *words], check=True, capture_output=True, env=env)
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.parametrize(
    ("operation", "name", "sizes", "classes"),
    [("place", "rome", (32, 512, 16384), 4), ("stream", "milan", (32, 512, 32768), 3)],
)
def test_each_state_is_held_in_each_cache_for_each_class(
    tmp_path: Path, operation: str, name: str, sizes: tuple[int, ...], classes: int
) -> None:
    """Rome has two CCXs on a die, so the same die is a class of its own."""
    said = planned(tmp_path, operation, name, 2, sizes)
    states = {"M", "E", "S", "F", "O"} - set(json.loads(said["not_measured"]))
    assert len(states) == 4, "O or F, by the vendor"
    assert int(said["cells"]) == 2 * classes * len(states) * len(PLACES)
    assert 0.1 < float(said["seconds"]) < 5


def test_a_cache_without_room_for_what_evicts_is_named(tmp_path: Path) -> None:
    """An L2 of four times the L1, and an L3 of twice the L2."""
    said = planned(tmp_path, "place", "milan", 1, (64, 256, 512))
    absent = json.loads(said["not_measured"])
    assert {"l2", "l3"} <= set(absent) and "l1" not in absent
    assert absent["l3"].endswith("no such cache with room for lines and what evicts them from the caches above: 0-1,8")


@pytest.mark.parametrize("operation", VALUES)
def test_a_machine_that_reports_no_caches_has_no_places(tmp_path: Path, operation: str) -> None:
    environment = os.environ | {"NODEPRINT_SYSFS": str(tmp_path)}
    need(cpus=2)
    header, trailer = cells(tmp_path / "r.jsonl", operation, "--passes", "1", env=environment)
    assert header["applicable"] is False and "sysfs reports no cache" in header["reason"] and trailer["complete"]


@pytest.mark.parametrize("operation", VALUES)
def test_a_value_has_the_proof_of_its_place(tmp_path: Path, operation: str) -> None:
    """The owner's own loads take what its caches take. On a busy machine some lines are gone, but not all always."""
    need(cpus=2)
    header, *records = cells(tmp_path / "r.jsonl", operation, "--passes", "4")
    measured = [record for record in records if record["record"] == "cell"]
    assert {cell["place"] for cell in measured} <= set(PLACES)
    assert {cell["state"] for cell in measured} >= {"M", "E"}
    proved: dict[str, list[float]] = {}
    for cell in measured:
        own = header["references_ns"][str(cell["b"])]
        assert list(own) == [*(place for place in PLACES if place in own), "memory"]
        if VALUES[operation] in cell:
            assert cell[VALUES[operation]] > 0
            assert cell["owner_ns"] < 3 * own[cell["place"]] + 0.1
            proved.setdefault(cell["place"], []).append(cell["owner_ns"])
    assert {"l1", "l2"} <= set(proved)
    assert median(proved["l2"]) > 1.5 * median(proved["l1"])
    assert median(proved.get("l3", [1e9])) > 1.5 * median(proved["l2"])


def test_a_cache_whose_size_is_fiction_gives_no_value(tmp_path: Path) -> None:
    """What is told to be an L2 of 32 KiB is a part of an L1: what evicts from 4 KiB moves nothing."""
    need(cpus=2)
    environment = small_machine(tmp_path, 32, 4000)
    for cpu in ALLOWED:
        for index, (level, kib) in enumerate([(1, 4), (2, 32)], 1):
            folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
            folder.mkdir()
            for name, text in (("level", level), ("type", "Unified"), ("size", f"{kib}K"), ("shared_cpu_list", cpu)):
                (folder / name).write_text(f"{text}\n")
    header, *records = cells(tmp_path / "r.jsonl", "place", "--passes", "3", env=environment)
    lying = [cell for cell in records if cell["record"] == "cell" and cell["place"] in ("l1", "l2")]
    assert {cell["place"] for cell in lying} == {"l1", "l2"}
    assert not [cell for cell in lying if "latency_ns" in cell]
    assert all("owner_ns" in cell for cell in lying)
    assert header["references_ns"]

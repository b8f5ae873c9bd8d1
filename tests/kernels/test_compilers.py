"""Kernels by another compiler, C library or optimization do the same. Their latencies are in bench.peers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nodeprint.campaign import plans
from nodeprint.data.format import records
from nodeprint.settings.measurements import measurements
from tests.support.real_parts import ALLOWED, ROOT, built, need
from tests.support.schemas import valid_records
from tests.support.small_machine import small_machine

pytestmark = [pytest.mark.machine, pytest.mark.long]

FLAVORS = ("clang", "musl", "native")
OURS = [of for of in measurements().values() if "--op" in of.arguments.split()]
#: A call of each operation that keeps it short.
SHORT = {f"{of.kernel} {of.operation}": ["--op", of.operation, *(of.short or "").split()] for of in OURS}
#: What a header has of the moment and of the compiler.
OF_A_RUN = {
    "start_time",
    "compiler",
    "clock",
    "ramp_up",
    "begins",
    "sensors",
    "references_ns",
    "address_distance_bytes",
}


@pytest.fixture(scope="session", params=FLAVORS)
def other(request: pytest.FixtureRequest) -> Path:
    need("make", "gcc", "clang", "musl-gcc", cpus=2)
    return built(str(request.param), units=True)


def output(folder: Path, *words: str, **environment: str) -> str:
    command = [str(folder / words[0]), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=os.environ | environment)
    return done.stdout


@pytest.mark.parametrize("kernel", sorted({of.kernel for of in OURS}))
def test_help_is_the_same(other: Path, kernel: str) -> None:
    assert output(other, kernel, "--help") == output(built(), kernel, "--help")


def test_plans_of_another_machine_are_the_same(other: Path) -> None:
    """Nothing is probed for them, so that they are equal to the last digit."""
    with plans._layout(32) as machine:
        for of in OURS:
            for preset in {*of.presets.values()} - {None}:
                words = (of.kernel, *of.arguments.split(), *str(preset).split(), "--cpus", "0-31", "--plan")
                assert output(other, *words, **machine) == output(built(), *words, **machine), words


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "kernels/tests").glob("*.c")))
def test_unit_tests_hold_and_end_with_the_same(other: Path, name: str) -> None:
    """That of `load` prints a checksum of what all units of a core calculate."""
    said = output(built(units=True), f"tests/{name}")
    assert output(other, f"tests/{name}") == said
    assert ("with the checksum" in said) is (name == "load")


def measured(folder: Path, operation: str, tmp_path: Path) -> list[dict[str, Any]]:
    kernel = operation.split(maxsplit=1)[0]
    out = tmp_path / f"{folder.name}.jsonl"
    words = [*SHORT[operation], "--cpus", f"{ALLOWED[0]},{ALLOWED[1]}", "--passes", "1", "--seed", "7"]
    small = kernel in ("bandwidth", "loaded")
    environment = small_machine(tmp_path / "small", 4, 4000) if small else os.environ.copy()
    subprocess.run(
        [folder / kernel, *words, "--out", out], check=True, capture_output=True, timeout=120, env=environment
    )
    valid_records(out)
    assert records.read(out).complete, "with the checksum that it says"
    return [json.loads(line) for line in out.read_text().splitlines()]


def members(lines: list[dict[str, Any]]) -> list[list[str]]:
    """The members of each record whose number is fixed. Cells are not among them: one without a value leaves it out."""
    return [sorted(line) for line in lines if line["record"] in ("header", "pass", "pair", "trailer")]


def drawn(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the seed decides: lines, and the order of pairs or cells."""
    keys = ["record", "pass", "line_set", *lines[0].get("cells", {"dims": ("a", "b", "home")})["dims"]]
    return [
        {key: line[key] for key in keys if key in line} for line in lines if line["record"] in ("pass", "pair", "cell")
    ]


@pytest.mark.parametrize("operation", SHORT)
def test_records_are_the_same_but_for_what_was_measured(other: Path, tmp_path: Path, operation: str) -> None:
    theirs, ours = (measured(folder, operation, tmp_path) for folder in (other, built()))
    header, own_header = ({key: value for key, value in of[0].items() if key not in OF_A_RUN} for of in (theirs, ours))
    assert header == own_header
    assert drawn(theirs) == drawn(ours)
    assert members(theirs) == members(ours)
    assert not any(line.get("wrong_bursts") for line in theirs)

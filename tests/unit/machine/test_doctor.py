"""What `nodeprint doctor` says of this machine, with programs and packages taken away."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.machine import doctor
from nodeprint.settings import sources
from tests.support.command_line import call
from tests.support.real_parts import ROOT


def facts() -> dict[str, doctor.Fact]:
    """The facts by their names."""
    return {fact.name: fact for fact in doctor.facts()}


@pytest.fixture
def without_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting each program for its version takes a while."""
    monkeypatch.setattr(doctor, "_PROGRAMS", {})


def no_kernels() -> Path:
    raise NodeprintError("this installation has no kernels")


def test_this_machine() -> None:
    found = facts()
    assert found["flock"].answer == "yes" and found["gzip"].answer == "yes"
    assert {"mbind", "move_pages", "root", "two CPUs", "memory", "mpirun", "mpi4py", "ssh", "sbatch"} <= set(found)
    assert all(fact.without for fact in found.values() if fact.answer == "no")
    assert not re.search(r"\blinks? (measure|between)", "\n".join(doctor.lines(doctor.facts(), ())))


@pytest.mark.usefixtures("without_programs")
def test_the_executor_is_that_of_the_workflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever installs another one measures wrong nodes."""
    assert facts()["the workflow's executor"].answer == "yes"
    found_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name.startswith("snakemake_executor") else found_spec(name)
    )
    assert "PYTHONPATH=workflow" in facts()["the workflow's executor"].detail
    monkeypatch.setattr(doctor, "__file__", str(tmp_path / "nodeprint/machine/doctor.py"))
    missing = facts()["the workflow's executor"]
    assert missing.answer == "no" and "no other executor" in missing.remedy
    assert "plugin-slurm" not in "\n".join(doctor.lines(doctor.facts(), ()))


def test_what_is_missing_is_asked_for_only_where_it_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A compiler builds kernels, and is not asked for where these are there."""
    (tmp_path / "likwid-pin").write_text("#!/bin/sh\necho; echo likwid-pin -- Version 9.9 >&2\n")
    (tmp_path / "likwid-pin").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sources, "kernels", lambda: Path("/opt/kernels"))
    found = facts()
    assert found["likwid-pin"].detail == "likwid-pin -- Version 9.9"
    assert (found["kernels"].answer, found["kernels"].detail) == ("yes", "/opt/kernels")
    assert not {"make", "gcc or clang", "likwid-bench"} & set(found)
    monkeypatch.setattr(sources, "kernels", no_kernels)
    assert "kernels" in doctor.missing(doctor.facts())
    for name in ("make", "gcc"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    assert "`make kernels` builds them" in facts()["kernels"].detail


def test_it_ends_with_3_where_nothing_can_be_measured_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("doctor", "--json") == 0
    assert json.loads(capsys.readouterr().out)["facts"]
    assert call("doctor") == 0
    assert "[core 2" in capsys.readouterr().out, "brackets are no markup"
    one_cpu = ["taskset", "-c", str(min(os.sched_getaffinity(0))), sys.executable, "-m", "nodeprint", "doctor"]
    done = subprocess.run(one_cpu, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1] == "This machine cannot be measured yet: two CPUs."


@pytest.mark.usefixtures("without_programs")
@pytest.mark.parametrize(("writable", "says"), [(True, "is held at 0"), (False, "cannot be opened")])
def test_what_is_said_of_idle_states(monkeypatch: pytest.MonkeyPatch, writable: bool, says: str) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: writable)
    assert says in facts()["cpu_dma_latency"].detail

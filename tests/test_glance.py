"""Figures at the end of a call and in `nodeprint show`: medians in a few lines, and a small matrix."""

import json
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodeprint import packed, simulate, topology
from nodeprint.report import glance, terminal
from nodeprint.verdict.campaign_verdict import judge

from .conftest import environment


def node(median: float, **more: Any) -> dict[str, Any]:
    row = {"measurement": "coherence-cas", "home": -1, "name": "same CCX", "median_ns": median, "ci_low_ns": median - 1,
           "ci_high_ns": median + 1}  # fmt: skip
    clock = {
        "measurement": "clock-together",
        "name": "all",
        "unit": "Hz",
        "median": 3.4e9,
        "ci_low": None,
        "ci_high": None,
    }
    touch = clock | {"measurement": "touch-ratio", "name": "alone", "unit": "1"}
    return {"verdict": "SAME", "text": "", "classes": [row], "cells": [clock, touch]} | more


def test_one_node_has_intervals_and_several_a_range() -> None:
    machine = {"cpu": "AMD EPYC 7742", "cpus": 128}
    assert glance.medians({"cn01": node(23.0, fingerprint=machine)}) == [
        "node cn01, AMD EPYC 7742, 128 CPUs",
        "  core to core        same CCX    23 ns  95 %: 22 to 24",
        "  clock of all cores            3.4 GHz",
    ]
    assert glance.medians({"cn01": node(23.0), "cn02": node(26.0), "cn03": node(24.0)}) == [
        "medians over 3 nodes (lowest to highest)",
        "  core to core        same CCX    24 ns  23 to 26",
        "  clock of all cores            3.4 GHz  3.4 to 3.4",
    ]
    assert glance.medians({"cn01": {"verdict": "INVALID"}}) == []


def test_operations_and_homes_are_told_apart() -> None:
    rows = [
        {"measurement": f"coherence-{op}", "home": home, "name": "same socket", "median_ns": 50.0}
        for op in ("cas", "faa") for home in (0, 1)
    ]  # fmt: skip
    lines = glance.medians({"n": {"classes": rows}})
    assert [line.split() for line in lines[1:]] == [
        ["coherence-cas", "same", "socket,", "home", "0", "50", "ns"],
        ["same", "socket,", "home", "1", "50", "ns"],
        ["coherence-faa", "same", "socket,", "home", "0", "50", "ns"],
        ["same", "socket,", "home", "1", "50", "ns"],
    ]


def square(n: int, high: float) -> glance.Square:
    values = np.linspace(20, high, n * n).reshape(n, n)
    np.fill_diagonal(values, np.nan)
    return glance.Square("title", tuple(map(str, range(n))), values)


@pytest.mark.parametrize("n, high", [(3, 90), (16, 210), (18, 210), (26, 99), (26, 210), (32, 210), (32, 980)])
def test_a_matrix_fits_80_columns_and_its_numbers_are_the_values(n: int, high: float) -> None:
    wanted = square(n, high)
    lines = glance.painted(wanted).plain.split("\n")
    assert max(map(len, lines)) <= 80
    assert len(lines) == n + 2
    unit = 10 if lines[0].endswith("/ 10") else 1
    margin = len(str(n - 1)) + 1
    width = (len(lines[2]) - margin) // n
    for row, line in enumerate(lines[2:]):
        cells = [line[margin + i * width : margin + (i + 1) * width].strip() for i in range(n)]
        shown = [f"{value / unit:.0f}" if np.isfinite(value) else "." for value in wanted.values[row]]
        assert cells == shown


def test_colours_follow_the_values() -> None:
    text = glance.painted(square(4, 200))
    grounds = [span.style.bgcolor.name for span in text.spans if span.style and span.style.bgcolor]  # type: ignore[union-attr]
    assert len(grounds) == 12, "the diagonal has none"
    assert len(set(grounds)) == 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged campaign of one simulated node of 64 cores in 8 CCDs."""
    plan = simulate.Plan(topology.preset("naples-2x32"), 1, 1, 2, 2, 5)
    out = simulate.write(plan, tmp_path_factory.mktemp("glance") / "campaign")
    (out / "verdict.json").write_text(judge(out).json())
    return out


def test_many_cpus_are_shown_ccd_by_ccd(folder: Path) -> None:
    fleet = packed.read(folder)
    (found,) = glance.squares(fleet, fleet.nodes[0].name)
    assert found.title.endswith("CCD by CCD")
    assert found.names == tuple(map(str, range(8)))
    stack = fleet.pairs[0]
    a, b = stack.pairs.T
    ccd = stack.layout.slots[:, 2]
    medians = np.median(np.asarray(stack.by_home[:, :, 0]).reshape(-1, len(a)), axis=0)
    between = medians[(ccd[a] == 0) & (ccd[b] == 5)]
    assert len(between) > 1
    assert found.values[0, 5] == found.values[5, 0] == pytest.approx(np.median(between))


def shown(folder: Path, **variables: str) -> str:
    """What `nodeprint show` prints on a terminal of 80 columns."""
    master, slave = pty.openpty()
    named = environment() | {"TERM": "xterm-256color", "COLUMNS": "80", "COLORTERM": "", "NO_COLOR": ""} | variables
    done = subprocess.Popen(["nodeprint", "show", folder], stdout=slave, env=named)
    os.close(slave)
    seen = b""
    try:
        while block := os.read(master, 10_000):
            seen += block
    except OSError:
        pass  # a terminal's other end is gone
    os.close(master)
    assert done.wait() == 1, "it has no PDF"
    return seen.decode()


def test_a_terminal_shows_colours_unless_it_has_none_or_they_are_not_wanted(folder: Path) -> None:
    assert "\x1b[30;48;5;" in shown(folder)
    assert "48;2;" in shown(folder, COLORTERM="truecolor")
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        seen = shown(folder, **variables)
        assert "\x1b[" not in seen and "CCD by CCD" in seen
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown(folder))
    assert max(map(len, plain.splitlines())) <= 80
    assert plain.startswith("SIMULATED: node node000")
    assert "no report yet: " in " ".join(plain.split()), "in as many lines as its path needs"
    piped = subprocess.run(["nodeprint", "show", folder], capture_output=True, text=True, check=False).stdout
    assert "\x1b" not in piped and "CCD by CCD" in piped


def test_a_verdict_alone_is_shown_too(tmp_path: Path) -> None:
    content = {"nodes": {"cn01": node(23.0)}, "fleet": {"text": "1 of 1 nodes measured"}}
    (tmp_path / "verdict.json").write_text(json.dumps(content))
    assert glance.text(tmp_path).plain == "\n".join(glance.medians(content["nodes"]))


def test_long_lines_are_broken_between_words_and_paths_never() -> None:
    path = "results/" + "a" * 90
    text = f"first\n\n  cn01  INVALID: {'word ' * 20}end\nreport: {path}"
    lines = terminal.wrapped(text, 40).split("\n")
    assert lines[:3] == ["first", "", "  cn01  INVALID: word word word word"]
    assert all(line.startswith("    ") for line in lines[3:6])
    assert path in lines[-1]

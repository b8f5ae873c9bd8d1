"""The analyzes of docs/how-to/research.md run as they stand, each in a few lines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan, write
from tests.support.real_parts import ROOT

FEW_LINES = 3


def test_the_five_analyses_print_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write(Plan(preset("rome-2x64"), nodes=2, runs=2, passes=1, cells=True), Path("results/sim"))
    status = folder / "nodes/node001/job1/status.json"
    status.write_text(json.dumps(json.loads(status.read_text()) | {"slurm_job": "4711"}))
    Path("sacct.txt").write_text("JobID|NodeList|ConsumedEnergyRaw\n4710|node000|1\n4711|node001|5000\n")
    first, *analyses = re.findall(r"```python\n(.*?)```", (ROOT / "docs/how-to/research.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(first, names)
    assert Path("pairs.pdf").stat().st_size
    printed = []
    for analysis in analyses:
        assert sum(not line.startswith("import") for line in analysis.split("\n") if line) <= FEW_LINES
        exec(analysis, names)
        printed.append(capsys.readouterr().out)
    classes, quadrants, spread, rates, joined = printed
    assert "same CCX" in classes and "node001" in classes
    assert quadrants.startswith("quadrant_b") and len(quadrants.splitlines()) == 2 + 8
    assert len(spread.splitlines()) == 2 + 2
    assert rates.startswith("memory_node")
    assert joined.count("5000") == joined.count("node001") == 2 and "node000" not in joined

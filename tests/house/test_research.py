"""The example of docs/how-to/research.md runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan, write
from tests.support.real_parts import ROOT


def test_the_example_answers_its_questions(tmp_path: Path) -> None:
    (script,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/how-to/research.md").read_text(), re.DOTALL)
    campaign = write(Plan(preset("rome-2x64"), nodes=1, runs=2, passes=1), tmp_path / "sim")
    (tmp_path / "example.py").write_text(script)
    command = [sys.executable, "example.py", str(campaign)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "home" in done.stdout
    latencies = [float(value) for value in re.findall(r"quadrant 0 to \d: ([\d.]+) ns", done.stdout)]
    assert len(latencies) == 3 and all(80 < value < 180 for value in latencies)
    assert (tmp_path / "pairs.pdf").read_bytes().startswith(b"%PDF")

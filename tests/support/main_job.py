"""The main job called as `make run` does."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.real_parts import environment


def config(house: Path, campaign: str, text: str = "") -> Path:
    path = house / f"{campaign}.yaml"
    path.write_text(f"campaign: {campaign}\npreset: test\nmeasure: [coherence-cas]\n{text}")
    return path


def run(house: Path, path: Path, *more: str, timeout: int = 1500) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [house / "workflow/run", "--config", path.name, *more],
        cwd=house,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )

"""A working copy whose kernels do nothing, campaigns in it, and the call of Snakemake that measures them."""

from __future__ import annotations

import json
from pathlib import Path

from nodeprint.campaign import preparation as campaigns
from nodeprint.campaign.node_sheet import Node
from nodeprint.settings import config
from tests.support.real_parts import ROOT

KERNEL = """\
#!/bin/sh
case "$*" in *--help* | *--plan*) exit 0 ;; esac
while [ $# -gt 0 ]; do [ "$1" != --out ] || echo '{"record":"trailer"}' >"$2"; shift; done
"""


def copy(folder: Path) -> Path:
    """A working copy whose kernels do nothing."""
    (folder / "kernels/build").mkdir(parents=True)
    for room in (
        "workflow",
        "profiles",
        "config",
        "reports",
        "nodeprint",
        ".venv",
        "environment.yml",
        "kernels/node-run",
        "kernels/node",
        *(str(path.parent.relative_to(ROOT)) for path in ROOT.glob("kernels/*/measurements.yaml")),
    ):
        (folder / room).symlink_to(ROOT / room)
    for name in ("coherence", "cpuid"):
        kernel = folder / "kernels/build" / name
        kernel.write_text(KERNEL)
        kernel.chmod(0o755)
    (folder / "kernels/build/hashes.tsv").touch()  # nothing is to be built
    return folder


def begin(folder: Path, name: str, nodes: list[Node], **slurm: object) -> Path:
    """A campaign of `nodes` that is to be launched; its configuration's path."""
    path = folder / f"{name}.yaml"
    keys = {"minutes": 5, "deadline_hours": 1, "poll_seconds": 2} | slurm
    content = {
        "campaign": name,
        "launch": "slurm",
        "preset": "test",
        "measure": ["coherence-cas"],
        "runs": 1,
        "recheck": False,
    }
    path.write_text(json.dumps(content | {"recheck": False, "slurm": keys, "results": str(folder / "results")}))
    campaigns.prepare(config.load(path), lambda: nodes, [], {})
    return path


def measure_words(path: Path) -> list[str]:
    """The call of Snakemake that measures all nodes of a campaign and does nothing else."""
    profile = ["--workflow-profile", str(ROOT / "profiles/slurm"), "--jobs", "1000000"]
    return ["snakemake", "--nolock", "--configfile", str(path), *profile, "--until", "measure"]

"""A machine of two NUMA nodes, a CPU each, on one that has one node.

No page can lie on a node that is not there, so elsewhere.c makes up the system's answers.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.real_parts import ALLOWED
from tests.support.small_machine import small_machine


def two_nodes(folder: Path, fault: str = "") -> dict[str, str]:
    """An environment of that machine, with small caches; the first page of each buffer is `placed` elsewhere, `moved`
    away, or `stuck` there."""
    environment = small_machine(folder, 4, 4000)
    files = {f"node{node}/cpulist": str(ALLOWED[node]) for node in (0, 1)}
    files |= {f"node{node}/meminfo": f"Node {node} MemFree: 4096000 kB" for node in (0, 1)}
    files |= {"node0/distance": "10 32", "node1/distance": "32 10", "has_memory": "0-1"}
    for name, text in files.items():
        path = folder / "sys/devices/system/node" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{text}\n")
    (folder / "proc/self/status").write_text("Mems_allowed_list:\t0-1\n")
    library = folder / "elsewhere.so"
    command: list[str | Path] = [
        "gcc",
        "-shared",
        "-fPIC",
        "-O2",
        "-o",
        library,
        Path(__file__).with_name("elsewhere.c"),
        "-ldl",
    ]
    subprocess.run(command, check=True)
    return environment | {"LD_PRELOAD": str(library)} | ({"ELSEWHERE": fault} if fault else {})

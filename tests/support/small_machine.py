"""This machine with a small last level cache: guests report their host's, of which arrays of memory take four times."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.real_parts import ALLOWED


def small_machine(folder: Path, l3_mib: int, free_mib: int) -> dict[str, str]:
    """An environment with this machine's CPUs, an L3 of so many MiB, and a NUMA node with so much free memory."""
    cache = "sys/devices/system/cpu/cpu{}/cache/index0"
    files = {
        f"{cache.format(cpu)}/{name}": text
        for cpu in ALLOWED
        for name, text in (
            ("level", "3"),
            ("type", "Unified"),
            ("size", f"{l3_mib << 10}K"),
            ("shared_cpu_list", f"{ALLOWED[0]}-{ALLOWED[-1]}"),
        )
    }
    files |= {
        "sys/devices/system/cpu/online": f"0-{ALLOWED[-1]}",
        "sys/devices/system/node/has_memory": "0",
        "sys/devices/system/node/node0/cpulist": f"0-{ALLOWED[-1]}",
        "sys/devices/system/node/node0/meminfo": f"Node 0 MemFree: {free_mib << 10} kB",
        "proc/self/status": "Mems_allowed_list:\t0",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n")
    for name in ("self/maps", "self/numa_maps", "self/smaps", "self/statm", "meminfo", "sys"):  # of who reads them
        if not (folder / "proc" / name).is_symlink():
            (folder / "proc" / name).symlink_to(Path("/proc", name))
    return os.environ | {"NODEPRINT_SYSFS": str(folder / "sys"), "NODEPRINT_PROCFS": str(folder / "proc")}

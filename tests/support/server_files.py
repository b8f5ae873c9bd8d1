"""The files of a quiet server."""

from __future__ import annotations

CPU = "sys/devices/system/cpu"


NODE = "sys/devices/system/node"


EDAC = "sys/devices/system/edac/mc"


FLAGS = "fpu tsc constant_tsc nonstop_tsc"


def module(speed: int) -> str:
    """A memory module as dmidecode prints it."""
    size = "Memory Device\n\tSize: 64 GB\n\tType: DDR4\n"
    return f"Handle 0x1, DMI type 17, 92 bytes\n{size}\tConfigured Memory Speed: {speed} MT/s\n\n"


def memory(node: int, total_kib: int, free_kib: int = 40_000_000) -> str:
    """A NUMA node's meminfo."""
    return f"Node {node} MemTotal: {total_kib} kB\nNode {node} MemFree: {free_kib} kB\n"


def healthy() -> dict[str, str]:
    """A quiet server: 2 sockets, 4 NUMA nodes, 8 cores with SMT (16 CPUs), 2 cores to an L3; all there is is SMT."""
    files = {
        "proc/cpuinfo": "".join(
            f"processor\t: {cpu}\nvendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 49\n"
            f"model name\t: AMD EPYC 7302\nstepping\t: 0\nmicrocode\t: 0x830107c\nflags\t\t: {FLAGS}\n\n"
            for cpu in range(16)
        ),
        "proc/cmdline": "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=6f1f0b7e-3f2a-4f0c-9f57-2b9d7f5b9f01 ro quiet\n",
        "proc/loadavg": "0.02 0.05 0.08 1/512 4242\n",
        "proc/stat": "cpu  100 0 100 100000 5 0 5 0 0 0\ncpu0 6 0 6 6000 0 0 0 0 0 0\n",
        "proc/meminfo": f"MemTotal: {4 * 64 << 20} kB\nMemFree: 200000000 kB\nMemAvailable: 210000000 kB\n",
        "proc/version": "Linux version 6.1.0-18-amd64 (debian) #1 SMP\n",
        "proc/sys/kernel/numa_balancing": "0\n",
        "proc/self/status": "Name:\tcp\nUid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-15\n",
        "proc/self/cgroup": "0::/system.slice/job\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/class/dmi/id/bios_version": "2.3.4\n",
        f"{CPU}/online": "0-15\n",
        f"{CPU}/present": "0-15\n",
        f"{CPU}/smt/active": "1\n",
        f"{CPU}/smt/control": "on\n",
        f"{CPU}/cpufreq/boost": "0\n",
        f"{CPU}/vulnerabilities/meltdown": "Not affected\n",
        f"{CPU}/vulnerabilities/retbleed": "Mitigation: untrained return thunk\n",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
        f"{NODE}/online": "0-3\n",
        "nodeprint/affinity": "0-15\n",
        "nodeprint/likwid-pin.txt": "works\n",
        "nodeprint/lscpu.txt": "Architecture: x86_64\n",
        "nodeprint/versions.txt": "linux\t6.1.0-18-amd64\n",
        "nodeprint/dmidecode.txt": "".join(map(module, [3200] * 4)),
    }
    for cpu in range(16):
        core = cpu % 8
        first = core // 2 * 2
        files |= {
            f"{CPU}/cpu{cpu}/topology/core_cpus_list": f"{core},{core + 8}\n",
            f"{CPU}/cpu{cpu}/topology/physical_package_id": f"{core // 4}\n",
            f"{CPU}/cpu{cpu}/cache/index0/level": "1\n",
            f"{CPU}/cpu{cpu}/cache/index0/shared_cpu_list": f"{core},{core + 8}\n",
            f"{CPU}/cpu{cpu}/cache/index3/level": "3\n",
            f"{CPU}/cpu{cpu}/cache/index3/shared_cpu_list": f"{first}-{first + 1},{first + 8}-{first + 9}\n",
            f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": "performance\n",
            f"{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count": "0\n",
        }
    distances = [[10 if a == b else 12 if a // 2 == b // 2 else 32 for b in range(4)] for a in range(4)]
    for node in range(4):
        files |= {
            f"{NODE}/node{node}/cpulist": f"{node * 2}-{node * 2 + 1},{node * 2 + 8}-{node * 2 + 9}\n",
            f"{NODE}/node{node}/distance": " ".join(map(str, distances[node])) + "\n",
            f"{NODE}/node{node}/meminfo": memory(node, (64 << 20) - 123456 * node),
        }
    return files

"""What about a machine a reader of its figures should know, before and after measuring: typed warnings with advice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from nodeprint.errors import NodeprintError, printable
from nodeprint.machine import cgroup, memory_modules, node_configuration
from nodeprint.machine.fingerprint import Value
from nodeprint.machine.node_configuration import read_fingerprint
from nodeprint.machine.topology.facts import cpu_list, list_text
from nodeprint.machine.topology.model import Warning, warning
from nodeprint.machine.tree import Tree

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"

#: Memory that an operation needs on a NUMA node (kernels/harness/memory.c); nodes with less are left out.
LEAST_FREE_BYTES = 160 << 20
#: One module of 24 (two a channel of a Zen 4 or 5 socket) is 4% of a node. NUMA nodes of two captured machines are
#: within 2% of their largest, due to kernel and firmware memory. No module of a server has less than 2 GiB.
_EVEN_SHARE, _LEAST_MODULE_BYTES = 0.97, 2 << 30
#: Share of stolen time since boot from which it shows in medians.
_STEAL = 0.001
#: The lower of the two temperatures at which Intel's processors cool themselves by force (Linux, hwmon/coretemp).
_HOT_CELSIUS = 85
#: Parameters of the command line that take CPUs, memory or NUMA nodes away.
_LIMITING = re.compile(r"^(?:maxcpus|nr_cpus|mem|memmap|numa|possible_cpus|nosmp|idle|clocksource|tsc|notsc)(?:=|$)")


def check(tree: Tree, read_before: Mapping[str, Value] | None = None) -> list[Warning]:
    """All obstacles to a measurement and other noteworthy facts of a root or a survey; unknown values give no warning.

    `read_before` is the fingerprint, if already read.
    """
    fields = read_fingerprint(tree) if read_before is None else read_before
    return [
        *_foreign_work(tree, fields),
        *_virtual(tree, fields),
        *_clocks(tree, fields),
        *_settings(tree, fields),
        *_allowance(tree),
        *_memory(tree),
        *_health(tree),
        *_tools(tree),
    ]


def _foreign_work(tree: Tree, fields: Mapping[str, Value]) -> Iterator[Warning]:
    match = re.match(r"(\d{1,9}(?:\.\d+)?) ", tree.read_text("proc/loadavg") or "")
    cpus = fields.get("cpus")
    if match and float(match[1]) > max(0.5, 0.02 * float(cpus or 1)):
        yield warning("load", load=f"{float(match[1]):g}", on_cpus=f" on {cpus} CPUs" if cpus else "")
    ticks = re.match(r"cpu +((?:\d{1,20} *){8,})", tree.read_text("proc/stat") or "")
    if ticks:
        figures = [int(figure) for figure in ticks[1].split()]
        share = figures[7] / max(1, sum(figures[:8]))
        if share > _STEAL:
            yield warning("steal", share=f"{share * 100:.1f}")


def _virtual(tree: Tree, fields: Mapping[str, Value]) -> Iterator[Warning]:
    if fields.get("virtual"):
        maker = printable((tree.read_text("sys/class/dmi/id/sys_vendor") or "").strip(), 60)
        yield warning("virtual-machine", maker=f" ({maker})" if maker else "")


def _clocks(tree: Tree, fields: Mapping[str, Value]) -> Iterator[Warning]:
    governor = fields.get("governor")
    if governor not in (None, "performance"):
        yield warning("governor", governor=governor)
    if fields.get("boost"):
        yield warning("boost")
    source = fields.get("clocksource")
    flags = set(re.findall(r"\b(?:constant_tsc|nonstop_tsc|tsc)\b", tree.read_text("proc/cpuinfo") or ""))
    if "tsc" in flags and source is not None and source not in ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page"):
        yield warning("clocksource", source=source)
    elif "tsc" in flags and not {"constant_tsc", "nonstop_tsc"} <= flags and not fields.get("virtual"):
        yield warning("tsc-varies")


def _settings(tree: Tree, fields: Mapping[str, Value]) -> Iterator[Warning]:
    if fields.get("smt"):
        yield warning("smt")
    if fields.get("thp") == "always":
        yield warning("thp")
    if fields.get("numa_balancing") and fields.get("numa_nodes", 1) != 1:
        yield warning("numa-balancing")
    limiting = [token for token in (tree.read_text("proc/cmdline") or "").split() if _LIMITING.match(token)]
    if limiting:
        yield warning("cmdline", parameters=printable(" ".join(limiting)))
    yield from _distances(tree)


def _distances(tree: Tree) -> Iterator[Warning]:
    nodes = _cpus(tree, f"{_NODE}/online")
    rows: list[list[int]] = []
    for node in nodes:
        words = (tree.read_text(f"{_NODE}/node{node}/distance") or "").split()
        if len(words) != len(nodes) or not all(re.fullmatch(r"\d{1,3}", word) for word in words):
            return
        rows.append([int(word) for word in words])
    size = range(len(rows))
    odd = None
    if any(rows[i][i] != 10 for i in size):
        odd = "itself"
    elif any(rows[i][j] != rows[j][i] for i in size for j in size):
        odd = "directions"
    elif any(rows[i][j] <= 10 for i in size for j in size if i != j):
        odd = "near"
    if odd:
        yield warning("numa-distances", odd)


def _allowance(tree: Tree) -> Iterator[Warning]:
    online, present = _cpus(tree, f"{_CPU}/online"), _cpus(tree, f"{_CPU}/present")
    offline = sorted(set(present) - set(online)) if online else []
    if offline and (tree.read_text(f"{_CPU}/smt/control") or "").strip() not in ("off", "forceoff"):
        yield warning("offline-cpus", "machine", cpus=list_text(offline), are="is" if len(offline) == 1 else "are")
    allowed = node_configuration.allowed_cpus(tree)
    barred = sorted(set(online) - set(allowed)) if allowed else []
    if barred:
        yield warning("cpus-not-allowed", "machine", count=len(barred), all=len(online), cpus=list_text(barred))
    quota, memory = cgroup.cpu_quota(tree), cgroup.memory_limit(tree)
    if quota is not None and quota < len(allowed or online):
        yield warning("cgroup-cpus", cpus=f"{quota:g}")
    total = re.search(r"MemTotal:\s*(\d{1,15}) kB", tree.read_text("proc/meminfo") or "")
    if memory is not None and total and memory < int(total[1]) * 1024:
        yield warning("cgroup-memory", gib=f"{memory / 2**30:.1f}")


def _free_bytes(meminfo: str) -> int | None:
    """Free memory of a NUMA node with clean file pages, which the kernel gives up when memory is short; None if
    unknown."""
    sizes_kb = dict(re.findall(r"(MemFree|Inactive\(file\)|SReclaimable):\s*(\d{1,15}) kB", meminfo))
    return sum(map(int, sizes_kb.values())) * 1024 if "MemFree" in sizes_kb else None


def _memory(tree: Tree) -> Iterator[Warning]:
    available = re.search(r"MemAvailable:\s*(\d{1,15}) kB", tree.read_text("proc/meminfo") or "")
    if available and int(available[1]) * 1024 < LEAST_FREE_BYTES:
        yield warning("low-memory", "machine", mib=int(available[1]) // 1024)
    sizes: dict[int, int] = {}
    for node in _cpus(tree, f"{_NODE}/online"):
        size = node_configuration.memory_bytes(tree, node)
        free = _free_bytes(tree.read_text(f"{_NODE}/node{node}/meminfo") or "")
        if size:
            sizes[node] = size
        if size and free is not None and free < LEAST_FREE_BYTES:
            yield warning("low-memory", "node", node=node, mib=free >> 20)
        has_cpus = bool((tree.read_text(f"{_NODE}/node{node}/cpulist") or "").strip())
        if size == 0 and has_cpus:
            yield warning("node-without-memory", node=node)
    # nodes with CPUs of one machine are populated alike; memory-only nodes are of another kind
    populated = {
        node: size for node, size in sizes.items() if (tree.read_text(f"{_NODE}/node{node}/cpulist") or "").strip()
    }
    most = max(populated.values(), default=0)
    for node, size in populated.items():
        if size < _EVEN_SHARE * most and most - size >= _LEAST_MODULE_BYTES:
            yield warning("memory-uneven", node=node, gib=f"{size / 2**30:.0f}", most_gib=f"{most / 2**30:.0f}")
    modules = memory_modules.populated(memory_modules.all_slots(tree))
    speeds = {*map(memory_modules.configured_speed, modules)} - {""}
    if len(speeds) > 1:
        yield warning("dimm-speeds", speeds=", ".join(sorted(speeds)))


def _health(tree: Tree) -> Iterator[Warning]:
    for controller in tree.names("sys/devices/system/edac/mc"):
        folder = f"sys/devices/system/edac/mc/{controller}"
        counts = {
            kind: _count(tree, f"{folder}/{name}")
            for kind, name in (("corrected", "ce_count"), ("uncorrected", "ue_count"))
        }
        errors = " and ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        if errors:
            where = [
                printable((tree.read_text(f"{folder}/{dimm}/dimm_label") or dimm).strip(), 60)
                for dimm in tree.names(folder)
                if re.fullmatch(r"(?:dimm|rank)\d+", dimm)
                and (_count(tree, f"{folder}/{dimm}/dimm_ce_count") or _count(tree, f"{folder}/{dimm}/dimm_ue_count"))
            ]
            yield warning(
                "edac",
                controller=printable(controller, 20),
                errors=errors,
                at=f", at {', '.join(where)}" if where else "",
            )
    throttled = {
        kind: sum(
            _count(tree, f"{_CPU}/cpu{cpu}/thermal_throttle/{kind}_throttle_count")
            for cpu in _cpus(tree, f"{_CPU}/online")
        )
        for kind in ("core", "package")
    }
    if any(throttled.values()):
        yield warning("throttled", core=throttled["core"], package=throttled["package"])
    for sensor in tree.names("sys/class/hwmon"):
        folder = f"sys/class/hwmon/{sensor}"
        chip = printable((tree.read_text(f"{folder}/name") or "").strip(), 30)
        if chip not in ("coretemp", "k10temp", "zenpower"):
            continue
        degrees = [
            _count(tree, f"{folder}/{name}") / 1000
            for name in tree.names(folder)
            if re.fullmatch(r"temp\d+_input", name)
        ]
        if degrees and max(degrees) >= _HOT_CELSIUS:
            yield warning("hot", chip=chip, degrees=f"{max(degrees):.0f}")


def _tools(tree: Tree) -> Iterator[Warning]:
    """Warn about tools that a survey lacked; only a survey shows them."""
    captured = tree.names("nodeprint")
    if "affinity" not in captured:
        return
    likwid = (tree.read_text("nodeprint/likwid-pin.txt") or "").strip()
    if likwid and likwid != "works":
        yield warning("likwid", "missing" if likwid == "missing" else "fails", reason=printable(likwid))
    user = re.search(r"^Uid:\s*\d+\s+(\d+)", tree.read_text("proc/self/status") or "", re.MULTILINE)
    if user and user[1] != "0":
        yield warning("not-root")
    if "versions.txt" in captured and "lscpu.txt" not in captured:
        yield warning("lscpu")


def _count(tree: Tree, path: str) -> int:
    """A counter's value, 0 where it is absent or no number."""
    text = tree.read_text(path) or ""
    return int(text) if re.fullmatch(r"\s*\d{1,18}\s*", text) else 0


def _cpus(tree: Tree, path: str) -> tuple[int, ...]:
    try:
        return cpu_list(tree.read_text(path) or "", path)
    except NodeprintError:
        return ()

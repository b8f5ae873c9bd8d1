"""Linux's own view: `/sys/devices/system/cpu`, `/sys/devices/system/node` and `/proc/cpuinfo`, below any root.

The kernel's Documentation/ABI/stable/sysfs-devices-system-cpu and Documentation/admin-guide/cputopology.rst describe
each file and its pitfalls. If a file is absent, its label is unknown.
"""

from __future__ import annotations

import re

from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import cpuid
from nodeprint.machine.topology import machine as identity
from nodeprint.machine.topology.facts import Facts, cpu_list, cpu_mask, list_text
from nodeprint.machine.topology.model import NumaNode
from nodeprint.machine.tree import Tree

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"

_DIGITS = 18  # of a number that can be one; more are garbled
_NO_CLUSTER = 65535  # arch/x86: BAD_APICID as 16 bits, written by kernels without clusters


def read(tree: Tree) -> Facts:
    """What `tree` says of its CPUs. Raises NodeprintError where it says of none, or a list is garbled."""
    blocks = identity.cpuinfo(tree.read_text("proc/cpuinfo") or "")
    nodes = _numa(tree)
    present = _online(tree) or tuple(sorted(blocks)) or tuple(sorted({c for n in nodes for c in n.cpus}))
    if not present:
        raise NodeprintError(
            "lists no CPU", where=tree.source, advice="give the root of a machine's files, or a survey.tar.gz"
        )
    facts = Facts(tree.source, identity.from_root(tree, blocks), present)
    online = frozenset(present)
    facts.numa_nodes = tuple(
        NumaNode(n.node, tuple(c for c in n.cpus if c in online), n.memory_bytes, n.distances) for n in nodes
    )
    _read_topology(tree, facts)
    _from_cpuinfo(blocks, facts)
    _read_caches(tree, facts)
    facts.kinds = identity.kinds(tree, blocks)
    facts.smt_off = (tree.read_text(f"{CPU}/smt/control") or "").strip() in ("off", "forceoff")
    _completeness(tree, facts)
    cpuid.enrich(tree, "nodeprint/cpuid/", facts)
    return facts


def _list(tree: Tree, path: str) -> tuple[int, ...] | None:
    text = tree.read_text(path)
    return None if text is None else cpu_list(text, f"{tree.source}/{path}")


def _set(tree: Tree, folder: str, *names: str) -> tuple[int, ...] | None:
    """The CPUs of the first of `names` that exists in `folder`, as `NAME_list` or, on old kernels, as a mask."""
    for name in names:
        for file, parse in ((name if name == "cpulist" else f"{name}_list", cpu_list), (name, cpu_mask)):
            text = tree.read_text(f"{folder}/{file}")
            if text is not None and text.strip("\0\n "):
                return parse(text, f"{tree.source}/{folder}/{file}")
    return None


def _int(tree: Tree, path: str) -> int | None:
    """A number of at least 0; the kernel writes -1 (or 65535 for a cluster) where it has none."""
    text = (tree.read_text(path) or "").strip("\0\n ")
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


#: The lists of a part's CPUs by the names that kernels gave them, newest first.
_SETS = {
    "socket": ("package_cpus", "core_siblings"),
    "die": ("die_cpus",),
    "cluster": ("cluster_cpus",),
    "core": ("core_cpus", "thread_siblings"),
}


def _numbered(tree: Tree, folder: str, prefix: str) -> list[int]:
    matches = (re.fullmatch(prefix + r"(\d{1,6})", name) for name in tree.names(folder))
    return sorted(int(match[1]) for match in matches if match)


def _online(tree: Tree) -> tuple[int, ...]:
    """The online CPUs: the kernel's list, else the CPUs that have a topology and are not marked offline."""
    listed = _list(tree, f"{CPU}/online")
    if listed:
        return listed
    return tuple(
        cpu
        for cpu in _numbered(tree, CPU, "cpu")
        if (tree.read_text(f"{CPU}/cpu{cpu}/online") or "1").strip() != "0" and tree.names(f"{CPU}/cpu{cpu}/topology")
    )


def _numa(tree: Tree) -> list[NumaNode]:
    numbers = _numbered(tree, NODE, "node")
    online = _list(tree, f"{NODE}/online")
    if online:
        numbers = [number for number in numbers if number in online]
    nodes = []
    for number in numbers:
        folder = f"{NODE}/node{number}"
        cpus = _list(tree, f"{folder}/cpulist")
        if cpus is None:
            text = tree.read_text(f"{folder}/cpumap")
            cpus = cpu_mask(text, f"{tree.source}/{folder}/cpumap") if text else ()
        memory = re.search(r"MemTotal:\s*(\d{1,15}) kB", tree.read_text(f"{folder}/meminfo") or "")
        row = (tree.read_text(f"{folder}/distance") or "").split()
        whole = len(row) == len(numbers) and all(re.fullmatch(r"\d{1,9}", d) for d in row)
        distances = tuple(map(int, row)) if whole else ()
        nodes.append(NumaNode(number, cpus, int(memory[1]) * 1024 if memory else None, distances))
    return nodes


def _read_topology(tree: Tree, facts: Facts) -> None:
    """Sockets, dies, clusters and cores from each CPU's `topology` directory."""
    online = frozenset(facts.cpus)
    numbers: dict[tuple[int | None, ...], int] = {}
    parts: dict[str, dict[int, int]] = {level: {} for level in _SETS}
    for cpu in facts.cpus:
        folder = f"{CPU}/cpu{cpu}/topology"
        package, die, cluster, core = (
            _int(tree, f"{folder}/{name}") for name in ("physical_package_id", "die_id", "cluster_id", "core_id")
        )
        if core is not None:
            facts.core_ids[cpu] = core
        if die is not None:
            facts.die_ids[cpu] = die
        keys: dict[str, tuple[int | None, ...]] = {
            "socket": (package,),
            "die": (package, die),
            "cluster": (package, die, None if cluster == _NO_CLUSTER else cluster),
            "core": (package, die, cluster, core),
        }
        for level, key in keys.items():
            if level == "die" and die is None:
                continue  # Arm lists each CPU as its own die and numbers it -1
            cpus = [c for c in _set(tree, folder, *_SETS[level]) or () if c in online]
            if level == "socket" and package is not None:
                parts[level][cpu] = package  # right even where the lists are not
            elif cpu in cpus:
                parts[level][cpu] = min(cpus)
            elif key[-1] is not None:
                parts[level][cpu] = numbers.setdefault((len(key), *key), cpu)
    for level, by_cpu in parts.items():
        if by_cpu:
            facts.parts[level], facts.provenance[level] = by_cpu, "sysfs"
        missing = [cpu for cpu in facts.cpus if cpu not in by_cpu]
        if by_cpu and missing and level in ("socket", "core"):
            facts.warn("unknown", of=level, level=level, cpus=list_text(missing))


def _from_cpuinfo(blocks: identity.Blocks, facts: Facts) -> None:
    """APIC ids, which only /proc/cpuinfo has; sockets and cores where sysfs has none."""

    def numbers(key: str) -> dict[int, int]:
        texts = ((cpu, block.get(key, "")) for cpu, block in blocks.items() if cpu in online)
        return {cpu: int(text) for cpu, text in texts if re.fullmatch(r"\d{1,10}", text)}

    online = frozenset(facts.cpus)
    apicids = numbers("apicid")
    if apicids and len(set(apicids.values())) != len(apicids):
        facts.warn("apicids-repeat", "cpuinfo")
    elif len(apicids) == len(facts.cpus):
        facts.apicids, facts.provenance["apicid"] = apicids, "sysfs"
    sockets, cores = numbers("physical id"), numbers("core id")
    if "socket" not in facts.parts and sockets:
        facts.parts["socket"], facts.provenance["socket"] = sockets, "sysfs"
    if "core" not in facts.parts and sockets and cores and set(sockets) == set(cores):
        first: dict[tuple[int, int], int] = {}
        facts.parts["core"] = {cpu: first.setdefault((sockets[cpu], cores[cpu]), cpu) for cpu in sorted(cores)}
        facts.provenance["core"] = "sysfs"
    facts.core_ids = facts.core_ids or cores


def _read_caches(tree: Tree, facts: Facts) -> None:
    """CCX are the CPUs that share an L3; an L2 that several cores share makes a cluster of them."""
    online = frozenset(facts.cpus)
    shared: dict[int, dict[int, int]] = {2: {}, 3: {}}
    for cpu in facts.cpus:
        for index in _numbered(tree, f"{CPU}/cpu{cpu}/cache", "index"):
            folder = f"{CPU}/cpu{cpu}/cache/index{index}"
            level = _int(tree, f"{folder}/level")
            if level not in shared or (tree.read_text(f"{folder}/type") or "").strip() == "Instruction":
                continue
            cpus = [c for c in _set(tree, folder, "shared_cpu", "shared_cpu_map") or () if c in online]
            if cpu in cpus:
                shared[level][cpu] = min(cpus)
            identifier = _int(tree, f"{folder}/id")
            if level == 3 and identifier is not None:
                facts.l3_ids[cpu] = identifier
    if shared[3]:
        facts.parts["ccx"], facts.provenance["ccx"] = shared[3], "sysfs"
    cores = facts.parts.get("core", {})
    core_count = len({cores.get(cpu, cpu) for cpu in facts.cpus})

    def joins_cores(by_cpu: dict[int, int]) -> bool:
        return len(by_cpu) == len(facts.cpus) and len(set(by_cpu.values())) < core_count

    if not joins_cores(facts.parts.get("cluster", {})):
        facts.parts.pop("cluster", None)
        facts.provenance.pop("cluster", None)
        if joins_cores(shared[2]):
            facts.parts["cluster"], facts.provenance["cluster"] = shared[2], "sysfs"


def _completeness(tree: Tree, facts: Facts) -> None:
    """CPUs that are there and do not run, or that this view may not use."""
    present = _list(tree, f"{CPU}/present")
    missing = sorted(set(present or ()) - set(facts.cpus))
    if present is not None:
        facts.complete = not missing
    if missing and facts.smt_off and len(missing) <= len(facts.cpus):
        facts.complete = True  # only siblings are off: every core is seen
    elif missing:
        facts.warn("offline-cpus", "labels", cpus=list_text(missing), are="is" if len(missing) == 1 else "are")
    allowed = _allowed(tree)
    hidden = sorted(set(facts.cpus) - set(allowed)) if allowed else []
    if hidden:
        facts.warn("cpus-not-allowed", "labels", count=len(hidden), all=len(facts.cpus), cpus=list_text(hidden))


def _allowed(tree: Tree) -> tuple[int, ...] | None:
    """The CPUs that the capturing process might use: a survey's own note, else /proc/self/status."""
    note = _list(tree, "nodeprint/affinity")
    if note is not None:
        return note
    status = re.search(r"^Cpus_allowed_list:\s*(\S+)", tree.read_text("proc/self/status") or "", re.MULTILINE)
    return cpu_list(status[1], f"{tree.source}/proc/self/status") if status else None

"""lstopo's XML, of hwloc 1.x (`Socket`, `Cache` with a depth) and 2.x (`Package`, `L3Cache`, NUMA nodes as memory).

The format is described in hwloc's documentation, "Importing and exporting topologies from/to XML files".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from nodeprint.errors import NodeprintError, printable
from nodeprint.machine.topology.facts import CPU_LIMIT, Facts, cpu_mask, list_text
from nodeprint.machine.topology.machine import virtual_by_name
from nodeprint.machine.topology.model import Machine, NumaNode, Provenance
from nodeprint.machine.tree import contents

#: Object types to levels; hwloc 1's are added by `_level`.
_LEVELS = {
    "Package": "socket",
    "Socket": "socket",
    "Die": "die",
    "L3Cache": "ccx",
    "L2Cache": "cluster",
    "Core": "core",
}

#: What hwloc calls groups of cores below the L3 (its own name of a CPU cluster, or of what shares an L2).
_CLUSTERS = ("Cluster", "Module", "Tile", "Compute Unit", "Compute-Unit")

_DMI = ("SysVendor", "ProductName", "BoardVendor", "BoardName", "ChassisVendor", "BIOSVendor")

_KINDS = {"IntelCore": "performance", "IntelAtom": "efficiency"}


def read(path: Path) -> Facts:
    """The facts of an lstopo XML. Raises NodeprintError naming the file, and the line where it is not XML."""
    root = _load(path)
    machine = next((element for element in root.iter("object") if element.get("type") == "Machine"), None)
    pus = [_index(element, path) for element in root.iter("object") if element.get("type") == "PU"]
    if machine is None or not pus:
        raise NodeprintError("has no machine with PUs", where=path, advice="write it with `lstopo file.xml`")
    info = {**_info(root), **_info(machine)}  # hwloc 3 has some of the machine's on top
    facts = Facts(str(path), _machine(machine, info), tuple(sorted(set(pus))))
    machine_cpus = frozenset(facts.cpus)
    backend: Provenance = "cpuid" if info.get("Backend") == "x86" else "sysfs"
    groups = False
    ids = {"ccx": facts.l3_ids, "die": facts.die_ids, "core": facts.core_ids}
    for element in machine.iter("object"):
        level = _level(element)
        cpus = _cpus(element, machine_cpus, path) if level is not None else []
        if level is None or not cpus:
            continue
        if level == "cluster" and element.get("type") == "Group":
            if not groups:
                facts.parts.pop("cluster", None)
            groups = True
        elif level == "cluster" and groups:
            continue
        by_cpu = facts.parts.setdefault(level, {})
        by_cpu |= dict.fromkeys(cpus, cpus[0])
        number = element.get("os_index", "")
        if re.fullmatch(r"\d{1,10}", number):
            if level in ids:
                ids[level] |= dict.fromkeys(cpus, int(number))
            elif level == "socket":
                by_cpu |= dict.fromkeys(cpus, int(number))
    _drop_private_clusters(facts)
    facts.provenance.update(dict.fromkeys(facts.parts, backend))
    facts.numa_nodes = tuple(_numa(root, machine, machine_cpus, path))
    facts.kinds = _kinds(root, machine_cpus, path)
    _completeness(machine, facts, path)
    return facts


def _load(path: Path) -> ElementTree.Element:
    try:
        data = contents(path)
        if b"<!ENTITY" in data:
            raise NodeprintError("is not an XML file of lstopo", where=path, advice="write it with `lstopo file.xml`")
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        line, column = getattr(error, "position", (None, None))
        raise NodeprintError(
            f"is not XML ({printable(str(error))})",
            where=path,
            line=line,
            column=column,
            advice="write it with `lstopo file.xml`",
        ) from None
    if root.tag != "topology":
        raise NodeprintError(f"is not a topology but <{printable(root.tag, 40)}>", where=path)
    return root


def _index(element: ElementTree.Element, path: Path) -> int:
    text = element.get("os_index", "")
    if not re.fullmatch(r"\d{1,6}", text) or int(text) >= CPU_LIMIT:
        raise NodeprintError(f"a {element.get('type')} has no os_index", where=path)
    return int(text)


def _info(element: ElementTree.Element) -> dict[str, str]:
    return {info.get("name", ""): info.get("value", "") for info in element.findall("info")}


def _level(element: ElementTree.Element) -> str | None:
    kind = element.get("type", "")
    if element.get("subtype") == "MemorySideCache":
        return None  # before a memory, not shared by cores
    if kind == "Cache" and element.get("cache_type", "0") != "2":
        return {"3": "ccx", "2": "cluster"}.get(element.get("depth", ""))
    if kind == "Group":
        name = element.get("subtype") or _info(element).get("Type")
        return "cluster" if name in _CLUSTERS else "die" if name == "Die" else None
    return _LEVELS.get(kind)


def _cpus(element: ElementTree.Element, machine_cpus: frozenset[int], path: Path) -> list[int]:
    mask = element.get("cpuset")
    return [cpu for cpu in cpu_mask(mask, path) if cpu in machine_cpus] if mask else []


def _drop_private_clusters(facts: Facts) -> None:
    cores, cluster = facts.parts.get("core", {}), facts.parts.get("cluster", {})
    count = len({cores.get(cpu, cpu) for cpu in facts.cpus})
    if cluster and (len(cluster) < len(facts.cpus) or len(set(cluster.values())) >= count):
        del facts.parts["cluster"]


def _machine(machine: ElementTree.Element, info: dict[str, str]) -> Machine:
    package = next((e for e in machine.iter("object") if e.get("type") in ("Package", "Socket")), None)
    info = {**info, **(_info(package) if package is not None else {})}

    def number(name: str) -> int | None:
        text = info.get(name, "").strip()
        return int(text, 0) if re.fullmatch(r"0x[0-9a-fA-F]{1,8}|[1-9]\d{0,8}|0", text) else None

    arm = "CPUImplementer" in info
    name = " ".join(info.get("CPUModel", "").split())
    return Machine(
        vendor=printable(info.get("CPUImplementer" if arm else "CPUVendor", "")) or None,
        family=number("CPUArchitecture" if arm else "CPUFamilyNumber"),
        model=number("CPUPart" if arm else "CPUModelNumber"),
        stepping=number("CPURevision" if arm else "CPUStepping"),
        name=printable(name) or None,
        architecture=printable(info.get("Architecture", "")) or None,
        virtual=virtual_by_name(*(info.get(f"DMI{name}", "") for name in _DMI)),
    )


def _numa(
    root: ElementTree.Element, machine: ElementTree.Element, machine_cpus: frozenset[int], path: Path
) -> Iterator[NumaNode]:
    """NUMA nodes. hwloc shows memory-only nodes beside the CPUs that they are near; a CPU's own is the closest."""
    elements = [element for element in machine.iter("object") if element.get("type") == "NUMANode"]
    near = {_index(element, path): (element, _cpus(element, machine_cpus, path)) for element in elements}
    own: dict[int, int] = {}
    for node, (_, cpus) in sorted(near.items(), key=lambda item: (len(item[1][1]), item[0]), reverse=True):
        own |= dict.fromkeys(cpus, node)
    distances = _distances(root, sorted(near), list(near))
    for node, (element, _) in sorted(near.items()):
        memory = element.get("local_memory", "")
        yield NumaNode(
            node,
            tuple(sorted(cpu for cpu, nearest in own.items() if nearest == node)),
            int(memory) if re.fullmatch(r"\d{1,18}", memory) else None,
            distances.get(node, ()),
        )


def _distances(root: ElementTree.Element, nodes: list[int], in_order: list[int]) -> dict[int, tuple[int, ...]]:
    """SLIT rows by node: `distances2` of hwloc 2, or the relative ones of hwloc 1."""
    for element in root.iter("distances2"):
        if element.get("type") != "NUMANode" or element.get("name", "NUMALatency") != "NUMALatency":
            continue
        order = " ".join(e.text or "" for e in element.findall("indexes")).split()
        values = " ".join(e.text or "" for e in element.findall("u64values")).split()
        if all(re.fullmatch(r"\d{1,9}", word) for word in (*order, *values)):
            return _rows(list(map(int, order)), list(map(int, values)), nodes)
    for element in root.iter("distances"):
        base = element.get("latency_base", "")
        latencies = [e.get("value", "") for e in element.findall("latency")]
        if all(re.fullmatch(r"\d+(\.\d+)?", word) for word in (base, *latencies)):
            return _rows(in_order, [round(float(base) * float(value)) for value in latencies], nodes)
    return {}


def _rows(order: list[int], values: list[int], nodes: list[int]) -> dict[int, tuple[int, ...]]:
    if sorted(order) != nodes or len(values) != len(nodes) ** 2:
        return {}
    place = {node: order.index(node) for node in nodes}
    return {a: tuple(values[place[a] * len(nodes) + place[b]] for b in nodes) for a in nodes}


def _kinds(root: ElementTree.Element, machine_cpus: frozenset[int], path: Path) -> dict[int, str]:
    out: dict[int, str] = {}
    for number, element in enumerate(root.iter("cpukind")):
        name = _info(element).get("CoreType", "")
        kind = _KINDS.get(name) or printable(name) or f"kind {element.get('forced_efficiency', number)}"
        out |= dict.fromkeys(_cpus(element, machine_cpus, path), kind)
    return out if len(set(out.values())) > 1 else {}


def _completeness(machine: ElementTree.Element, facts: Facts, path: Path) -> None:
    complete = machine.get("complete_cpuset")
    if not complete:
        return
    missing = sorted(set(cpu_mask(complete, path)) - set(facts.cpus))
    facts.complete = not missing
    if missing:
        facts.warn("cpus-not-allowed", "xml", cpus=list_text(missing), are="is" if len(missing) == 1 else "are")

"""A node's configuration as read from its files: processor, NUMA, settings, firmware, devices and limits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from nodeprint.errors import NodeprintError, printable
from nodeprint.machine import cgroup, memory_modules
from nodeprint.machine.fingerprint import NODE_TOKENS, Value, known_fields, normalized_cmdline
from nodeprint.machine.topology.facts import cpu_list
from nodeprint.machine.tree import Tree

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"
_PCI = "sys/bus/pci/devices"
_ADAPTERS = "sys/class/infiniband"
_PLATFORM = "sys/devices/platform"

#: Modules that take CPU time, change clocks, or carry messages and files; drivers of devices are seen by their links.
_MODULES = re.compile(
    r"acpi_cpufreq|amd64_edac|amd_energy|amd_hsmp|amd_uncore|bpf.*|hpet|intel_(cstate|powerclamp|rapl.*|uncore.*)|ipmi_\w+"
    r"|isst_.*|k10temp|knem|kvm\w*|lustre|mlx[45]_core|mmfs.*|msr|nvidia\w*|amdgpu|ofi\w*|pcc_cpufreq|vtune|sep\d*|xpmem|zfs"
)
_PARAMETERS = (
    "kernel/perf_event_paranoid",
    "kernel/randomize_va_space",
    "kernel/sched_autogroup_enabled",
    "kernel/timer_migration",
    "kernel/watchdog",
    "vm/compaction_proactiveness",
    "vm/nr_hugepages",
    "vm/overcommit_memory",
    "vm/stat_interval",
    "vm/swappiness",
    "vm/zone_reclaim_mode",
)
#: PCI base classes: storage, network, display, accelerators.
_LINKED_CLASSES = ("0x01", "0x02", "0x03", "0x12")


def read_fingerprint(tree: Tree, node_tokens: Sequence[str] = NODE_TOKENS) -> dict[str, Value]:
    """The fingerprint of a root or a survey; absent or garbled values are unknown.

    `node_tokens` are keys of the command line that belong to one node.
    """
    return known_fields(_fields(tree, node_tokens))


def _fields(tree: Tree, node_tokens: Sequence[str]) -> dict[str, Value | None]:
    """Every field of a node's configuration, None where the tree does not say; `node_tokens` as of
    `read_fingerprint`."""
    processor = _processor(tree)
    firmware = _firmware(tree, int(processor["sockets"] or 0))
    parts = (processor, _numa(tree), _settings(tree, node_tokens), firmware, _devices(tree))
    return {name: value for part in (*parts, _limits(tree)) for name, value in part.items()}


def chosen(text: str | None) -> str | None:
    """The choice in a sysfs list such as `always [madvise] never`; the text itself without brackets."""
    match = re.search(r"\[([^\]]*)\]", text or "")
    return match[1] if match else _clean(text)


def _processor(tree: Tree) -> dict[str, Value | None]:
    block = _first_block(tree.read_text("proc/cpuinfo") or "")
    online = _cpus(tree, f"{_CPU}/online")
    cores: dict[str, list[int]] = {}
    sockets: set[str] = set()
    l3s: dict[str, set[str]] = {}
    for cpu in online:
        folder = f"{_CPU}/cpu{cpu}"
        core = _text(tree, f"{folder}/topology/core_cpus_list") or _text(
            tree, f"{folder}/topology/thread_siblings_list"
        )
        socket = _text(tree, f"{folder}/topology/physical_package_id")
        if core:
            cores.setdefault(core, []).append(cpu)
        if socket:
            sockets.add(socket)
        for index in tree.names(f"{folder}/cache"):
            if core and _text(tree, f"{folder}/cache/{index}/level") == "3":
                shared = _text(tree, f"{folder}/cache/{index}/shared_cpu_list")
                if shared:
                    l3s.setdefault(shared, set()).add(core)
    smt = _flag(tree, f"{_CPU}/smt/active")
    nodes = _cpus(tree, f"{_NODE}/online")
    per_socket = len(nodes) // len(sockets) if sockets and nodes and len(nodes) % len(sockets) == 0 else None
    return {
        "cpu": _clean(block.get("model name") or block.get("cpu")),
        "cpu_family": _clean(block.get("cpu family") or block.get("CPU architecture")),
        "cpu_model": _clean(block.get("model") or block.get("CPU part")),
        "cpu_stepping": _clean(block.get("stepping") or block.get("CPU revision")),
        "sockets": len(sockets) or None,
        "cores": len(cores) or None,
        "cpus": len(online) or None,
        "cores_per_l3": _counted(len(group) for group in l3s.values()),
        "smt": smt if smt is not None else (max(map(len, cores.values())) > 1 if cores else None),
        "numa_nodes_per_socket": per_socket,
        "virtual": "hypervisor" in block["flags"].split() if "flags" in block else None,
        "microcode": _clean(block.get("microcode")) or _text(tree, f"{_CPU}/cpu0/microcode/version"),
    }


def _numa(tree: Tree) -> dict[str, Value | None]:
    nodes = _cpus(tree, f"{_NODE}/online")
    rows = [" ".join((tree.read_text(f"{_NODE}/node{node}/distance") or "").split()) for node in nodes]
    sizes = [memory_bytes(tree, node) for node in nodes]
    gib = [str(round(size / 2**30)) for size in sizes if size is not None]
    # Linux counts what a guest's host added later in the whole, and in its NUMA node only where it was there at boot.
    total = _total_bytes(tree, "proc/meminfo")
    return {
        "numa_nodes": len(nodes) or None,
        "numa_distances": "; ".join(rows) if rows and all(rows) else None,
        "memory_gib": round((total or sum(size for size in sizes if size is not None)) / 2**30) or None,
        "memory_per_node_gib": " ".join(gib) if gib and len(gib) == len(nodes) else None,
    }


def _settings(tree: Tree, node_tokens: Sequence[str]) -> dict[str, Value | None]:
    cmdline = tree.read_text("proc/cmdline")
    cpus = _cpus(tree, f"{_CPU}/online")
    policies = [f"{_CPU}/cpu{cpu}/cpufreq" for cpu in cpus]
    highest = [_integer(tree.read_text(f"{policy}/scaling_max_freq")) for policy in policies]
    mhz = sorted({khz // 1000 for khz in highest if khz is not None})
    mitigated = [
        name
        for name in tree.names(f"{_CPU}/vulnerabilities")
        if (_text(tree, f"{_CPU}/vulnerabilities/{name}") or "").startswith("Mitigation")
    ]
    states = sorted(
        {
            _text(tree, f"{_CPU}/cpu{cpu}/cpuidle/{state}/name") or state
            for cpu in cpus
            for state in tree.names(f"{_CPU}/cpu{cpu}/cpuidle")
            if _text(tree, f"{_CPU}/cpu{cpu}/cpuidle/{state}/disable") not in (None, "0")
        }
    )
    return {
        "cmdline": normalized_cmdline(cmdline, node_tokens) if cmdline is not None else None,
        "governor": _different(tree, [f"{policy}/scaling_governor" for policy in policies]),
        "boost": boost(tree),
        "kernel": _clean(tree.read_text("proc/sys/kernel/osrelease")) or _release(tree.read_text("proc/version")),
        "os": _os_name(tree.read_text("etc/os-release") or tree.read_text("usr/lib/os-release") or ""),
        "frequency_driver": _different(tree, [f"{policy}/scaling_driver" for policy in policies]),
        "frequency_max_mhz": " ".join(map(str, mhz)) or None,
        "modules": " ".join(_modules(tree)) or None,
        "kernel_parameters": " ".join(_parameters(tree)) or None,
        "idle_driver": _text(tree, f"{_CPU}/cpuidle/current_driver"),
        "idle_states_off": " ".join(states) or None,
        "clocksource": _text(tree, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "thp": chosen(tree.read_text("sys/kernel/mm/transparent_hugepage/enabled")),
        "numa_balancing": _flag(tree, "proc/sys/kernel/numa_balancing"),
        "nmi_watchdog": _flag(tree, "proc/sys/kernel/nmi_watchdog"),
        "mitigations": " ".join(mitigated) or None,
        "cpus_isolated": _text(tree, f"{_CPU}/isolated"),
    }


def _firmware(tree: Tree, sockets: int) -> dict[str, Value | None]:
    dimms = memory_modules.populated(memory_modules.all_slots(tree))
    by_socket = memory_modules.channels_by_socket(tree, sockets)
    return {
        "bios": _text(tree, "sys/class/dmi/id/bios_version"),
        "product": _text(tree, "sys/class/dmi/id/product_name"),
        "dimms": _counted(" ".join(filter(None, (device.get("Size"), device.get("Type")))) for device in dimms),
        "dimm_speed": ", ".join(sorted({*map(memory_modules.configured_speed, dimms)} - {""})) or None,
        "dimm_rated_speed": ", ".join(sorted({*map(memory_modules.rated_speed, dimms)} - {""})) or None,
        "memory_channels": memory_modules.populated_channels(tree),
        "memory_channels_per_socket": None if by_socket is None else ", ".join(map(str, by_socket)),
        "dimm_slots": _slots(dimms),
        "serials": ", ".join(_serials(tree, dimms)) or None,
        "bmc": _different(tree, [f"{_PLATFORM}/{name}/firmware_revision" for name in tree.names(_PLATFORM)]),
    }


def _devices(tree: Tree) -> dict[str, Value | None]:
    adapters = [(name, _text(tree, f"{_ADAPTERS}/{name}/fw_ver")) for name in tree.names(_ADAPTERS)]
    cards = [(name, _driver_firmware(tree, name)) for name in tree.names("nodeprint/ethtool")]
    return {
        "adapter_firmware": ", ".join(f"{name} {version}" for name, version in adapters + cards if version) or None,
        "pcie_links": ", ".join(_links(tree)) or None,
    }


def _links(tree: Tree) -> Iterator[str]:
    for name in tree.names(_PCI):
        device = {key: _text(tree, f"{_PCI}/{name}/{key}") for key in ("class", "vendor", "device")}
        width, most = (_text(tree, f"{_PCI}/{name}/{key}_link_width") for key in ("current", "max"))
        if width not in (None, "0") and (device["class"] or "").startswith(_LINKED_CLASSES):
            identity = ":".join((device[key] or "?").removeprefix("0x") for key in ("vendor", "device"))
            yield f"{name} {identity} x{width}" + (f" of x{most}" if most not in (None, width) else "")


def _driver_firmware(tree: Tree, name: str) -> str | None:
    match = re.search(r"^firmware-version: *(\S.*)", tree.read_text(f"nodeprint/ethtool/{name}") or "", re.MULTILINE)
    return _clean(match[1]) if match else None


def _modules(tree: Tree) -> list[str]:
    names = (line.split(" ", 1)[0] for line in (tree.read_text("proc/modules") or "").splitlines())
    return sorted(name for name in names if _MODULES.fullmatch(name))


def _parameters(tree: Tree) -> Iterator[str]:
    for path in _PARAMETERS:
        value = _text(tree, f"proc/sys/{path}")
        if value is not None:
            yield f"{path.replace('/', '.')}={value}"


def _slots(dimms: Sequence[Mapping[str, str]]) -> str | None:
    """Which module is in which slots: `64 GB DDR4 Maker Part: P0 A DIMM 0, P0 B DIMM 0; ...`."""
    places: dict[str, list[str]] = {}
    for device, slot in zip(dimms, _slot_names(dimms), strict=True):
        module = " ".join(filter(None, (device.get(key) for key in ("Size", "Type", "Manufacturer", "Part Number"))))
        places.setdefault(module, []).append(slot)
    return "; ".join(f"{module}: {', '.join(slots)}" for module, slots in sorted(places.items()) if any(slots)) or None


def _slot_names(dimms: Sequence[Mapping[str, str]]) -> list[str]:
    """A name for each slot: its locator, with that of its bank where locators alone are the same."""
    locators = [device.get("Locator", "") for device in dimms]
    if len(set(locators)) == len(locators):
        return locators
    return [f"{device.get('Bank Locator', '')} {device.get('Locator', '')}".strip() for device in dimms]


def _serials(tree: Tree, dimms: Sequence[Mapping[str, str]]) -> Iterator[str]:
    named = [(part, _text(tree, f"sys/class/dmi/id/{part}_serial")) for part in ("product", "board", "chassis")]
    modules = zip(_slot_names(dimms), dimms, strict=True)
    named += [(slot or "module", device.get("Serial Number")) for slot, device in modules]
    yield from (f"{part} {number}" for part, number in named if number and number.strip("0 "))


def _limits(tree: Tree) -> dict[str, Value | None]:
    memory = cgroup.memory_limit(tree)
    return {
        "cpus_allowed": len(allowed_cpus(tree)) or None,
        "cgroup_cpus": cgroup.cpu_quota(tree),
        "cgroup_memory_gib": None if memory is None else round(memory / 2**30, 2),
    }


def boost(tree: Tree) -> bool | None:
    """Whether clocks above the base clock are allowed (cpufreq/boost, or intel_pstate/no_turbo)."""
    on = _flag(tree, f"{_CPU}/cpufreq/boost")
    off = _flag(tree, f"{_CPU}/intel_pstate/no_turbo")
    return on if on is not None else (None if off is None else not off)


def allowed_cpus(tree: Tree) -> tuple[int, ...]:
    """The CPUs that the process which took the survey, or reads the live root, may use; empty where unknown."""
    allowed = _cpus(tree, "nodeprint/affinity")
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)", tree.read_text("proc/self/status") or "", re.MULTILINE)
    return allowed or (_list(match[1]) if match else ())


def memory_bytes(tree: Tree, node: int) -> int | None:
    """A NUMA node's memory in bytes."""
    return _total_bytes(tree, f"{_NODE}/node{node}/meminfo")


def _total_bytes(tree: Tree, file: str) -> int | None:
    match = re.search(r"MemTotal:\s*(\d{1,15}) kB", tree.read_text(file) or "")
    return int(match[1]) * 1024 if match else None


def _first_block(text: str) -> dict[str, str]:
    """The keys of /proc/cpuinfo, of the first CPU that has them."""
    block: dict[str, str] = {}
    for line in text.splitlines()[:200]:  # more than any block has, and the first has all that is needed
        key, colon, value = line.partition(":")
        if colon:
            block.setdefault(key.strip(), value.strip())
    return block


def _counted(items: Iterator[object]) -> str | None:
    """`8` where all are the same, else `4 x 6, 12 x 8`. Texts are always counted."""
    counts = Counter(str(item) for item in items if item)
    if len(counts) == 1 and next(iter(counts)).isdigit():
        return next(iter(counts))
    ordered = sorted(counts.items(), key=lambda pair: (len(pair[0]), pair[0]))
    return ", ".join(f"{count} x {item}" for item, count in ordered) or None


def _different(tree: Tree, paths: Sequence[str]) -> str | None:
    """The different words in these files."""
    return " ".join(sorted({word for word in (_text(tree, path) for path in paths) if word})) or None


def _cpus(tree: Tree, path: str) -> tuple[int, ...]:
    return _list(tree.read_text(path) or "")


def _list(text: str) -> tuple[int, ...]:
    try:
        return cpu_list(text, "")
    except NodeprintError:
        return ()


def _text(tree: Tree, path: str) -> str | None:
    return _clean(tree.read_text(path))


def _clean(text: str | None) -> str | None:
    return printable(" ".join(text.replace("\0", " ").split())) or None if text else None


def _flag(tree: Tree, path: str) -> bool | None:
    number = _integer(tree.read_text(path))
    return None if number is None else number != 0


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\s*\d{1,18}\s*", text) else None


def _release(version: str | None) -> str | None:
    match = re.match(r"Linux version (\S+)", version or "")
    return _clean(match[1]) if match else None


def _os_name(text: str) -> str | None:
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.MULTILINE)
    return _clean(match[1]) if match else None

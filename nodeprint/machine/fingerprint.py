"""A node's configuration, field by field.

Hard fields change what is measured: nodes that differ in them are different configurations. Soft ones explain groups.
An unknown field is left out and never differs from a value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from nodeprint.errors import printable
from nodeprint.settings.texts import say

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Field:
    """A field's name (with its unit, if any), whether it is hard, and its description."""

    name: str
    hard: bool
    text: str


#: In the order in which they are shown.
FIELDS: tuple[Field, ...] = (
    Field("cpu", True, "model name of the CPU"),
    Field("cpu_family", True, "family by CPUID, architecture on Arm"),
    Field("cpu_model", True, "model by CPUID, part on Arm"),
    Field("cpu_stepping", True, "stepping by CPUID, revision on Arm"),
    Field("sockets", True, "sockets"),
    Field("cores", True, "cores online"),
    Field("cpus", True, "hardware threads online"),
    Field("cores_per_l3", True, "cores that share an L3; counts of L3s where they differ"),
    Field("smt", True, "simultaneous multithreading is active"),
    Field("numa_nodes", True, "NUMA nodes"),
    Field("numa_nodes_per_socket", True, "NPS or SNC"),
    Field("numa_distances", True, "the SLIT, a row per node"),
    Field("memory_per_node_gib", True, "memory of each NUMA node, rounded to 1 GiB"),
    Field("cmdline", True, "the kernel's command line without what belongs to one node"),
    Field("governor", True, "frequency governors in use"),
    Field("boost", True, "clocks above the base clock are allowed"),
    Field("virtual", True, "a virtual machine"),
    Field("kernel_hash", True, "sources of the measuring kernel (from its records)"),
    Field("compiler", True, "compiler of the measuring kernel (from its records)"),
    Field("homes", True, "home nodes of the lines that pairs were measured with (from its records)"),
    Field("microcode", False, "revision of the microcode"),
    Field("bios", False, "version of the BIOS"),
    Field("product", False, "product by DMI"),
    Field("kernel", False, "release of the Linux kernel"),
    Field("os", False, "operating system"),
    Field("dimms", False, "memory modules by size and type"),
    Field("dimm_speed", False, "configured speed of the memory modules"),
    Field("dimm_rated_speed", False, "speed that the memory modules are made for"),
    Field("memory_channels", False, "memory channels with a module, of all sockets"),
    Field("memory_channels_per_socket", False, "memory channels with a module, of each socket"),
    Field("frequency_driver", False, "driver of the CPU's frequency"),
    Field("frequency_max_mhz", False, "highest clock allowed"),
    Field("idle_driver", False, "driver of the CPU's idle states"),
    Field("idle_states_off", False, "idle states that are disabled"),
    Field("clocksource", False, "the kernel's clock"),
    Field("thp", False, "transparent huge pages"),
    Field("numa_balancing", False, "the kernel moves pages between NUMA nodes"),
    Field("nmi_watchdog", False, "the NMI watchdog is on"),
    Field("mitigations", False, "CPU vulnerabilities that the kernel mitigates"),
    Field("cpus_isolated", False, "CPUs kept from the scheduler"),
    Field("memory_gib", False, "memory of the node, rounded to 1 GiB"),
    Field("dimm_slots", False, "memory modules by maker and part, with their slots"),
    Field("bmc", False, "firmware of the baseboard management controller"),
    Field("adapter_firmware", False, "firmware of network adapters"),
    Field("pcie_links", False, "PCIe links of network, storage and accelerator devices: width, and what it could be"),
    Field("modules", False, "loaded kernel modules that measurements may depend on"),
    Field("kernel_parameters", False, "parameters of the running kernel (sysctl)"),
    Field("serials", False, "serial numbers of node, board and memory modules, where the site keeps them"),
    Field("cpus_allowed", False, "CPUs that the measuring process may use"),
    Field("cgroup_cpus", False, "CPUs' worth of time that control groups allow"),
    Field("cgroup_memory_gib", False, "memory that control groups allow"),
)
#: Fields that no verdict uses: other values that may change by themselves or by hand.
DRIFT: frozenset[str] = frozenset(
    {"memory_gib", "dimm_slots", "bmc", "adapter_firmware", "pcie_links", "modules", "kernel_parameters"}
)
#: What separates the items of fields that are long lists: only those in which nodes differ are shown.
LISTS = {"dimm_slots": "; ", "adapter_firmware": ", ", "pcie_links": ", ", "modules": " ", "kernel_parameters": " "}
HARD: frozenset[str] = frozenset(field.name for field in FIELDS if field.hard)
_ORDER = {field.name: number for number, field in enumerate(FIELDS)}

#: Keys of fingerprints and versions that would be misread as they are.
_LABELS: Mapping[str, str] = {
    "bios": "BIOS",
    "bmc": "BMC firmware",
    "bios_date": "BIOS date",
    "cpu": "CPU",
    "cpu_family": "CPU family",
    "cpu_model": "CPU model",
    "cpu_stepping": "CPU stepping",
    "cmdline": "kernel command line",
    "cpus": "CPUs",
    "cpus_allowed": "CPUs allowed",
    "cores_per_l3": "cores per L3",
    "os": "operating system",
    "smt": "SMT",
    "nps": "NPS",
    "kernel": "Linux kernel",
    "kernel_hash": "sources of nodeprint's kernels",
    "compiler": "compiler of nodeprint's kernels",
    "homes": "home nodes of the measured lines",
    "dimm_slots": "memory modules by slot",
    "memory_gib": "memory, GiB",
    "memory_per_node_gib": "memory by NUMA node, GiB",
    "modules": "kernel modules",
    "pcie_links": "PCIe links",
    "serials": "serial numbers",
    "nmi_watchdog": "NMI watchdog",
    "numa_balancing": "NUMA balancing",
    "numa_distances": "NUMA distances",
    "numa_nodes": "NUMA nodes",
    "numa_nodes_per_socket": "NUMA nodes per socket",
    "thp": "transparent huge pages",
    "virtual": "virtual machine",
}


#: Tokens of a command line that belong to one node: their keys, and what in other tokens is replaced by `*`.
NODE_TOKENS: tuple[str, ...] = (
    "BOOTIF", "BOOT_IMAGE", "initrd", "ip", "root", "rootflags", "nfsroot", "resume", "ifname", "hostname", "netroot",
    "rd.luks.uuid", "rd.md.uuid", "rd.lvm.lv", "rd.iscsi.initiator", "ostree", "ds", "systemd.hostname",
)  # fmt: skip
_NODE_VALUES = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # UUID
    r"|\b(?:01[-:])?(?:[0-9a-f]{2}[-:]){5}[0-9a-f]{2}\b"  # MAC, with the hardware type of PXE
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b",  # IPv4
    re.IGNORECASE,
)


def known_fields(values: Mapping[str, Value | None]) -> dict[str, Value]:
    """The known fields of a node in the order of FIELDS, in printable characters."""
    clean = {name: printable(value, 4096) if isinstance(value, str) else value for name, value in values.items()}
    present = {name: value for name, value in clean.items() if value is not None and value != ""}
    return dict(sorted(present.items(), key=lambda item: _ORDER[item[0]]))


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A key in which a node differs from the majority; values are text."""

    key: str
    value: str
    majority: str
    hard: bool

    @property
    def identity(self) -> str:
        """Equal where nodes differ from the majority alike."""
        return f"{self.key}={self.value}"

    @property
    def text(self) -> str:
        """For people."""
        if self.key == "kernel_hash":  # a hash says nothing to a reader
            return say("differs", "kernels")
        values = {"field": label(self.key)}
        if separator := LISTS.get(self.key):
            own, theirs = (text.split(separator) for text in (self.value, self.majority))
            more = separator.join(item for item in own if item not in theirs)
            less = separator.join(item for item in theirs if item not in own)
            key = "both" if more and less else "more" if more else "less" if less else "order"
            return say("differs", key, more=printable(more), less=printable(less), **values)
        return say("differs", "value", value=printable(self.value), majority=printable(self.majority), **values)


def normalized_cmdline(text: str, node_tokens: Sequence[str] = NODE_TOKENS) -> str:
    """A kernel command line without the tokens of one node; UUIDs, MAC and IP addresses elsewhere become `*`."""
    kept = [token for token in text.split() if token.partition("=")[0] not in node_tokens]
    return printable(" ".join(_NODE_VALUES.sub("*", token) for token in kept), 2000)


def differences(
    nodes: Mapping[str, Mapping[str, Value]], hard: Collection[str] = HARD
) -> dict[str, list[FieldDifference]]:
    """The fields in which each node differs from the majority of `nodes`, by node, hard ones first, then as in FIELDS.

    The nodes are meant to be alike. An unreported field is not a difference. If several values are equally frequent,
    the first in sort order is the majority's.
    """
    out: dict[str, list[FieldDifference]] = {node: [] for node in nodes}
    names = {name for values in nodes.values() for name in values}
    for name in sorted(names, key=lambda name: (name not in hard, _ORDER.get(name, len(_ORDER)), name)):
        reported = {node: values[name] for node, values in nodes.items() if values.get(name) not in (None, "")}
        counts = Counter(reported.values())
        if len(counts) < 2:
            continue
        majority = min(counts, key=lambda value: (-counts[value], str(value)))
        for node, value in reported.items():
            if value != majority:
                out[node].append(FieldDifference(name, str(value), str(majority), name in hard))
    return out


#: The fields that only another processor changes.
PROCESSOR = ("cpu", "cpu_family", "cpu_model", "cpu_stepping", "sockets")


def other_processor(before: Mapping[str, object], now: Mapping[str, object]) -> tuple[str, str, str] | None:
    """The first field that differs, with its values; None where both are the same processor or nothing is known."""
    fields = [key for key in PROCESSOR if before.get(key) is not None and now.get(key) is not None]
    return next(((key, str(before[key]), str(now[key])) for key in fields if before[key] != now[key]), None)


def label(key: str) -> str:
    """A key in words."""
    return _LABELS.get(key, key.replace("_", " "))

"""The identity that the machine reports: vendor, family, model, name, and whether it is a virtual one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nodeprint.errors import printable
from nodeprint.machine.topology.facts import CPU_LIMIT, cpu_list
from nodeprint.machine.topology.model import Machine
from nodeprint.machine.tree import Tree

#: /proc/cpuinfo by CPU: its keys and values.
Blocks = Mapping[int, Mapping[str, str]]

#: arch/x86/include/asm/processor.h, X86_VENDOR_*, as the kernel writes them into `modalias`.
_MODALIAS_VENDORS = {0: "GenuineIntel", 2: "AuthenticAMD", 9: "HygonGenuine", 10: "CentaurHauls"}

#: What hypervisors write into DMI.
_VIRTUAL = re.compile(
    r"QEMU|KVM|VMware|VirtualBox|Virtual Machine|HVM domU|Xen|Bochs|Google Compute Engine|OpenStack|Parallels|BHYVE"
    r"|oVirt|RHEV|Nutanix|Alibaba Cloud ECS|Droplet|vServer|Vultr|Linode|Cloud Server|cloud-hypervisor|Firecracker",
    re.IGNORECASE,
)


def cpuinfo(text: str) -> dict[int, dict[str, str]]:
    """The blocks of /proc/cpuinfo by CPU; keys that are not of one CPU (POWER, s390) are in every block."""
    blocks: dict[int, dict[str, str]] = {}
    common: dict[str, str] = {}
    block = common
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if not colon:
            block = common if not key else block
        elif key == "processor" and re.fullmatch(r"\d{1,9}", value) and int(value) < CPU_LIMIT:
            block = blocks.setdefault(int(value), {})
        else:
            block[key] = value
    return {cpu: {**common, **own} for cpu, own in blocks.items()}


def from_root(tree: Tree, blocks: Blocks) -> Machine:
    """The machine of a root, from /proc/cpuinfo, else the kernel's `modalias`, and DMI."""
    block = blocks[min(blocks)] if blocks else {}
    alias = _from_modalias(tree.read_text("sys/devices/system/cpu/modalias") or "")
    vendor = block.get("vendor_id") or block.get("CPU implementer") or block.get("vendor")
    flags = block.get("flags", "").split()
    arm = "CPU implementer" in block
    name = block.get("model name") or block.get("cpu")
    return Machine(
        vendor=_clean(vendor) or alias.vendor,
        family=_first(_number(block.get("CPU architecture" if arm else "cpu family")), alias.family),
        model=_first(_number(block.get("CPU part" if arm else "model")), alias.model),
        stepping=_number(block.get("CPU revision" if arm else "stepping")),
        name=_clean(name),
        architecture=_architecture(block) or alias.architecture,
        virtual=True if "hypervisor" in flags else _dmi_virtual(tree) or (False if flags else None),
        simulated=tree.read_text("nodeprint/simulated") is not None,
    )


def kinds(tree: Tree, blocks: Blocks) -> dict[int, str]:
    """The kind of each CPU's core where the machine has several: Intel's P and E cores, Arm's part numbers."""
    hybrid: dict[int, str] = {}
    for kind, name in (("performance", "cpu_core"), ("efficiency", "cpu_atom")):
        path = f"sys/devices/{name}/cpus"
        hybrid |= dict.fromkeys(cpu_list(tree.read_text(path) or "", f"{tree.source}/{path}"), kind)
    if hybrid:
        return hybrid
    parts = {cpu: f"part {_clean(block['CPU part'])}" for cpu, block in blocks.items() if block.get("CPU part")}
    return parts if len(set(parts.values())) > 1 else {}


def virtual_by_name(*names: str) -> bool | None:
    """Whether DMI's names of makers and products are of a virtual machine; None without any."""
    if any("metal" in name.lower() for name in names):
        return False
    if any(name.startswith("Amazon EC2") or _VIRTUAL.search(name) for name in names):
        return True
    return False if any(name.strip() for name in names) else None


def _dmi_virtual(tree: Tree) -> bool | None:
    def read(name: str) -> str:
        return (tree.read_text(f"sys/class/dmi/id/{name}") or "").strip()

    if tree.read_text("sys/hypervisor/type"):
        return True
    return virtual_by_name(read("sys_vendor"), read("product_name"))


def _from_modalias(text: str) -> Machine:
    """`cpu:type:x86,ven0000fam0006mod0055:feature:...`, hexadecimal."""
    match = re.match(r"cpu:type:(\w+)(?:,ven([0-9A-F]{4})fam([0-9A-F]{4})mod([0-9A-F]{4}))?", text)
    if match is None:
        return Machine()
    architecture = {"x86": "x86_64"}.get(match[1], match[1])
    if match[2] is None:
        return Machine(architecture=architecture)
    return Machine(
        vendor=_MODALIAS_VENDORS.get(int(match[2], 16)),
        family=int(match[3], 16),
        model=int(match[4], 16),
        architecture=architecture,
    )


def _architecture(block: Mapping[str, str]) -> str | None:
    for key, architecture in (
        ("CPU implementer", "aarch64"),
        ("vendor_id", "x86_64"),
        ("mmu", "ppc64le"),
        ("isa", "riscv64"),
    ):
        if key in block:
            return architecture
    return None


def _clean(text: str | None) -> str | None:
    return printable(" ".join(text.split())) if text else None


def _number(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"0x[0-9a-fA-F]{1,8}|\d{1,9}", text.strip()):
        return None
    return int(text.strip(), 0) if "x" in text else int(text)


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)

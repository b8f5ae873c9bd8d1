"""A simulated node's survey: the files a real node of this topology would show, as a tar.gz of its root."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterable, Mapping

from nodeprint.machine.peak import Memory
from nodeprint.machine.topology import processors
from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.model import Cpu, NumaNode, Topology

#: The fingerprint of every simulated node unless a defect changes it.
FINGERPRINT: Mapping[str, str] = {
    "microcode": "0x830107c",
    "bios": "1.2.3",
    "kernel": "6.1.0-sim",
    "governor": "performance",
    "boost": "1",
    "cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/ram0 quiet",
    "thp": "always [madvise] never",
    #: MT/s that the modules run at, where it is not what they are made for; and channels of a socket without a module.
    "memory_mts": "",
    "memory_channels_empty": "0",
}


def survey(topology: Topology, host: str, changes: Mapping[str, str]) -> bytes:
    """The archive's bytes, equal for equal arguments. `changes` replace values of FINGERPRINT."""
    fields = {**FINGERPRINT, **changes}
    files = dict(_files(topology, host, fields))
    raw = b"".join(_member(name, files[name].encode()) for name in sorted(files))
    return gzip.compress(raw + bytes(-len(raw) % tarfile.RECORDSIZE or tarfile.RECORDSIZE), compresslevel=1, mtime=0)


#: The header of a file without name and size, by tarfile, which takes too long for each of thousands.
_HEADER = tarfile.TarInfo().tobuf(tarfile.USTAR_FORMAT)


def _member(name: str, data: bytes) -> bytes:
    """A file in the archive; names have at most 100 bytes."""
    head = bytearray(_HEADER)
    head[: len(name)] = name.encode()
    head[124:135] = b"%011o" % len(data)
    head[148:156] = b"        "
    head[148:155] = b"%06o\0" % sum(head)
    return bytes(head) + data + bytes(-len(data) % tarfile.BLOCKSIZE)


def _files(topology: Topology, host: str, fields: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    numbers = [cpu.cpu for cpu in topology.cpus]
    everything = list_text(numbers) + "\n"
    base = "sys/devices/system"
    yield f"{base}/cpu/online", everything
    yield f"{base}/cpu/present", everything
    yield f"{base}/cpu/possible", everything
    yield f"{base}/cpu/smt/active", f"{int(bool(topology.machine.smt))}\n"
    yield f"{base}/cpu/cpufreq/boost", fields["boost"] + "\n"
    for cpu in topology.cpus:
        yield from _cpu(topology, cpu, f"{base}/cpu/cpu{cpu.cpu}", fields)
    nodes = topology.numa_nodes
    if nodes:
        yield f"{base}/node/online", list_text(node.node for node in nodes) + "\n"
        yield f"{base}/node/possible", list_text(node.node for node in nodes) + "\n"
        yield f"{base}/node/has_memory", list_text(node.node for node in nodes) + "\n"
    for node in nodes:
        yield f"{base}/node/node{node.node}/cpulist", list_text(node.cpus) + "\n"
        yield f"{base}/node/node{node.node}/distance", " ".join(map(str, node.distances)) + "\n"
        kib = _kib(node)
        yield (
            f"{base}/node/node{node.node}/meminfo",
            f"Node {node.node} MemTotal: {kib:15d} kB\nNode {node.node} MemFree: {kib:16d} kB\n",
        )
    yield "proc/cpuinfo", "".join(_cpuinfo(topology, cpu, fields) for cpu in topology.cpus)
    total = sum(map(_kib, nodes))
    yield "proc/meminfo", f"MemTotal: {total:15d} kB\nMemFree: {total:16d} kB\nMemAvailable: {total:11d} kB\n"
    yield "proc/cmdline", fields["cmdline"] + "\n"
    yield "proc/loadavg", "0.10 0.12 0.09 1/1024 4242\n"
    yield "proc/version", f"Linux version {fields['kernel']} (simulated)\n"
    yield "proc/sys/kernel/numa_balancing", "0\n"
    yield "sys/kernel/mm/transparent_hugepage/enabled", fields["thp"] + "\n"
    yield "sys/class/dmi/id/bios_version", fields["bios"] + "\n"
    yield "sys/class/dmi/id/sys_vendor", "simulated\n"
    yield "sys/class/dmi/id/product_name", f"simulated {topology.machine.name}\n"
    if modules := memory_modules(topology, fields):
        yield "nodeprint/dmidecode.txt", "\n".join(_module(topology, modules, i) for i in range(modules.all_channels))
    yield "nodeprint/hostname", host + "\n"
    yield "nodeprint/affinity", everything
    yield "nodeprint/simulated", "yes\n"


def memory_modules(topology: Topology, fields: Mapping[str, str]) -> Memory | None:
    """One module on each memory channel of the processors, but for what `fields` change; None of a processor whose
    memory is in no table."""
    generation = processors.generation_of(topology.machine)
    if generation is None or not generation.memory or not generation.channels:
        return None
    kind, _, rated = generation.memory.partition("-")
    sockets = len({cpu.socket for cpu in topology.cpus})
    channels = sockets * (generation.channels - int(fields["memory_channels_empty"]))
    mts = int(fields["memory_mts"] or rated)
    return Memory(channels, mts, kind, sockets * generation.channels, int(rated))


def _module(topology: Topology, memory: Memory, number: int) -> str:
    """A slot as dmidecode has it; channels without a module are the last of each socket."""
    sockets = len({cpu.socket for cpu in topology.cpus})
    socket, channel = divmod(number, memory.all_channels // sockets)
    empty = channel >= memory.channels // sockets
    gib = sum(map(_kib, topology.numa_nodes)) // memory.channels >> 20
    size = "No Module Installed" if empty else f"{gib} GB"
    rated, speed = ("Unknown",) * 2 if empty else (f"{memory.rated_mts} MT/s", f"{memory.mts} MT/s")
    return (
        f"Memory Device\n\tSize: {size}\n\tLocator: DIMM 0\n\tBank Locator: P{socket} CHANNEL {chr(65 + channel)}\n"
        f"\tType: {memory.kind}\n\tSpeed: {rated}\n\tConfigured Memory Speed: {speed}\n"
    )


def _cpu(topology: Topology, cpu: Cpu, folder: str, fields: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    def sharing(level: str) -> list[int]:
        part = getattr(cpu, level)
        return [cpu.cpu] if part is None else [peer.cpu for peer in topology.cpus if getattr(peer, level) == part]

    core, package = sharing("core"), sharing("socket")
    yield f"{folder}/online", "1\n"
    yield f"{folder}/topology/physical_package_id", f"{cpu.socket or 0}\n"
    yield f"{folder}/topology/core_id", f"{cpu.core if cpu.core is not None else cpu.cpu}\n"
    yield f"{folder}/topology/die_id", f"{cpu.socket or 0}\n"
    yield f"{folder}/topology/thread_siblings_list", list_text(core) + "\n"
    yield f"{folder}/topology/core_cpus_list", list_text(core) + "\n"
    yield f"{folder}/topology/core_siblings_list", list_text(package) + "\n"
    yield f"{folder}/topology/package_cpus_list", list_text(package) + "\n"
    yield f"{folder}/cpufreq/scaling_governor", fields["governor"] + "\n"
    l3 = sharing("ccx") if cpu.ccx is not None else package
    for index, (level, kind, size, shared) in enumerate(
        (
            (1, "Data", "32K", core),
            (1, "Instruction", "32K", core),
            (2, "Unified", "512K", core),
            (3, "Unified", "32768K", l3),
        )
    ):
        cache = f"{folder}/cache/index{index}"
        yield f"{cache}/level", f"{level}\n"
        yield f"{cache}/type", kind + "\n"
        yield f"{cache}/size", size + "\n"
        yield f"{cache}/shared_cpu_list", list_text(shared) + "\n"
        yield f"{cache}/coherency_line_size", "64\n"


def _cpuinfo(topology: Topology, cpu: Cpu, fields: Mapping[str, str]) -> str:
    machine = topology.machine
    apicid = cpu.apicid if cpu.apicid is not None else cpu.cpu
    return (
        f"processor\t: {cpu.cpu}\nvendor_id\t: {machine.vendor or 'unknown'}\n"
        f"cpu family\t: {machine.family or 0}\n"
        f"model\t\t: {machine.model or 0}\nmodel name\t: {machine.name or 'simulated'}\n"
        f"stepping\t: {machine.stepping or 0}\n"
        f"microcode\t: {fields['microcode']}\ncpu MHz\t\t: 2000.000\nphysical id\t: {cpu.socket or 0}\n"
        f"core id\t\t: {cpu.core if cpu.core is not None else cpu.cpu}\n"
        f"apicid\t\t: {apicid}\ninitial apicid\t: {apicid}\n"
        "flags\t\t: fpu tsc cx16 constant_tsc nonstop_tsc\n\n"
    )


def _kib(node: NumaNode) -> int:
    """A node's memory in KiB; 256 GiB beside CPUs where the topology has none, as if none were missing."""
    return (256 << 20 if node.cpus else 0) if node.memory_bytes is None else node.memory_bytes // 1024

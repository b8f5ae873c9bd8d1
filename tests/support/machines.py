"""Machines that exist nowhere: the files Linux would show, for any layout, made from rows of CPUs.

Laid out by hand here, not by nodeprint's table, so that tests compare two independent accounts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from nodeprint.machine.tree import Tree


class Files(Tree):
    """Files in memory, by path; each ends with a newline. `folders` are there without any."""

    def __init__(self, files: dict[str, str], folders: Iterable[str] = ()) -> None:
        super().__init__("a machine that exists nowhere")
        self.files = {path: f"{content}\n" for path, content in files.items()}
        self.folders = tuple(folders)
        self._names: dict[str, set[str]] = {}
        for path in (*files, *folders):
            parts = path.split("/")
            for depth, name in enumerate(parts):
                self._names.setdefault("/".join(parts[:depth]), set()).add(name)

    def read_bytes(self, path: str) -> bytes | None:
        content = self.files.get(path)
        return None if content is None else content.encode()

    def names(self, path: str) -> list[str]:
        return sorted(self._names.get(path, ()))


@dataclass(frozen=True)
class Row:
    """A hardware thread, with what is true of it. Numbers are machine-wide; `l2` and `die` name groups."""

    cpu: int
    socket: int
    core: int
    thread: int = 0
    quadrant: int | None = None
    ccd: int | None = None
    ccx: int | None = None
    l2: int | None = None
    die: int | None = None
    node: int | None = 0
    apicid: int | None = None
    arm_part: int | None = None


@dataclass(frozen=True)
class Fake:
    """A machine: its CPUs, what /proc/cpuinfo says, SLIT distance by pair of nodes, and further files."""

    rows: tuple[Row, ...]
    vendor: str = "AuthenticAMD"
    family: int = 0x17
    model: int = 0x31
    name: str = "AMD EPYC 7742 64-Core Processor"
    flags: str = "fpu vme topoext"
    distance: Callable[[int, int], int] = lambda a, b: 10 if a == b else 32
    empty_nodes: tuple[int, ...] = ()
    offline: frozenset[int] = frozenset()
    files: dict[str, str] = field(default_factory=dict)
    with_die_lists: bool = True

    def but(self, **changes: object) -> Fake:
        """The machine with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def with_rows(self, change: Callable[[Row], Row | None]) -> Fake:
        """The machine with each row changed, or left out."""
        return replace(self, rows=tuple(row for row in map(change, self.rows) if row is not None))

    def renumbered(self, number: Callable[[int], int]) -> Fake:
        """The machine under other OS numbers."""
        return self.with_rows(lambda row: replace(row, cpu=number(row.cpu)))

    @property
    def online(self) -> tuple[Row, ...]:
        return tuple(sorted((r for r in self.rows if r.cpu not in self.offline), key=lambda row: row.cpu))

    def partition(self, level: str) -> set[tuple[int, ...]]:
        """The true groups of a level over online CPUs."""
        groups: dict[int, list[int]] = {}
        for row in self.online:
            part = getattr(row, level)
            if part is not None:
                groups.setdefault(part, []).append(row.cpu)
        return {tuple(cpus) for cpus in groups.values()}

    def number(self, level: str, row: Row) -> int:
        """What Linux calls the row's core, L3 or die: on x86 from the APIC id, cores inside their socket."""
        if row.apicid is None or level == "socket":
            return int(getattr(row, level))
        if level == "core":
            return (row.apicid - self._first_apicid[row.socket]) // 2
        return row.apicid >> (self._threads[level] - 1).bit_length()

    @cached_property
    def _first_apicid(self) -> dict[int, int]:
        return {row.socket: row.apicid or 0 for row in sorted(self.rows, key=lambda row: -(row.apicid or 0))}

    @cached_property
    def _threads(self) -> dict[str, int]:
        return {level: max(Counter(getattr(r, level) for r in self.rows).values()) for level in ("ccx", "die")}

    def tree(self) -> Files:
        """The files of the machine, in memory: a machine of 512 CPUs has 13,000."""
        cpu_dir, node_dir = "sys/devices/system/cpu", "sys/devices/system/node"
        files = {
            f"{cpu_dir}/online": text([r.cpu for r in self.online]),
            f"{cpu_dir}/present": text([r.cpu for r in self.rows]),
        }
        lists: dict[tuple[str, int], list[int]] = {}
        for row in self.online:
            for key in ("socket", "die", "core", "l2", "ccx"):
                lists.setdefault((key, getattr(row, key)), []).append(row.cpu)
        shared = {part: text(cpus) for part, cpus in lists.items()}
        for row in self.online:
            own = self._files_of_cpu(row, shared)
            files |= {f"{cpu_dir}/cpu{row.cpu}/{path}": content for path, content in own.items()}
        nodes = sorted({r.node for r in self.rows if r.node is not None} | set(self.empty_nodes))
        for node in nodes:
            folder = f"{node_dir}/node{node}"
            files[f"{folder}/cpulist"] = text([r.cpu for r in self.online if r.node == node])
            files[f"{folder}/distance"] = " ".join(str(self.distance(node, other)) for other in nodes)
            files[f"{folder}/meminfo"] = f"Node {node} MemTotal:       1048576 kB"
        files["proc/cpuinfo"] = "\n".join(self._cpuinfo(row) for row in self.online)
        return Files(files | self.files, [f"{cpu_dir}/cpu{row.cpu}" for row in self.rows])

    def write(self, root: Path) -> Path:
        """The files of the machine below `root`, which is returned."""
        tree = self.tree()
        for path, content in tree.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content)
        for folder in tree.folders:
            (root / folder).mkdir(parents=True, exist_ok=True)
        return root

    def write_xml(self, path: Path, version: int = 2, ids: tuple[str, ...] = (), maker: str = "Supermicro") -> Path:
        """The machine as lstopo of hwloc 1 or 2 exports it: `ids` are the levels whose objects have an os_index, as
        from release to release there were more; `maker` is DMI's, none if empty."""
        online, everything = [r.cpu for r in self.online], [r.cpu for r in self.rows]
        package = {"CPUVendor": self.vendor, "CPUFamilyNumber": self.family, "CPUModelNumber": self.model}
        infos = "".join(
            f'<info name="{k}" value="{v}"/>'
            for k, v in {**package, "CPUModel": self.name, "Architecture": "x86_64"}.items()
        )
        infos += f'<info name="DMISysVendor" value="{maker}"/>' if maker else ""
        nested = [("Package" if version == 2 else "Socket", "socket", "")]
        nested += [("Die", "die", "")] if "die" in ids else []
        nested += [("L3Cache", "ccx", "")] if version == 2 else [("Cache", "ccx", ' depth="3" cache_type="0"')]
        nested += [("Core", "core", "")]
        body = self._objects(list(self.online), nested, infos, ids)
        nodes = sorted({r.node for r in self.rows if r.node is not None} | set(self.empty_nodes))
        for node in nodes:
            cpus = [r.cpu for r in self.online if r.node == node] or online
            body += f'<object type="NUMANode" os_index="{node}" cpuset="{mask(cpus)}" local_memory="1073741824"/>'
        values = " ".join(str(self.distance(a, b)) for a in nodes for b in nodes)
        distances = (
            f'<distances2 type="NUMANode" nbobjs="{len(nodes)}" kind="5" name="NUMALatency" indexing="os">'
            f'<indexes length="9">{" ".join(map(str, nodes))}</indexes>'
            f'<u64values length="9">{values}</u64values></distances2>'
        )
        path.write_text(
            '<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE topology SYSTEM "hwloc2.dtd">'
            f'<topology><object type="Machine" cpuset="{mask(online)}" complete_cpuset="{mask(everything)}">'
            f"{infos}{body}</object>{distances}</topology>"
        )
        return path

    def _objects(self, rows: list[Row], nested: list[tuple[str, str, str]], infos: str, ids: tuple[str, ...]) -> str:
        if not nested:
            return "".join(f'<object type="PU" os_index="{r.cpu}" cpuset="{mask([r.cpu])}"/>' for r in rows)
        kind, key, extra = nested[0]

        def index(row: Row) -> str:
            return f' os_index="{self.number(key, row)}"' if key in ids else ""

        groups: dict[int, list[Row]] = {}
        for row in rows:
            groups.setdefault(getattr(row, key), []).append(row)
        return "".join(
            f'<object type="{kind}"{extra}{index(members[0])} cpuset="{mask([r.cpu for r in members])}">{infos}'
            f"{self._objects(members, nested[1:], '', ids)}</object>"
            for members in groups.values()
        )

    def write_cpuid(self, folder: Path, levels: tuple[int, int, int, int] | None) -> Path:
        """Dumps of an AMD machine: leaf 0x80000026 with shifts of core, CCX, CCD and socket, or without it leaf 0xB."""
        folder.mkdir(parents=True, exist_ok=True)
        family = (0xF, self.family - 0xF)
        version = family[1] << 20 | (self.model >> 4) << 16 | family[0] << 8 | (self.model & 15) << 4
        sharers = max(Counter(row.ccx for row in self.rows).values())
        threads = max(r.thread for r in self.rows) + 1
        per_socket = len(self.rows) // len({r.socket for r in self.rows})
        brand = self.name.encode().ljust(48, b"\0")
        for row in self.online:
            apicid = row.apicid or 0
            lines = [
                "1 0 0 0 0 => 10 68747541 444d4163 69746e65",
                f"1 1 0 0 0 => {version:x} {(apicid & 255) << 24:x} {int('hypervisor' in self.flags) << 31:x} 178bfbff",
                f"1 80000008 0 0 0 => 0 0 {per_socket - 1:x} 0",
            ]
            for i in range(3):
                words = [int.from_bytes(brand[16 * i + 4 * j : 16 * i + 4 * j + 4], "little") for j in range(4)]
                lines.append(f"1 {0x80000002 + i:x} 0 0 0 => " + " ".join(f"{word:x}" for word in words))
            lines.append(f"5 8000001d 0 0 0 => {sharers - 1 << 14 | 3 << 5 | 3:x} 0 0 0")
            lines.append("5 8000001d 0 1 0 => 0 0 0 0")
            lines.append(f"1 8000001e 0 0 0 => {apicid:x} {threads - 1 << 8:x} 0 0")
            core, socket = (levels[0], levels[3]) if levels else (threads - 1, (per_socket - 1).bit_length())
            lines.append(f"5 b 0 0 0 => {core:x} {threads:x} 100 {apicid:x}")
            lines.append(f"5 b 0 1 0 => {socket:x} {per_socket:x} 201 {apicid:x}")
            if levels:
                for i, shift in enumerate(levels):
                    count = per_socket if i == 3 else 1
                    lines.append(f"5 80000026 0 {i} 0 => {shift:x} {count:x} {i + 1 << 8 | i:x} {apicid:x}")
                lines.append(f"5 80000026 0 4 0 => 0 0 4 {apicid:x}")
            (folder / f"pu{row.cpu}").write_text("# mask e[abcd]x => e[abcd]x\n" + "\n".join(lines) + "\n")
        return folder

    def _files_of_cpu(self, row: Row, shared: dict[tuple[str, int], str]) -> dict[str, str]:
        def sharing(key: str) -> str:
            return shared[key, getattr(row, key)]

        files = {
            "topology/physical_package_id": str(row.socket),
            "topology/core_id": str(self.number("core", row)),
            "topology/thread_siblings_list": sharing("core"),
            "topology/core_siblings_list": sharing("socket"),
        }
        if row.die is not None:
            files["topology/die_id"] = str(row.die)
            if self.with_die_lists:
                files["topology/die_cpus_list"] = sharing("die")
        for index, (level, kind, key) in enumerate(
            ((1, "Data", "core"), (1, "Instruction", "core"), (2, "Unified", "l2"), (3, "Unified", "ccx"))
        ):
            part = getattr(row, key)
            if part is None and key == "ccx":
                continue
            cache = f"cache/index{index}"
            files[f"{cache}/level"] = str(level)
            files[f"{cache}/type"] = kind
            files[f"{cache}/shared_cpu_list"] = sharing(key if part is not None else "core")
        return files

    def _cpuinfo(self, row: Row) -> str:
        lines = [f"processor\t: {row.cpu}"]
        if row.arm_part is not None:
            lines += ["CPU implementer\t: 0x41", "CPU architecture: 8", f"CPU part\t: {row.arm_part:#x}"]
        else:
            lines += [f"vendor_id\t: {self.vendor}", f"cpu family\t: {self.family}", f"model\t\t: {self.model}"]
            lines += [f"model name\t: {self.name}", "stepping\t: 0", f"flags\t\t: {self.flags}"]
            lines += [f"physical id\t: {row.socket}", f"core id\t\t: {self.number('core', row)}"]
            if row.apicid is not None:
                lines.append(f"apicid\t\t: {row.apicid}")
        return "\n".join([*lines, ""])


def text(cpus: Iterable[int]) -> str:
    """CPUs as a kernel list."""
    out: list[str] = []
    numbers = sorted(cpus)
    while numbers:
        last = next(i for i in range(len(numbers)) if i + 1 == len(numbers) or numbers[i + 1] != numbers[i] + 1)
        out.append(str(numbers[0]) if last == 0 else f"{numbers[0]}-{numbers[last]}")
        numbers = numbers[last + 1 :]
    return ",".join(out)


def mask(cpus: Iterable[int]) -> str:
    """CPUs as hwloc writes a set: 32-bit words, most significant first, zero words left empty but the last."""
    bits = sum(1 << cpu for cpu in cpus)
    words = [bits >> shift & 0xFFFFFFFF for shift in range(0, max(bits.bit_length(), 1), 32)][::-1]
    return ",".join(f"0x{word:08x}" if word else ("0x0" if i == len(words) - 1 else "") for i, word in enumerate(words))


@dataclass(frozen=True)
class Epyc:
    """A recipe: CCDs of a socket in the order in which CPUs are numbered, and how each is built."""

    model: int
    family: int
    name: str
    ccds: tuple[int, ...]
    ccx_per_ccd: int
    cores: int
    core_stride: int
    quadrant: Callable[[int], int]


def _div2(ccd: int) -> int:
    return ccd // 2


def _mod4(ccd: int) -> int:
    return ccd % 4


_GENOA = (0, 4, 8, 2, 6, 10, 3, 7, 11, 1, 5, 9)
NAPLES = Epyc(0x01, 0x17, "AMD EPYC 7601 32-Core Processor", (0, 1, 2, 3), 2, 4, 4, lambda ccd: ccd)
ROME = Epyc(0x31, 0x17, "AMD EPYC 7742 64-Core Processor", tuple(range(8)), 2, 4, 4, _div2)
MILAN = Epyc(0x01, 0x19, "AMD EPYC 7763 64-Core Processor", tuple(range(8)), 1, 8, 8, _div2)
GENOA = Epyc(0x11, 0x19, "AMD EPYC 9654 96-Core Processor", _GENOA, 1, 8, 8, _mod4)
BERGAMO = Epyc(0xA0, 0x19, "AMD EPYC 9754 128-Core Processor", (0, 4, 2, 6, 3, 7, 1, 5), 2, 8, 8, _mod4)
TURIN = Epyc(
    0x02,
    0x1A,
    "AMD EPYC 9755 128-Core Processor",
    (*range(0, 16, 4), *range(2, 16, 4), *range(3, 16, 4), *range(1, 16, 4)),
    1,
    8,
    8,
    _mod4,
)
DENSE = Epyc(0x11, 0x1A, "AMD EPYC 9965 192-Core Processor", _GENOA, 1, 16, 16, _mod4)
WHOLE = {
    "naples": NAPLES,
    "rome": ROME,
    "milan": MILAN,
    "genoa": GENOA,
    "bergamo": BERGAMO,
    "turin": TURIN,
    "dense": DENSE,
}


def epyc(recipe: Epyc, sockets: int = 2, threads: int = 2, nps: int = 1) -> Fake:
    """An EPYC machine as Linux numbers it: cores first, second threads after them all."""
    ccx_stride = recipe.core_stride * 2
    ccd_stride = ccx_stride * recipe.ccx_per_ccd
    socket_stride = ccd_stride * (1 << max(recipe.ccds).bit_length())
    in_order = list(dict.fromkeys(recipe.quadrant(ccd) for ccd in recipe.ccds))
    places = [
        (socket, ccd, ccx, core)
        for socket in range(sockets)
        for ccd in recipe.ccds
        for ccx in range(recipe.ccx_per_ccd)
        for core in range(recipe.cores)
    ]
    rows = []
    for thread in range(threads):
        for number, (socket, ccd, ccx, core) in enumerate(places):
            quadrant = recipe.quadrant(ccd)
            node = {
                0: 0,
                1: socket,
                2: socket * 2 + in_order.index(quadrant) // 2,
                4: socket * 4 + in_order.index(quadrant),
            }
            rows.append(
                Row(
                    cpu=number + thread * len(places),
                    socket=socket,
                    core=number,
                    thread=thread,
                    quadrant=socket * 4 + quadrant,
                    ccd=socket * 16 + ccd,
                    ccx=(socket * 16 + ccd) * 2 + ccx,
                    die=socket * 16 + (ccd if recipe is NAPLES else 0),
                    node=node[nps],
                    apicid=socket * socket_stride + ccd * ccd_stride + ccx * ccx_stride + core * 2 + thread,
                )
            )
    return Fake(
        tuple(rows),
        family=recipe.family,
        model=recipe.model,
        name=recipe.name,
        distance=lambda a, b: 10 if a == b else 12 if nps and a // nps == b // nps else 32,
    )


def xeon(sockets: int = 2, cores: int = 16, threads: int = 2, snc: int = 1, interleaved: bool = False) -> Fake:
    """An Intel server with one L3 a socket, cores of a socket in `snc` NUMA nodes."""
    rows = []
    for thread in range(threads):
        for socket in range(sockets):
            for core in range(cores):
                number = core * sockets + socket if interleaved else socket * cores + core
                node = core % snc * sockets + socket if interleaved else socket * snc + core * snc // cores
                rows.append(
                    Row(
                        cpu=number + thread * sockets * cores,
                        socket=socket,
                        core=socket * cores + core,
                        thread=thread,
                        ccx=socket,
                        node=node,
                        apicid=socket * 256 + core * 2 + thread,
                    )
                )
    return Fake(
        tuple(rows),
        vendor="GenuineIntel",
        family=6,
        model=0x6A,
        name="Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz",
        distance=lambda a, b: 10 if a == b else 21,
    )


def arm(cores: int = 64, sockets: int = 1, cluster: int | None = None, parts: tuple[int, ...] = (0xD40,)) -> Fake:
    """An Arm server: one L3 a socket, no SMT; `parts` repeat over the cores."""
    rows = [
        Row(
            cpu=socket * cores + core,
            socket=socket,
            core=socket * cores + core,
            ccx=socket,
            l2=(socket * cores + core) // cluster if cluster else None,
            node=socket,
            arm_part=parts[core * len(parts) // cores],
        )
        for socket in range(sockets)
        for core in range(cores)
    ]
    return Fake(tuple(rows), vendor="", name="")

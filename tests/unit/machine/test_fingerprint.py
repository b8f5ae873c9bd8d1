"""Fingerprints, control groups, and warnings before measuring, on made-up roots."""

from __future__ import annotations

import itertools
import string
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodeprint.machine import cgroup, fingerprint, preflight
from nodeprint.machine.fingerprint import FieldDifference
from nodeprint.machine.node_configuration import read_fingerprint
from nodeprint.machine.tree import Tree, open_tree
from tests.support.real_parts import missing
from tests.support.server_files import CPU, EDAC, FLAGS, NODE, healthy, memory, module

GROUP = "sys/fs/cgroup"
FAR = "32 32 10 12; 32 32 12 10"


@pytest.fixture
def root(tmp_path: Path) -> Callable[..., Tree]:
    """`root({path: text or None})` makes the healthy server with these files changed, and opens it."""
    numbers = itertools.count()

    def make(changes: Mapping[str, str | None] | None = None) -> Tree:
        folder = tmp_path / f"root{next(numbers)}"
        for path, text in {**healthy(), **(changes or {})}.items():
            if text is not None:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text)
        return open_tree(folder)

    return make


def test_the_fields_of_a_server(root: Callable[..., Tree]) -> None:
    said = read_fingerprint(root())
    assert dict(said) == {
        "cpu": "AMD EPYC 7302",
        "cpu_family": "23",
        "cpu_model": "49",
        "cpu_stepping": "0",
        "sockets": 2,
        "cores": 8,
        "cpus": 16,
        "cores_per_l3": "2",
        "smt": True,
        "numa_nodes": 4,
        "numa_nodes_per_socket": 2,
        "numa_distances": f"10 12 32 32; 12 10 32 32; {FAR}",
        "memory_gib": 256,
        "memory_per_node_gib": "64 64 64 64",
        "cmdline": "ro quiet",
        "governor": "performance",
        "boost": False,
        "virtual": False,
        "microcode": "0x830107c",
        "bios": "2.3.4",
        "kernel": "6.1.0-18-amd64",
        "dimms": "4 x 64 GB DDR4",
        "dimm_speed": "3200 MT/s",
        "clocksource": "tsc",
        "thp": "madvise",
        "numa_balancing": False,
        "mitigations": "retbleed",
        "cpus_allowed": 16,
    }
    assert list(said) == [field.name for field in fingerprint.FIELDS if field.name in said]


@pytest.mark.parametrize(
    ("path", "text", "field", "value"),
    [
        (f"{CPU}/cpufreq/boost", "1\n", "boost", True),
        (f"{CPU}/cpu3/cpufreq/scaling_governor", "powersave\n", "governor", "performance powersave"),
        (f"{CPU}/smt/active", "0\n", "smt", False),
        (f"{NODE}/node2/meminfo", memory(2, 48 << 20), "memory_per_node_gib", "64 64 48 64"),
        (f"{NODE}/node1/distance", "11 10 32 32\n", "numa_distances", f"10 12 32 32; 11 10 32 32; {FAR}"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n", "thp", "always"),
        ("proc/cpuinfo", f"processor: 0\nmodel name: x\nflags: hypervisor {FLAGS}\n", "virtual", True),
        ("nodeprint/affinity", "0-3\n", "cpus_allowed", 4),
        (f"{CPU}/cpu0/cpuidle/state2/disable", "1\n", "idle_states_off", "state2"),
        (f"{GROUP}/system.slice/cpu.max", "150000 100000\n", "cgroup_cpus", 1.5),
    ],
)
def test_a_changed_file_changes_its_field(
    root: Callable[..., Tree], path: str, text: str, field: str, value: object
) -> None:
    before, after = read_fingerprint(root()), read_fingerprint(root({path: text}))
    assert before.get(field) != value
    assert after[field] == value


def test_boost_by_intel_pstate(root: Callable[..., Tree]) -> None:
    for text, value in (("0\n", True), ("1\n", False)):
        changed = {f"{CPU}/cpufreq/boost": None, f"{CPU}/intel_pstate/no_turbo": text}
        assert read_fingerprint(root(changed))["boost"] is value


def test_cores_of_harvested_l3s_are_counted(root: Callable[..., Tree]) -> None:
    alone = {f"{CPU}/cpu{cpu}/cache/index3/shared_cpu_list": f"{cpu % 8},{cpu % 8 + 8}\n" for cpu in (0, 1, 8, 9)}
    assert read_fingerprint(root(alone))["cores_per_l3"] == "2 x 1, 3 x 2"


def test_what_is_absent_is_unknown(tmp_path: Path) -> None:
    (tmp_path / CPU).mkdir(parents=True)
    tree = open_tree(tmp_path)
    assert len(read_fingerprint(tree)) == 0
    assert preflight.check(tree) == []
    assert (cgroup.cpu_quota(tree), cgroup.memory_limit(tree)) == (None, None)


@example([("sys/devices/system/node/node0/distance", b"p\x18w")])
@given(st.lists(st.tuples(st.sampled_from(sorted(healthy())), st.binary(max_size=60)), max_size=6))
def test_garbage_is_unknown_and_never_an_error(
    tmp_path_factory: pytest.TempPathFactory, noise: list[tuple[str, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("garbled")
    garbled = {**{path: text.encode() for path, text in healthy().items()}, **dict(noise)}
    for path, data in garbled.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    tree = open_tree(folder)
    for value in read_fingerprint(tree).values():
        assert not isinstance(value, str) or value.isprintable()
    for warning in preflight.check(tree):
        assert warning.text.isprintable() and warning.advice


@pytest.mark.parametrize(
    "token",
    [
        "BOOTIF=01-3c-ec-ef-00-11-22",
        "ip=10.1.2.3::10.1.0.1:255.255.0.0:cn017:eth0:none",
        "root=UUID=6f1f0b7e-3f2a-4f0c-9f57-2b9d7f5b9f01",
        "initrd=http://boot/cn017.img",
    ],
)
def test_tokens_of_one_node_are_left_out_of_the_command_line(token: str) -> None:
    assert fingerprint.normalized_cmdline(f"quiet {token} isolcpus=3\n") == "quiet isolcpus=3"


def test_addresses_elsewhere_in_the_command_line_are_hidden() -> None:
    one, other = (
        fingerprint.normalized_cmdline(
            f"a=3c:ec:ef:00:11:{last} b=10.0.0.{last}/24 c=x6f1f0b7e-3f2a-4f0c-9f57-2b9d7f5b9f{last}y"
        )
        for last in ("22", "33")
    )
    assert one == other == "a=* b=*/24 c=x*y"


def test_what_matters_stays_in_the_command_line() -> None:
    texts = ["quiet", "quiet mitigations=off", "quiet iommu=pt", "quiet numa_balancing=disable"]
    assert len({fingerprint.normalized_cmdline(text) for text in texts}) == len(texts)


def test_differences_name_the_nodes_that_are_not_like_the_others() -> None:
    fleet: dict[str, dict[str, fingerprint.Value]] = {
        f"n{i}": {"microcode": "0x1", "boost": True, "bios": "1"} for i in range(5)
    }
    fleet["n1"]["microcode"] = "0x2"
    fleet["n2"]["boost"] = False
    del fleet["n3"]["bios"]
    fleet["n2"]["microcode"] = "0x3"
    boost = FieldDifference("boost", "False", "True", hard=True)
    other, third = (FieldDifference("microcode", value, "0x1", hard=False) for value in ("0x2", "0x3"))
    assert fingerprint.differences(fleet) == {"n0": [], "n1": [other], "n2": [boost, third], "n3": [], "n4": []}
    assert [d.key for d in fingerprint.differences(fleet, hard={"microcode"})["n2"]] == ["microcode", "boost"]


values = st.dictionaries(
    st.sampled_from(["cpu", "boost", "bios", "thp"]), st.sampled_from(["a", "b", "", True]), max_size=4
)


@given(st.dictionaries(st.text(string.ascii_lowercase, min_size=1, max_size=3), values, max_size=8))
def test_differences_hold_for_every_fleet(fleet: dict[str, dict[str, fingerprint.Value]]) -> None:
    found = fingerprint.differences(fleet)
    assert found == fingerprint.differences(dict(reversed(fleet.items()))), "the order of nodes does not matter"
    for key in ("cpu", "boost", "bios", "thp"):
        told = {node: str(values[key]) for node, values in fleet.items() if values.get(key) not in (None, "")}
        differing = {node: one for node, of_node in found.items() for one in of_node if one.key == key}
        assert {node: one.value for node, one in differing.items()}.items() <= told.items()
        if not differing:
            assert len(set(told.values())) < 2
            continue
        (majority,) = {one.majority for one in differing.values()}
        counts = Counter(told.values())
        assert len(told) - len(differing) == counts[majority] == max(counts.values())


@pytest.mark.parametrize(
    ("files", "cpus", "memory"),
    [
        ({}, None, None),
        (
            {f"{GROUP}/system.slice/job/cpu.max": "max 100000\n", f"{GROUP}/system.slice/memory.max": "max\n"},
            None,
            None,
        ),
        (
            {
                f"{GROUP}/system.slice/job/cpu.max": "400000 100000\n",
                f"{GROUP}/system.slice/cpu.max": "200000 100000\n",
            },
            2.0,
            None,
        ),
        (
            {
                f"{GROUP}/system.slice/memory.max": "8589934592\n",
                f"{GROUP}/system.slice/job/memory.high": "1073741824\n",
            },
            None,
            1 << 30,
        ),
        (
            {
                "proc/self/cgroup": "4:memory:/slurm/job_1\n3:cpu,cpuacct:/slurm\n",
                f"{GROUP}/memory/slurm/memory.limit_in_bytes": "2147483648\n",
                f"{GROUP}/memory/memory.limit_in_bytes": "9223372036854771712\n",
                f"{GROUP}/cpu/slurm/cpu.cfs_quota_us": "50000\n",
                f"{GROUP}/cpu/slurm/cpu.cfs_period_us": "100000\n",
                f"{GROUP}/cpu/cpu.cfs_quota_us": "-1\n",
            },
            0.5,
            2 << 30,
        ),
        ({"proc/self/cgroup": "0::/../../escape\nnonsense\n", f"{GROUP}/cpu.max": "x y\n"}, None, None),
    ],
)
def test_limits_of_control_groups(
    root: Callable[..., Tree], files: dict[str, str], cpus: float | None, memory: int | None
) -> None:
    assert (cgroup.cpu_quota(root(files)), cgroup.memory_limit(root(files))) == (cpus, memory)


def ids(tree: Tree) -> set[str]:
    return {warning.id for warning in preflight.check(tree)}


def test_a_quiet_server_has_nothing_but_its_smt(root: Callable[..., Tree]) -> None:
    assert ids(root()) == {"smt"}
    assert ids(root({f"{CPU}/smt/active": "0\n"})) == set()


@pytest.mark.parametrize(
    ("id_", "files"),
    [
        ("load", {"proc/loadavg": "3.50 1.00 0.50 4/512 4242\n"}),
        ("steal", {"proc/stat": "cpu  100 0 100 100000 5 0 5 2000 0 0\n"}),
        ("virtual-machine", {"proc/cpuinfo": f"processor: 0\nflags: {FLAGS} hypervisor\n"}),
        ("governor", {f"{CPU}/cpu5/cpufreq/scaling_governor": "schedutil\n"}),
        ("boost", {f"{CPU}/cpufreq/boost": "1\n"}),
        ("clocksource", {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n"}),
        ("tsc-varies", {"proc/cpuinfo": "processor: 0\nflags: fpu tsc\n"}),
        ("thp", {"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n"}),
        ("numa-balancing", {"proc/sys/kernel/numa_balancing": "1\n"}),
        ("cmdline", {"proc/cmdline": "quiet maxcpus=16\n"}),
        ("numa-distances", {f"{NODE}/node0/distance": "10 12 32 33\n"}),
        ("numa-distances", {f"{NODE}/node0/distance": "10 10 32 32\n", f"{NODE}/node1/distance": "10 10 32 32\n"}),
        ("numa-distances", {f"{NODE}/node0/distance": "20 12 32 32\n"}),
        ("offline-cpus", {f"{CPU}/online": "0-14\n"}),
        ("cpus-not-allowed", {"nodeprint/affinity": "0-7\n"}),
        ("cgroup-cpus", {f"{GROUP}/system.slice/job/cpu.max": "800000 100000\n"}),
        ("cgroup-memory", {f"{GROUP}/system.slice/memory.max": "8589934592\n"}),
        ("low-memory", {"proc/meminfo": "MemTotal: 1000000 kB\nMemAvailable: 30000 kB\n"}),
        ("low-memory", {f"{NODE}/node1/meminfo": memory(1, 64 << 20, 20_000)}),
        ("node-without-memory", {f"{NODE}/node1/meminfo": memory(1, 0, 0)}),
        ("memory-uneven", {f"{NODE}/node2/meminfo": memory(2, 48 << 20)}),
        ("memory-uneven", {f"{NODE}/node2/meminfo": memory(2, 60 << 20)}),
        ("dimm-speeds", {"nodeprint/dmidecode.txt": module(2933) + module(3200)}),
        (
            "edac",
            {
                f"{EDAC}/mc0/ce_count": "17\n",
                f"{EDAC}/mc0/dimm3/dimm_ce_count": "17\n",
                f"{EDAC}/mc0/dimm3/dimm_label": "P0_DIMM_C1\n",
            },
        ),
        ("edac", {f"{EDAC}/mc1/ue_count": "1\n"}),
        ("throttled", {f"{CPU}/cpu4/thermal_throttle/core_throttle_count": "3\n"}),
        ("hot", {"sys/class/hwmon/hwmon2/name": "k10temp\n", "sys/class/hwmon/hwmon2/temp1_input": "91000\n"}),
        ("likwid", {"nodeprint/likwid-pin.txt": "missing\n"}),
        ("likwid", {"nodeprint/likwid-pin.txt": "failed: cannot open library\n"}),
        ("lscpu", {"nodeprint/lscpu.txt": None}),
        ("not-root", {"proc/self/status": "Uid:\t1000\t1000\t1000\t1000\nCpus_allowed_list:\t0-15\n"}),
    ],
)
def test_each_warning_comes_alone_and_with_advice(
    root: Callable[..., Tree], id_: str, files: dict[str, str | None]
) -> None:
    tree = root(files)
    assert ids(tree) - {"smt"} == {id_}
    assert all(warning.text and warning.advice for warning in preflight.check(tree))


def test_the_module_with_errors_is_named(root: Callable[..., Tree]) -> None:
    label = {
        f"{EDAC}/mc0/ce_count": "17\n",
        f"{EDAC}/mc0/dimm3/dimm_ce_count": "17\n",
        f"{EDAC}/mc0/dimm3/dimm_label": "P0_DIMM\x1b[31m_C1\n",
        f"{EDAC}/mc0/dimm2/dimm_ce_count": "0\n",
    }
    text = next(w.text for w in preflight.check(root(label)) if w.id == "edac")
    assert "17 corrected" in text and "P0_DIMM?[31m_C1" in text and "dimm2" not in text


def test_siblings_switched_off_are_not_missing(root: Callable[..., Tree]) -> None:
    assert ids(root({f"{CPU}/online": "0-7\n", f"{CPU}/smt/active": "0\n", f"{CPU}/smt/control": "off\n"})) == set()


def test_memory_full_of_files_is_free(root: Callable[..., Tree]) -> None:
    cached = memory(1, 64 << 20, 20_000) + "Node 1 Inactive(file): 300000 kB\n"
    assert ids(root({f"{NODE}/node1/meminfo": cached})) == {"smt"}


def test_a_live_root_tells_nothing_of_tools(root: Callable[..., Tree]) -> None:
    changed = dict.fromkeys(path for path in healthy() if path.startswith("nodeprint/"))
    assert ids(root(changed)) == {"smt"}


def test_sysctls_of_the_live_system_are_read() -> None:
    """The kernel refuses large buffers there."""
    path = Path("/proc/sys/kernel/ostype")
    if not path.exists():
        missing("no /proc/sys here")
    assert open_tree(Path("/")).read_text("proc/sys/kernel/ostype") == "Linux\n"


# --- what no verdict looks at -----------------------------------------------------------------------------------------


def test_firmware_links_modules_and_parameters(root: Callable[..., Tree]) -> None:
    card, disk, bridge = (f"sys/bus/pci/devices/0000:{place}:00.0" for place in ("41", "42", "00"))
    slots = [("P0 A", "Samsung", "11"), ("P0 B", "Samsung", "0000"), ("P1 A", "Micron", "13")]
    dimms = "".join(
        f"{module(3200).rstrip()}\n\tBank Locator: {slot}\n\tLocator: DIMM 0\n\tManufacturer: {maker}\n"
        f"\tSerial Number: {number}\n\n"
        for slot, maker, number in slots
    )
    said = read_fingerprint(
        root(
            {
                f"{card}/class": "0x020700\n",
                f"{card}/vendor": "0x15b3\n",
                f"{card}/device": "0x101b\n",
                f"{card}/current_link_width": "8\n",
                f"{card}/max_link_width": "16\n",
                f"{disk}/class": "0x010802\n",
                f"{disk}/current_link_width": "4\n",
                f"{disk}/max_link_width": "4\n",
                f"{bridge}/class": "0x060400\n",
                f"{bridge}/current_link_width": "16\n",
                "sys/class/infiniband/mlx5_0/fw_ver": "20.31.1014\n",
                "nodeprint/ethtool/eth0": "driver: igb\nfirmware-version: 3.30 0x8000\n",
                "sys/devices/platform/ipmi_bmc.0/firmware_revision": "7.10\n",
                "proc/modules": "nvidia 1 0 - Live 0x0\nxfs 1 0 - Live 0x0\nlustre 1 0 - Live 0x0\n",
                "proc/sys/vm/swappiness": "10\n",
                "sys/class/dmi/id/board_serial": "B17\n",
                "nodeprint/dmidecode.txt": dimms,
            }
        )
    )
    assert said["pcie_links"] == "0000:41:00.0 15b3:101b x8 of x16, 0000:42:00.0 ?:? x4"
    assert said["adapter_firmware"] == "mlx5_0 20.31.1014, eth0 3.30 0x8000"
    assert said["bmc"] == "7.10"
    assert said["modules"] == "lustre nvidia"
    assert said["kernel_parameters"] == "vm.swappiness=10"
    assert said["dimm_slots"] == "64 GB DDR4 Micron: P1 A DIMM 0; 64 GB DDR4 Samsung: P0 A DIMM 0, P0 B DIMM 0"
    assert said["serials"] == "board B17, P0 A DIMM 0 11, P1 A DIMM 0 13"

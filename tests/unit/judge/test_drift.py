"""What `nodeprint drift` reads and names: nodes that were only surveyed, and facts of Ansible's setup module."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from nodeprint.cli import app
from nodeprint.judge import acceptance
from nodeprint.judge.drift import drift as fields_that_drift
from nodeprint.machine import fingerprint
from nodeprint.machine.fingerprint import FieldDifference
from nodeprint.readers import ansible_facts
from tests.support.fleets import made
from tests.support.server_files import healthy

SETUP: dict[str, Any] = {
    "ansible_processor": ["0", "AuthenticAMD", "AMD EPYC 7302 16-Core Processor"] * 2,
    "ansible_processor_count": 2,
    "ansible_processor_cores": 16,
    "ansible_processor_threads_per_core": 2,
    "ansible_processor_vcpus": 64,
    "ansible_memtotal_mb": 257_400,
    "ansible_virtualization_role": "host",
    "ansible_cmdline": {"BOOT_IMAGE": "/vmlinuz", "ro": True, "quiet": True, "isolcpus": "1-3"},
    "ansible_bios_version": "2.3.4",
    "ansible_product_name": "NA",
    "ansible_kernel": "6.1.0-18-amd64",
    "ansible_distribution": "Debian",
    "ansible_distribution_version": "12",
    "ansible_all_ipv4_addresses": ["10.0.0.7"],
    "ansible_board_serial": "SECRET17",
}


def drift(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    app(["drift", *map(str, words)], standalone_mode=False)
    return capsys.readouterr().out


def captures(folder: Path, **hosts: dict[str, Any]) -> Path:
    folder.mkdir()
    for host, changes in hosts.items():
        (folder / host).write_text(json.dumps({"ansible_facts": SETUP | changes, "changed": False}))
    return folder


def test_setup_facts_name_the_host_that_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quotes = "ro \"quiet' $(reboot) \x1b[31m"
    folder = captures(tmp_path / "facts", cn01={}, cn02={"ansible_bios_version": quotes}, cn03={})
    assert drift(capsys, folder).splitlines()[0] == (
        "cn02: BIOS is ro \"quiet' $(reboot) ?[31m, other nodes have 2.3.4 (soft)"
    )
    assert json.loads(drift(capsys, folder, "--json"))["nodes"]["cn02"][0]["key"] == "bios"


def test_what_setup_facts_say(tmp_path: Path) -> None:
    (node,) = ansible_facts.read_facts(captures(tmp_path / "facts", cn01={}))
    assert node.fingerprint == {
        "cpu": "AMD EPYC 7302 16-Core Processor",
        "sockets": 2,
        "cores": 32,
        "cpus": 64,
        "smt": True,
        "virtual": False,
        "cmdline": "isolcpus=1-3 quiet ro",
        "memory_gib": 251,
        "bios": "2.3.4",
        "kernel": "6.1.0-18-amd64",
        "os": "Debian 12",
    }
    garbled = ansible_facts.fingerprint({key: {"not": [None]} for key in SETUP})
    assert dict(garbled) == {}


def test_a_host_that_was_not_achieved_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = captures(tmp_path / "facts", cn02={}, cn03={})
    message = "Failed to connect to the host via ssh: timed out \x1b[31m"
    (folder / "cn01").write_text(json.dumps({"changed": False, "msg": message, "unreachable": True}))
    assert drift(capsys, folder).splitlines() == [
        "cn01: unknown: Failed to connect to the host via ssh: timed out ?[31m",
        "no field differs on 2 of 3 nodes",
    ]
    assert set(json.loads(drift(capsys, folder, "--json"))["unknown"]) == {"cn01"}


def test_a_cache_of_facts_is_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cn01").write_text(json.dumps(SETUP))
    (tmp_path / "cn02").write_text(json.dumps(SETUP | {"ansible_kernel": "6.2"}))
    assert "cn02: Linux kernel is 6.2, other nodes have 6.1.0-18-amd64 (soft)" in drift(capsys, tmp_path)


def test_a_file_that_is_no_capture_is_named(tmp_path: Path) -> None:
    folder = captures(tmp_path / "facts", cn01={})
    (folder / "cn02").write_text('{"ansible_facts": 3}')
    with pytest.raises(Exception, match=r"cn02: it has no key `ansible_facts`; make it by"):
        app(["drift", str(folder)], standalone_mode=False)


def survey(path: Path, files: dict[str, str]) -> None:
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))


def test_nodes_that_were_only_surveyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = tmp_path / "facts"
    for number in (1, 2, 3):
        changed = {"proc/sys/vm/swappiness": f"{10 if number == 2 else 60}\n", "proc/sys/kernel/watchdog": "1\n"}
        survey(campaign / f"nodes/cn0{number}/job1/survey.tar.gz", healthy() | changed)
    (campaign / "nodes.tsv").write_text("node\ncn01\ncn02\ncn03\ncn04\ncn05\n")
    survey(campaign / "nodes/cn04/job1/survey.tar.gz", healthy())
    (campaign / "nodes/cn04/job1/survey.tar.gz").write_bytes(b"cut")
    said = drift(capsys, campaign).splitlines()
    assert said.pop(0).startswith(f"cn04: unknown: {campaign}/nodes/cn04/job1/survey.tar.gz: ")
    assert said.pop(0) == "cn05: unknown: it was not surveyed"
    assert said[0] == "cn02: kernel parameters: vm.swappiness=10, other nodes have vm.swappiness=60 (soft)"
    assert len(said) == 2

    # the next day
    (campaign / "nodes/cn02/job1/survey.tar.gz").unlink()
    assert drift(capsys, campaign).splitlines()[0] == "cn02: unknown: it was not surveyed"


def test_of_long_lists_only_what_differs_is_said() -> None:
    more = FieldDifference("modules", "lustre nvidia", "lustre", False)
    assert more.text == "kernel modules: nvidia, which other nodes do not have"
    less = FieldDifference("pcie_links", "a x16", "a x16, b x8", False)
    assert less.text == "PCIe links: not b x8, which other nodes have"
    assert set(fingerprint.LISTS) <= fingerprint.DRIFT


def test_a_field_that_drifts_is_named() -> None:
    differences = fields_that_drift(made("node002: fingerprint microcode=0x99", nodes=5).nodes, acceptance.load())
    assert {name: [field.key for field in fields] for name, fields in differences.items()} == {"node002": ["microcode"]}

"""Memory modules and their channels, by slots as makers of boards name them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nodeprint.machine import memory_modules
from nodeprint.machine.node_configuration import read_fingerprint
from nodeprint.machine.tree import open_tree
from tests.support.real_parts import ROOT
from tests.support.smbios import Slot, tables

#: A slot and its bank as dmidecode prints them of machines in public, by channel and slot of it; None: no channel.
NAMES = {
    "AMD's reference": ("DIMM {slot}", "P{socket} CHANNEL {letter}", True),
    "Intel's reference": ("CPU{socket}_CH{channel}_DIMM{slot}", "NODE {socket} CHANNEL {channel} DIMM {slot}", True),
    "a desktop": ("Controller{socket}-Channel{letter}-DIMM{slot}", "BANK {slot}", True),
    "Gigabyte": ("DIMM_P{socket}_{letter}{slot}", "BANK {slot}", True),
    "ASUS and Tyan": ("CPU{socket}_DIMM_{letter}{slot}", "NODE {socket}", True),
    "Supermicro": ("P{socket}-DIMM{letter}{slot}", "P{socket}_Node0_Channel{channel}_Dimm{slot}", True),
    "HPE, which counts": ("PROC {socket} DIMM {number}", "Not Specified", False),
    "Dell, whose letter is the socket": ("{socket_letter}{number}", "Not Specified", False),
}


def module(locator: str, bank: str, populated: bool) -> str:
    size, speed = ("32 GB", "3200 MT/s") if populated else ("No Module Installed", "Unknown")
    return (
        f"Handle 0x0031, DMI type 17, 92 bytes\nMemory Device\n\tTotal Width: 72 bits\n\tSize: {size}\n"
        f"\tLocator: {locator}\n\tBank Locator: {bank}\n\tType: DDR4\n\tSpeed: {speed}\n"
        f"\tConfigured Memory Speed: {speed if not populated else '2133 MT/s'}\n\n"
    )


def surveyed(folder: Path, text: str) -> Path:
    for cpu in range(2):
        (folder / f"sys/devices/system/cpu/cpu{cpu}/topology").mkdir(parents=True)
        (folder / f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id").write_text(f"{cpu}\n")
    (folder / "sys/devices/system/cpu/online").write_text("0-1\n")
    (folder / "nodeprint").mkdir()
    (folder / "nodeprint/dmidecode.txt").write_text(text)
    return folder


@pytest.mark.parametrize("maker", NAMES)
def test_channels_with_a_module_are_counted_by_their_names(tmp_path: Path, maker: str) -> None:
    """Two sockets of eight channels with two slots each, of which one has a module; channel F has none at all, and that
    of H is missing in the second socket."""
    locator, bank, named = NAMES[maker]
    text = ""
    for socket in range(2):
        for channel in range(8):
            for slot in range(2):
                places = {
                    "socket": socket,
                    "channel": channel,
                    "letter": "ABCDEFGH"[channel],
                    "slot": slot,
                    "number": 2 * channel + slot + 1,
                    "socket_letter": "AB"[socket],
                }
                full = slot == 0 and channel != 5 and (socket, channel) != (1, 7)
                text += module(locator.format(**places), bank.format(**places), full)
    fields = read_fingerprint(open_tree(surveyed(tmp_path, text)))
    assert fields.get("memory_channels") == (13 if named else None)
    assert fields.get("memory_channels_per_socket") == ("7, 6" if named else None)
    assert (fields["dimms"], fields["dimm_speed"], fields["dimm_rated_speed"]) == (
        "13 x 32 GB DDR4",
        "2133 MT/s",
        "3200 MT/s",
    )


def test_where_dmidecode_is_missing_the_tables_say_the_same(tmp_path: Path) -> None:
    """Tables as dmidecode --dump-bin writes them, which it decodes to these lines, too."""
    slots = [
        Slot(f"P{socket} CHANNEL {letter}", "BANK 0", gib=size, rated=4800, configured=4400)
        for socket in range(2)
        for letter, size in zip("ABCDEFGH", [96, 96, 96, 96, 16, 16, 16, 0], strict=True)
    ]
    command = ["sh", "-c", f". {ROOT}/kernels/node/smbios.sh; smbios_modules"]
    done = subprocess.run(command, input=tables(slots), capture_output=True, check=True)
    fields = read_fingerprint(open_tree(surveyed(tmp_path, done.stdout.decode())))
    assert (fields["dimms"], fields["memory_channels_per_socket"]) == ("6 x 16 GB DDR5, 8 x 96 GB DDR5", "7, 7")
    assert (fields["dimm_speed"], fields["dimm_rated_speed"]) == ("4400 MT/s", "4800 MT/s")
    assert str(fields["dimm_slots"]).startswith("16 GB DDR5 Maker Part-1: P0 CHANNEL E, ")
    for cut in range(0, len(tables(slots)), 97):  # firmware that ends in the middle
        subprocess.run(command, input=tables(slots)[:cut], capture_output=True, check=True, timeout=10)


def test_the_kernel_names_channels_where_dmidecode_may_not_run(tmp_path: Path) -> None:
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    for controller in range(2):
        for channel in range(6):
            folder = tmp_path / f"sys/devices/system/edac/mc/mc{controller}/dimm{channel}"
            folder.mkdir(parents=True)
            (folder / "dimm_location").write_text(f"csrow 0 channel {channel} \n")
    assert memory_modules.populated_channels(open_tree(tmp_path)) == 12

"""The memory modules of a node and their channels, by firmware (dmidecode) or the kernel (EDAC).

SMBIOS has no field for a channel. The name of the slot or its bank contains it, such as `P0 CHANNEL A` (AMD), `NODE 0
CHANNEL 1 DIMM 0` (Intel), or `CPU1_DIMM_A1`, `P1-DIMMA1` and `DIMM_P0_A0` (boards). The channel is unknown if slots are
merely counted (`A1` to `A16`, `PROC 1 DIMM 3`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from nodeprint.errors import printable
from nodeprint.machine.tree import Tree

_EDAC = "sys/devices/system/edac/mc"


def slots(text: str) -> list[dict[str, str]]:
    """Every slot in dmidecode's output, also empty ones: its keys and values."""
    devices: list[dict[str, str]] = []
    inside = False
    for line in text.splitlines():
        if not line.startswith(("\t", " ")):
            inside = line.strip() == "Memory Device"
            if inside:
                devices.append({})
        elif inside:
            key, _, value = line.strip().partition(": ")
            devices[-1].setdefault(printable(key), printable(value.strip()))
    return devices


def populated(devices: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The slots with a module."""
    return [device for device in devices if device.get("Size", "No Module Installed")[:1].isdigit()]


def configured_speed(device: Mapping[str, str]) -> str:
    """The speed that a module runs at, as `2933 MT/s`; dmidecode before 3.2 calls it a clock. Empty where unknown."""
    speed = device.get("Configured Memory Speed") or device.get("Configured Clock Speed", "")
    return "" if speed == "Unknown" else speed


def rated_speed(device: Mapping[str, str]) -> str:
    """The speed that a module is made for; empty where unknown."""
    speed = device.get("Speed", "")
    return "" if speed == "Unknown" else speed


def populated_channels(tree: Tree) -> int | None:
    """How many memory channels of a node have a module; None where nothing names them."""
    name = _naming(all_slots(tree))
    return len({name(device) for device in populated(all_slots(tree))}) if name else _by_edac(tree)


def channels_by_socket(tree: Tree, sockets: int) -> tuple[int, ...] | None:
    """The same of each of `sockets`; None where the names of the slots do not tell as many of them apart."""
    devices = all_slots(tree)
    name = _naming(devices)
    if name is None:
        return None
    channels = {_socket_of(name(device)): set[str]() for device in devices}
    for device in populated(devices):
        channels[_socket_of(name(device))].add(name(device))
    counts = tuple(len(channels[socket]) for socket in sorted(channels))
    return counts if len(counts) == sockets else None


def all_slots(tree: Tree) -> list[dict[str, str]]:
    """Every slot of a node by its survey, also empty ones."""
    return slots(tree.read_text("nodeprint/dmidecode.txt") or "")


def _naming(devices: Sequence[Mapping[str, str]]) -> Callable[[Mapping[str, str]], str] | None:
    """What names the channel of a slot: only where it does of every slot, and every channel has as many slots."""
    for name in (_channel_of_slot, _channel_of_bank, _letter_of_slot):
        names = [name(device) for device in devices]
        if names and all(names) and len(set(Counter(names).values())) == 1:
            return name
    return None


def _socket_of(channel: str) -> str:
    """A channel's name without its letter or number, which is what the channels of a socket have in common."""
    return re.sub(r"(?:[0-9]+|[A-Z])$", "", channel)


def _channel_of_slot(device: Mapping[str, str]) -> str:
    return _up_to_channel(device.get("Locator", ""))


def _channel_of_bank(device: Mapping[str, str]) -> str:
    return _up_to_channel(device.get("Bank Locator", ""))


def _up_to_channel(name: str) -> str:
    match = re.match(r".*CHANNEL[ _-]?[A-Z0-9]+", name, re.IGNORECASE)
    return match[0].upper() if match else ""


def _letter_of_slot(device: Mapping[str, str]) -> str:
    match = re.fullmatch(r"(.*DIMM(?:.*[ _-])?[A-Z])\d{0,2}", device.get("Locator", ""), re.IGNORECASE)
    return match[1].upper() if match else ""


def _by_edac(tree: Tree) -> int | None:
    channels = set()
    for controller in tree.names(_EDAC):
        for dimm in tree.names(f"{_EDAC}/{controller}"):
            place = tree.read_text(f"{_EDAC}/{controller}/{dimm}/dimm_location") or ""
            if match := re.search(r"channel (\d+)", place):
                channels.add((controller, match[1]))
    return len(channels) or None

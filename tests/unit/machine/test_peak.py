"""What a node could do at most, of its fingerprint."""

from __future__ import annotations

import pytest

from nodeprint.machine import peak

#: Two EPYC 7742, each with eight channels of DDR4-3200: 204.8 GB/s a socket by AMD's data sheet.
ROME = {"cpu": "AMD EPYC 7742 64-Core Processor", "cpu_family": "23", "cpu_model": "49", "sockets": 2}
MODULES = {"dimms": "16 x 64 GB DDR4", "dimm_speed": "2933 MT/s", "dimm_rated_speed": "3200 MT/s"}


def test_memory_is_its_channels_at_their_clock() -> None:
    memory = peak.memory({**ROME, **MODULES, "memory_channels": 16})
    assert memory is not None and not memory.by_processor
    assert (memory.name, memory.most_name) == ("16 x DDR4-2933", "16 x DDR4-3200")
    assert memory.bytes_per_s == pytest.approx(16 * 2933e6 * 8)
    assert memory.most_bytes_per_s == pytest.approx(2 * 204.8e9)


def test_modules_without_names_of_channels_have_each_its_own_if_there_are_no_more() -> None:
    few = peak.memory({**ROME, **MODULES, "dimms": "14 x 64 GB DDR4"})
    assert few is not None and (few.channels, few.all_channels) == (14, 16)
    many = peak.memory({**ROME, **MODULES, "dimms": "24 x 64 GB DDR4"})
    assert many is not None and many.by_processor, "how many of 16 channels 24 modules are on is unknown"


def test_modules_faster_than_the_processor_takes_are_no_loss() -> None:
    memory = peak.memory({**ROME, **MODULES, "dimm_speed": "3200 MT/s", "dimm_rated_speed": "3600 MT/s"})
    assert memory is not None and memory.most_bytes_per_s == memory.bytes_per_s


def test_without_modules_the_processor_s_table_answers_with_a_mark() -> None:
    memory = peak.memory(ROME)
    assert memory is not None and memory.by_processor and memory.name == "16 x DDR4-3200"
    assert peak.memory({**ROME, "virtual": True}) is None, "a guest has a part of it"
    assert peak.memory({"cpu": "Some Processor", "sockets": 1}) is None
    assert peak.flops_per_cycle(ROME) == 16

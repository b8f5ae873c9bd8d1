"""The table of processors: a part by the name that people write, a generation by what a machine reports."""

from __future__ import annotations

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import processors
from nodeprint.machine.topology.model import Machine

ROME = Machine("AuthenticAMD", 0x17, 0x31, name="AMD EPYC 7742 64-Core Processor")


@pytest.mark.parametrize("name", ["EPYC 7742", "amd epyc 7742", "7742", "AMD EPYC(TM) 7742 processor"])
def test_a_part_is_known_by_its_name_as_people_write_it(name: str) -> None:
    part = processors.part_named(name)
    assert (part.name, part.ccds, part.cores_per_ccx, part.generation.name) == ("EPYC 7742", 8, 4, "Rome")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("epyc", "'epyc' is more than one part; known are EPYC 7601, EPYC 7551, "),
        ("7749", "'7749' is no part of the table; known are EPYC 7742; of others give an lstopo XML"),
        ("838", "'838' is no part of the table; known are Xeon Platinum 838"),
        ("83", "'83' is no part of the table; give an lstopo XML of the machine instead"),
        ("Graviton 99", "'Graviton 99' is no part of the table; give an lstopo XML"),
        ("amd cpu", "'amd cpu' is no part of the table; give an lstopo XML"),
    ],
)
def test_what_is_no_part_is_refused_with_those_that_begin_alike(name: str, says: str) -> None:
    """By three characters of a number; twelve at most are named."""
    with pytest.raises(NodeprintError) as refusal:
        processors.part_named(name)
    assert str(refusal.value).startswith(says)
    assert str(refusal.value).count(",") < 12
    assert name != "epyc" or str(refusal.value).count(",") == 11


@pytest.mark.parametrize(
    ("machine", "generation", "part"),
    [
        (ROME, "Rome", "EPYC 7742"),
        (Machine("AuthenticAMD", 0x17, 0x31), None, None),
        (Machine("GenuineIntel", 0x17, 0x31), None, None),
        (Machine("AuthenticAMD", 0x18, 0x31), None, None),
        (Machine("AuthenticAMD", 0x17, 0xFE), None, None),
        (Machine("AuthenticAMD", 0x17, 0x31, name="AMD EPYC 77420"), "Rome", None),
        (Machine(), None, None),
    ],
)
def test_a_machine_is_of_a_generation_and_a_part(machine: Machine, generation: str | None, part: str | None) -> None:
    """All of vendor, family and model, and a whole word of the name; several generations share a model."""
    known = processors.generation_of(machine)
    assert (known.name if known else None) == generation
    listed = processors.part_of(machine, known)
    assert (listed.name if listed else None) == part


def test_a_fingerprint_has_the_generation_of_its_family_and_model() -> None:
    known = processors.generation_named("AMD EPYC 7742 64-Core Processor", 0x17, 0x31)
    assert known is not None and known.name == "Rome"
    assert processors.generation_named("AMD EPYC 7742 64-Core Processor", 0x17, 0xFE) is None
    assert processors.generation_named("AMD EPYC 7742 64-Core Processor", 0x18, 0x31) is None


@pytest.mark.parametrize(
    ("rule", "ccd", "quadrant"),
    [("ccd", 3, 3), ("ccd div 2", 5, 2), ("ccd mod 4", 5, 1), ("none", 1, None), (None, 1, None)],
)
def test_a_rule_has_the_quadrant_of_a_ccd(rule: str | None, ccd: int, quadrant: int | None) -> None:
    """A part of which nothing is known is neither with quadrants nor without; Naples' four dies surround nothing."""
    made = processors.Generation("x", "v", 1, (1,), "here", quadrant=rule)
    assert made.quadrant_of(ccd) == quadrant
    assert made.has_quadrants is (quadrant is not None)
    assert made.has_io_die is (quadrant is not None and rule != "ccd")
    assert made.without_quadrants is (rule == "none")

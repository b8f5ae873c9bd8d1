"""Mutated matrices, XMLs, roots, dumps and archives: labels and levels, or one sentence; nothing written, no gigabyte.

`NODEPRINT_FUZZ=1250` gives 10,000 of them, eight sources with as many each; seeded (`NODEPRINT_FUZZ_SEED`), so that a
failure comes again.
"""

from __future__ import annotations

import io
import json
import os
import resource
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from nodeprint import structure
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import captured, serialized
from nodeprint.machine.tree import open_tree
from nodeprint.readers import matrix_file
from tests.support import machines
from tests.support.latencies import epyc
from tests.support.machines import Epyc
from tests.support.made_records import TRAILER, header, lines, pair
from tests.support.tool_output import C2CLAT

EXAMPLES = int(os.environ.get("NODEPRINT_FUZZ", "15"))
SEED = int(os.environ.get("NODEPRINT_FUZZ_SEED", "21"))
SMALL = machines.epyc(Epyc(0x31, 0x17, "AMD EPYC 7742 64-Core Processor", (0, 1), 2, 2, 4, lambda c: c // 2), 2)

#: What is put in place of some bytes: numbers that are none or too large, and what the formats give a meaning.
JUNK = [b"", b"\0", b"-1", b"nan", b"inf", b"1e999", b"99999999999999999999", b"0-4294967295", b",", b"\n", b'"', b"<"]
JUNK += [b"&a;", b"../../../../tmp/outside", b"0xffffffff,,,,,,,,,", b"\xff\xfe", b"{", b"=>"]
Edits = list[tuple[float, int, bytes]]


@dataclass(repr=False)
class Source:
    """Files of which one is mutated, and what reads them."""

    files: list[Path]
    read: Callable[[], object]


EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 200), st.sampled_from(JUNK) | st.binary(max_size=8)),
    min_size=1,
    max_size=6,
)


def mutated(data: bytes, edits: Edits) -> bytes:
    for at, cut, junk in edits:
        place = int(at * len(data))
        data = data[:place] + junk + data[place + cut :]
    return data


def _structure(path: Path, text: str) -> Source:
    path.write_text(text)

    def read() -> object:
        source = matrix_file.read_matrix(path)
        return structure.find(source.ns, source.cpus).as_json()

    return Source([path], read)


def _matrix(folder: Path) -> Source:
    values = epyc(1, 2, 2, 2).matrix
    rows = (",".join("" if np.isnan(v) else f"{v:.1f}" for v in row) for row in values)
    return _structure(folder / "m.csv", "\n".join(rows) + "\n")


def _table(folder: Path) -> Source:
    return _structure(folder / "m.txt", C2CLAT)


def _records(folder: Path) -> Source:
    pairs = [pair(a, b, number) for number in range(2) for a in range(6) for b in range(a + 1, 6)]
    return _structure(folder / "coherence-cas.jsonl", lines(header(cpus=list(range(6))), *pairs, TRAILER))


def _xml(folder: Path) -> Source:
    path = SMALL.write_xml(folder / "m.xml", ids=("socket", "ccx", "core"))
    return Source([path], lambda: serialized.as_json(captured.read_xml(path)))


def _old_xml(folder: Path) -> Source:
    path = SMALL.write_xml(folder / "m.xml", version=1)
    return Source([path], lambda: serialized.as_json(captured.read_xml(path)))


def _root(folder: Path) -> Source:
    root = SMALL.write(folder / "root")
    files = sorted(path for path in root.rglob("*") if path.is_file() and "cpu1" not in path.parts)
    return Source(files, lambda: serialized.as_json(captured.read(open_tree(root))))


def _cpuid(folder: Path) -> Source:
    dumps = SMALL.write_cpuid(folder / "dumps", None)
    return Source(sorted(dumps.iterdir())[:4], lambda: serialized.as_json(captured.read_cpuid(dumps)))


def _archive(folder: Path) -> Source:
    path = folder / "survey.tar"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in ("sys/devices/system/cpu/online", "sys/devices/system/node/node0/cpulist", "proc/cpuinfo"):
            text = SMALL._cpuinfo(SMALL.rows[0]).encode() if name == "proc/cpuinfo" else b"0-3\n"
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
        link = tarfile.TarInfo("sys/devices/system/cpu/present")
        link.type, link.linkname = tarfile.SYMTYPE, "online"
        tar.addfile(link)
    path.write_bytes(packed.getvalue())
    return Source([path], lambda: serialized.as_json(captured.read(open_tree(path))))


@pytest.fixture(scope="module", params=[_matrix, _table, _records, _xml, _old_xml, _root, _cpuid, _archive])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Source:
    made: Source = request.param(tmp_path_factory.mktemp("fuzz"))
    return made


@pytest.mark.filterwarnings("error::RuntimeWarning")
@seed(SEED)
@settings(max_examples=EXAMPLES, deadline=None, database=None)
@given(edits=EDITS, which=st.floats(0, 1, exclude_max=True))
def test_mutated_input_gives_a_result_or_one_sentence(source: Source, edits: Edits, which: float) -> None:
    path = source.files[int(which * len(source.files))]
    whole = path.read_bytes()
    folder = next(parent for parent in path.parents if parent.name.startswith("fuzz"))
    path.write_bytes(mutated(whole, edits))
    there = sorted(folder.rglob("*"))
    of_tests_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        json.dumps(source.read(), allow_nan=False)
    except NodeprintError as error:
        assert "\n" not in str(error) and folder.name in str(error)
    finally:
        path.write_bytes(whole)
    assert sorted(folder.rglob("*")) == there
    assert not Path("/tmp/outside").exists()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss <= max(1 << 20, of_tests_before)  # KiB

"""Files spoiled as copies and pastes spoil them are read or refused in a sentence; `tests.support.mutated_files` is the
script that makes thousands of them, of all files in a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support import mutated_files
from tests.support.latencies import epyc
from tests.support.tool_output import C2CLAT

OUTPUTS = Path(__file__).parent / "outputs"
XML = """<?xml version="1.0" encoding="UTF-8"?>
<topology version="2.0"><object type="Machine" os_index="0" cpuset="0x0000000f"><object type="Package" os_index="0"
 cpuset="0x0000000f"><object type="L3Cache" cpuset="0x0000000f"><object type="Core" os_index="0" cpuset="0x00000003">
<object type="PU" os_index="0" cpuset="0x00000001"/><object type="PU" os_index="1" cpuset="0x00000002"/></object>
<object type="Core" os_index="1" cpuset="0x0000000c"><object type="PU" os_index="2" cpuset="0x00000004"/>
<object type="PU" os_index="3" cpuset="0x00000008"/></object></object></object></object></topology>
"""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    matrix = epyc(1, 2, 2, 4, 1).matrix
    texts = {
        "lower.csv": "\n".join(",".join(f"{value:.1f}" for value in row[:at]) for at, row in enumerate(matrix)),
        "square.txt": "\n".join(" ".join(f"{value:.0f}" for value in row) for row in np.nan_to_num(matrix)),
        "long.csv": "a,b,latency_ns\n" + "\n".join(f"{a},{b},{matrix[a, b]:.2f}" for a in range(16) for b in range(a)),
        "c2clat.txt": C2CLAT,
        "table.csv": "node,metric,value,unit\n" + "".join(f"cn{n},triad,{3000 + n},MB/s\n" for n in range(8)),
        "machine.xml": XML,
    }
    outputs = {f"cn001-{path.name}": path.read_text() for path in OUTPUTS.iterdir() if path.name != "README"}
    for name, text in {**texts, **outputs}.items():
        (tmp_path / name).write_text(text)
    return [tmp_path / name for name in (*texts, *sorted(outputs))]


def test_files_as_they_are_are_read(files: list[Path]) -> None:
    assert {path.name: mutated_files.outcome(path) for path in files} == {path.name: "read" for path in files}


@pytest.mark.parametrize("seed", [1, 10_001])
def test_mutated_files_are_read_or_refused(files: list[Path], seed: int) -> None:
    seen = mutated_files.run(files, 200, seed)
    assert seen["fault"] == 0
    assert min(seen["read"], seen["refused"]) > 40  # accidents neither leave all as it was nor spoil all


@pytest.mark.parametrize("text", ["```\n```\n", "> \n>\n> ```\n", "\x1b[0m\n"])
def test_a_quotation_of_nothing_is_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    assert mutated_files.outcome(tmp_path / "x.txt") == "refused"

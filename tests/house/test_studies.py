"""Every command of docs/studies.md works, in the order of the page, and the pages have what it says they have."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.real_parts import ROOT, built, environment, need

PAGE = (ROOT / "docs/studies.md").read_text()
#: Of each study its commands, one a line.
COMMANDS = {
    heading: [line for block in re.findall(r"```\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    for heading, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
}
#: What the first line of each study's CSV says.
HEADS = {
    "core-to-core-latency": "a,b,home,latency_ns",
    "xcpumemperf": "writer,reader,rate_bytes_per_s,written_bytes_per_s,read_bytes_per_s,accessed_bytes_per_s,",
    "Chronicle": "kind,a,b,home,rate_per_s,lowest_rate_per_s,success_share,fairness",
    "LinkTest": "a,b,size_bytes,latency_ns,bytes_per_s",
    "NUMA-microbenchmark": "a,b,together,a_own_ns,a_other_ns,b_own_ns,b_other_ns,ratio,ratio_low,ratio_high",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studies")


def test_every_study_has_commands() -> None:
    assert len(COMMANDS) == len(HEADS) == 5
    assert all(COMMANDS.values())


@pytest.mark.machine
@pytest.mark.parametrize("study", COMMANDS)
@pytest.mark.usefixtures("two_cpus")
def test_commands_of_a_study_work(study: str, folder: Path) -> None:
    if is_linktest := study.startswith("LinkTest"):
        need("mpirun", "pdftotext")
    printed = []
    for command in COMMANDS[study]:
        words = shlex.split(command)[0] if ">" not in command else "sh"
        assert words in ("sh", "nodeprint") or words.startswith("kernels/build/"), command
        here = re.sub(r"^kernels/build/", f"{built()}/", command)
        done = subprocess.run(
            here, shell=True, cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=environment()
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        printed.append(done.stdout)
    head = next(head for name, head in HEADS.items() if study.startswith(name))
    assert printed[0].startswith(head)
    if study.startswith("Chronicle"):
        assert "4 fit into one CCX at 2" in printed[-1] and "Socket 0 towards other sockets" in printed[-1]
    if is_linktest:
        page = _text(folder / "rome/report/node000.pdf").partition("Messages between cores")[2]
        assert "outlined are CCX, CCD, quadrant and socket" in page
        assert re.search(r"Number of pairs of cores of node000 by value: minimum [\d.]+ µs, mean [\d.]+ µs, max", page)
        # what a record of our own was imported from is said, and its matrix is no core-to-core latency
        assert "Core to core" not in _text(folder / "imported/report/cluster.pdf")


def _text(pdf: Path) -> str:
    """The text of a PDF on one line."""
    done = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split())

"""LinkTest between nodes, with a kernel that only pretends: what it is called with, and what its outcome says."""

import gzip
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.real_parts import ROOT

FABRIC = SimpleNamespace(**runpy.run_path(str(ROOT / "workflow/scripts/fabric.py")))


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that writes its arguments as its record, and ends with the code that its last argument is."""
    program = tmp_path / "kernel"
    program.write_text(
        '#!/bin/sh\necho "$*" > "$2"\necho "linktest: it ends" >&2\nfor last; do :; done\nexit "$last"\n'
    )
    program.chmod(0o755)
    monkeypatch.setitem(FABRIC.measure.__globals__, "KERNEL", program)
    return program


@pytest.mark.parametrize(
    ("ends", "outcome", "code", "message"),
    [(0, "done", 0, ""), (3, "refused", 3, "it ends"), (1, "failed", 1, "it ends")],
)
def test_a_run_has_its_outcome_its_seconds_and_its_last_words(
    tmp_path: Path, kernel: Path, ends: int, outcome: str, code: int, message: str
) -> None:
    out = tmp_path / "r.jsonl"
    said = FABRIC.measure(out, "", ["--op", str(ends)])
    assert (said[0], said[1], said[3]) == (outcome, code, message)
    assert 0 <= said[2] < 600
    record = tmp_path / "r.jsonl.gz"
    assert record.exists() == (ends == 0) != out.exists()
    if ends == 0:
        assert gzip.decompress(record.read_bytes()).decode() == f"--out {out} --op 0\n"
        assert FABRIC.measure(out, "", ["--op", "1"]) == ("done", 0, 0.0, ""), "what is measured is not measured again"


def test_a_run_that_a_signal_ended_has_the_code_that_a_shell_gives_it(tmp_path: Path, kernel: Path) -> None:
    kernel.write_text("#!/bin/sh\nkill -9 $$\n")
    assert FABRIC.measure(tmp_path / "r.jsonl", "", [])[:2] == ("failed", 137)


def test_the_set_up_of_a_site_is_sourced_before_its_kernel(tmp_path: Path, kernel: Path) -> None:
    (tmp_path / "setup.sh").write_text('set -- "$@" 0\n')
    assert FABRIC.measure(tmp_path / "r.jsonl", str(tmp_path / "setup.sh"), ["--op"])[1] == 0

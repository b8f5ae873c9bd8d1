"""Record files of nodeprint's own kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.readers import campaign_writer, matrix_file
from tests.support import made_records
from tests.support.made_records import TRAILER, header, lines, pair


@pytest.mark.parametrize(("of_passes", "differ"), [((120.0, 120.0, 25.0), True), ((120.0, 118.0, 121.0), False)])
def test_passes_of_a_record_that_differ_are_said(tmp_path: Path, of_passes: tuple[float, ...], differ: bool) -> None:
    file = tmp_path / "one.jsonl"
    pairs = [made_records.pair(0, 1, number, ns) for number, ns in enumerate(of_passes)]
    file.write_text(made_records.lines(made_records.header(passes=3), *pairs, made_records.TRAILER))
    words = "pass 3 differs from the others by a factor of 4.8: CPUs 0 and 1 have 25 ns in pass 3 and 120 ns in pass 1"
    for command in (["structure", str(file)], ["import", str(file), "--out", str(tmp_path / "campaign")]):
        ended = CliRunner().invoke(app, command)
        assert ended.exit_code == 0, ended.output
        assert (words in ended.output) == differ


def test_a_record_of_our_own_kernels_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "coherence-cas.jsonl"
    path.write_text(lines(header(), pair(0, 1), TRAILER))
    cores = matrix_file.read_output(path).core_matrix()
    assert (cores.operation, cores.home, cores.ns[0, 1]) == ("cas", "first", 50.0)
    assert campaign_writer.write_campaign([matrix_file.read_output(path)], tmp_path / "campaign") == ["coherence-cas"]

"""Files as shells, mails and archives leave them."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nodeprint.errors import NodeprintError
from nodeprint.readers import matrix_file
from tests.support.tool_output import LOWER, TRIANGLE

Write = Callable[..., Path]


def test_windows_shell_writes_utf16(write: Write) -> None:
    cores = matrix_file.read_output(write(LOWER.encode("utf-16"))).core_matrix()
    assert np.array_equal(cores.ns, TRIANGLE, equal_nan=True)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_tables(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "m.csv.gz"
    path.write_bytes(pack(b",,\n25.5,,\n90.25,91,\n"))
    assert np.array_equal(matrix_file.read_output(path).core_matrix().ns, TRIANGLE, equal_nan=True)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(NodeprintError, match="cut or garbled"):
        matrix_file.read_output(path)


def test_a_table_that_unpacks_to_more_than_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.csv.gz"
    path.write_bytes(gzip.compress(bytes(65 << 20)))
    with pytest.raises(NodeprintError, match="larger than 64 MiB"):
        matrix_file.read_output(path)


@pytest.mark.parametrize("text", [b"", b"\n\n", b"\x00\x01\x02", b"\xff\xfe\x00", b"\x89PNG\r\n\x1a\n\xff"])
def test_what_is_no_text(write: Write, text: bytes) -> None:
    with pytest.raises(NodeprintError, match=r"not text|empty"):
        matrix_file.read_output(write(text))

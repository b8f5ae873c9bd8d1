"""Archives of runs, as node-run makes them."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile

import zstandard

from tests.support.made_records import TRAILER, cell, cell_header, header, lines, pair

COMPRESS = {
    ".tar.zst": zstandard.ZstdCompressor(write_checksum=True).compress,  # as the program zstd does
    ".tar.xz": lzma.compress,
    ".tar.gz": gzip.compress,
}


RECORDS = {
    "chase-levels": lines(cell_header(), cell(0, "l1"), TRAILER),
    "coherence-cas": lines(header(), pair(0, 1), pair(0, 1, 1), TRAILER),
}


def tar_of(records: dict[str, str], run: int = 1) -> bytes:
    """A tar file of records by measurement, as node-run makes it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in records.items():
            member = tarfile.TarInfo(f"run{run}/{name}.jsonl")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()

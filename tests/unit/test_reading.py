"""What lies in a folder that several may write is read within limits: no link, no pipe, nothing that unpacks without
end."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from nodeprint import reading
from tests.support.real_parts import ROOT

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda content: gzip.compress(content, 9),
    ".xz": lzma.compress,
    ".zst": lambda content: zstandard.ZstdCompressor(level=15).compress(content),
    ".bz2": bz2.compress,
}
#: Unpacked, a bomb has so much, and a reader may take so much of it beyond what its imports need.
BOMB_BYTES, MAY_TAKE_KIB = 128 << 20, 64 << 10
#: Prints what a reader says, and by how much its memory grew.
READ = """\
import resource, sys
from pathlib import Path
from nodeprint.data.format import records
from nodeprint.data.job import jobs
from nodeprint.data.store import store
from nodeprint.campaign import run_files
run_files._zstd()
job = Path(sys.argv[1])
jobs.read(Path("/nonexistent/job1"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
problems = []
store.tree(job.parent, problems)
print(*(problem.text for problem in jobs.read(job).problems), *problems, sep="\\n")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def bomb(name: str) -> bytes:
    """A file that unpacks to zeros: records, or an archive with them."""
    if ".tar" not in name:
        return COMPRESS[name[name.rindex(".") :]](b'{"record":"pass"}\n' * (BOMB_BYTES // 18))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo("run1/coherence-cas.jsonl")
        member.size = BOMB_BYTES
        tar.addfile(member, io.BytesIO(bytes(BOMB_BYTES)))
    return COMPRESS[name[name.rindex(".") :]](out.getvalue())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["run1.tar.gz", "run1.tar.xz", "run1.tar.zst", "run1/coherence-cas.jsonl.gz", "survey.tar.gz"]
)
def test_what_unpacks_without_end_costs_a_sentence_and_a_few_mib(tmp_path: Path, name: str) -> None:
    path = tmp_path / "cn01/job1" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(bomb(name))
    assert path.stat().st_size < BOMB_BYTES / reading.MOST_TIMES
    words = [sys.executable, "-c", READ, str(tmp_path / "cn01/job1")]
    answer = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True).stdout.split("\n")
    assert int(answer[-2]) < MAY_TAKE_KIB
    sentence = "cannot be read as an archive" if name == "survey.tar.gz" else "unpacks to more than 200 times its size"
    assert any(sentence in line for line in answer[:-2])


def test_a_link_a_pipe_and_what_is_too_large_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    assert reading.text(path) == "text"
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * 11)
    for name, why in (("link", "symbolic link"), ("pipe", "no regular file"), ("large", "larger than")):
        with pytest.raises(OSError, match=why):
            reading.content(tmp_path / name, 10)
    with pytest.raises(FileNotFoundError):
        reading.content(tmp_path / "absent")


def test_what_grows_is_stopped_where_it_is_no_record() -> None:
    assert reading.beyond_limit(reading.FREE_BYTES, 1) == ""
    assert reading.beyond_limit(60 * 1_000_000, 1_000_000) == "", "a survey packs 54-fold"
    assert reading.beyond_limit(reading.FREE_BYTES + 1, 1) == "unpacks to more than 200 times its size"
    assert reading.beyond_limit(reading.RECORD_BYTES + 1, reading.RECORD_BYTES) == "unpacks to more than 256 MiB"

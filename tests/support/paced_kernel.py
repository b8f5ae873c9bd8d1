"""The coherence kernel with a pace: it sleeps before it writes records, so that a measurement which a test stops in its
middle lasts for seconds, whatever else the CPUs do, and takes none of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.real_parts import need

#: Arguments of a paced measurement: a pass takes PASS_S where it writes its lines and its pairs.
PACED = "--lines 8"
PASS_S = 0.5

PRELOADED = r"""
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

ssize_t write(int file, const void *bytes, size_t count);

ssize_t write(int file, const void *bytes, size_t count) {
    static const char record[] = "{\"record\":";
    if (count > sizeof record && memcmp(bytes, record, sizeof record - 1) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 250000000}, NULL);
    return syscall(SYS_write, file, bytes, count);
}
"""

WRAPPER = """\
#!/bin/sh
case "$*" in *--out*"{paced}"* | *"{paced}"*--out*) export LD_PRELOAD="${{LD_PRELOAD:+$LD_PRELOAD:}}{library}" ;; esac
exec {real} "$@"
"""


@pytest.fixture(scope="module")
def paced(house: Path) -> Iterator[None]:
    """The house with a coherence that has a pace where its arguments are PACED; it keeps its name as a process."""
    need("gcc")
    kernel = house / "kernels/build/coherence"
    folder = kernel.parent / "paced"
    folder.mkdir()
    library = folder / "pace.so"
    command = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-xc", "-"]
    subprocess.run([*command, "-o", library], input=PRELOADED, text=True, check=True)
    real = kernel.rename(folder / "coherence")
    kernel.write_text(WRAPPER.format(paced=PACED, library=library, real=real))
    kernel.chmod(0o755)
    yield
    real.rename(kernel)
    library.unlink()
    folder.rmdir()

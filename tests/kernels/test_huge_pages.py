"""Huge pages that the system does not give, or gives elsewhere: a shim in place of the C library's calls."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_parts import ALLOWED, built, missing, need
from tests.support.schemas import valid_records

pytestmark = pytest.mark.machine

#: `failing`: who asks for huge pages gets base pages. `elsewhere`: huge pages are on node 1; `all_elsewhere`: all are.
#: `moving`: when it is asked for the first time where pages are, one of them is nowhere, as Linux is moving it.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
static int huge;
static int mode(const char *word) { const char *own = getenv("SHIM"); return own != NULL && strcmp(own, word) == 0; }
int madvise(void *at, size_t size, int advice) {
    int (*real)(void *, size_t, int);
    *(void **)&real = dlsym(RTLD_NEXT, "madvise");
    if (advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE) huge = advice == MADV_HUGEPAGE;
    return real(at, size, advice == MADV_HUGEPAGE && mode("failing") ? MADV_NOHUGEPAGE : advice);
}
long syscall(long number, ...) {
    long (*real)(long, ...), a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_move_pages && mode("moving")) {
        static int asked;
        long done = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (asked++ == 0) ((int *)a[4])[0] = -ENOENT;
        return done;
    }
    if (number != SYS_move_pages || !(mode("all_elsewhere") || (mode("elsewhere") && huge)))
        return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    for (long i = 0; i < a[1]; i++) ((int *)a[4])[i] = 1;
    return 0;
}
"""


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("gcc", cpus=2)
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not enabled.exists() or "[never]" in enabled.read_text() or platform.machine() != "x86_64":
        missing("no transparent huge pages here")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c", "-ldl"], check=True)
    return folder / "shim.so"


def call(
    kernel: str, out: Path, shim: Path, mode: str
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    operation = {"coherence": "cas", "fault": "rate", "touch": "ratio"}[kernel]
    command: list[str | Path] = [
        built() / kernel,
        "--op",
        operation,
        "--cpus",
        f"{ALLOWED[0]},{ALLOWED[-1]}",
        "--passes",
        "1",
    ]
    environment = os.environ | {"LD_PRELOAD": str(shim), "SHIM": mode}
    done = subprocess.run(
        [*command, "--out", out], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    if done.returncode != 0:
        return done, []
    valid_records(out)
    return done, [json.loads(line) for line in out.read_text().splitlines()]


def test_a_node_whose_huge_pages_fail_is_worse_and_never_better(tmp_path: Path, shim: Path) -> None:
    rate, share = {}, {}
    for mode in ("", "failing"):
        _, lines = call("fault", tmp_path / f"{mode or 'healthy'}.jsonl", shim, mode)
        cells = [line for line in lines if line.get("pages") == "thp"]
        rate[mode] = max(cell["faults_per_s"] for cell in cells)
        share[mode] = {cell["base_share"] for cell in cells}
        assert {round(cell["faults_a_page"]) for cell in cells} == ({512} if mode else {1})
    assert share == {"": {0}, "failing": {1}}
    assert rate["failing"] < rate[""]


def test_an_array_whose_huge_pages_came_from_another_node_has_base_pages(tmp_path: Path, shim: Path) -> None:
    done, lines = call("touch", tmp_path / "r.jsonl", shim, "elsewhere")
    assert done.returncode == 0, done.stderr
    assert "came from another NUMA node than its own (0)" in done.stderr
    assert {where["pages"] for where in lines[0]["placement"].values()} == {"base"}


def test_an_array_that_is_elsewhere_on_base_pages_is_refused_with_what_is_true(tmp_path: Path, shim: Path) -> None:
    done, _ = call("touch", tmp_path / "r.jsonl", shim, "all_elsewhere")
    assert done.returncode == 3
    assert f"CPU {ALLOWED[0]} touched first are on another NUMA node than its own" in done.stderr.splitlines()[-1]
    assert "mbind" not in done.stderr


@pytest.mark.parametrize("kernel", ["coherence", "touch"])
def test_a_page_that_linux_is_moving_is_looked_for_again(kernel: str, tmp_path: Path, shim: Path) -> None:
    done, _ = call(kernel, tmp_path / "r.jsonl", shim, "moving")
    assert done.returncode == 0, done.stderr

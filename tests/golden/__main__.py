"""python -m tests.golden write | check | compare REVISION: what nodeprint says of the golden campaigns.

write: into tests/golden/expected, which a commit has. check: what differs from that. compare: everything in full, made
by this working tree and by another commit, as a difference (of tests/ this tree's are used for both).
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.golden import recording

_ROOT = Path(__file__).parents[2]
_SIMD: Any = np.show_config(mode="dicts")["SIMD Extensions"]
#: Processors with wider vectors and fused additions round differently: last digits of records, and then a digit that is
#: read. These choose what every x86-64 processor has, before numpy is loaded.
_PLAIN_ARITHMETIC = {
    "NPY_DISABLE_CPU_FEATURES": " ".join(sorted((*_SIMD.get("found", ()), *_SIMD.get("not found", ())))),
    "OPENBLAS_CORETYPE": "Nehalem",
    "OPENBLAS_NUM_THREADS": "1",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4,-AVX512F",
    "PYTHONWARNINGS": "ignore",
}


def main() -> int:
    """Do what the words say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "check", "compare", "save"))
    parser.add_argument("revision", nargs="?", help="a commit; of save a folder")
    parser.add_argument("--only", action="append", choices=recording.names(), help="a campaign, by default all")
    arguments = parser.parse_args()
    chosen = arguments.only or recording.names()
    if any(os.environ.get(key) != value for key, value in _PLAIN_ARITHMETIC.items()):
        command = [sys.executable, "-m", "tests.golden", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | _PLAIN_ARITHMETIC)
    if arguments.action == "check":
        lines = [line for name in chosen for line in recording.difference(name)]
        sys.stdout.writelines(lines)
        return int(bool(lines))
    if arguments.action == "write":
        for name in chosen:
            recording.write(name)
        return 0
    if not arguments.revision:
        parser.error(f"{arguments.action} needs a commit or a folder")
    if arguments.action == "save":
        for name in chosen:
            recording.save(name, Path(arguments.revision))
        return 0
    return compare(arguments.revision, chosen)


def compare(revision: str, chosen: Sequence[str]) -> int:
    """Print what differs between another commit and this tree; 1 where anything does."""
    words = [word for name in chosen for word in ("--only", name)]
    with tempfile.TemporaryDirectory(prefix="nodeprint-golden-") as folder:
        tree, old, new = (Path(folder, name) for name in ("tree", "old", "new"))
        subprocess.run(["git", "-C", str(_ROOT), "worktree", "add", "--detach", "-q", str(tree), revision], check=True)
        try:
            subprocess.run(["rm", "-rf", str(tree / "tests")], check=True)
            (tree / "tests").symlink_to(_ROOT / "tests")
            for root, out in ((tree, old), (_ROOT, new)):
                command = [sys.executable, "-m", "tests.golden", "save", str(out), *words]
                subprocess.run(command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, check=True)
        finally:
            subprocess.run(["git", "-C", str(_ROOT), "worktree", "remove", "--force", str(tree)], check=True)
        lines = list(_differences(old, new))
    sys.stdout.writelines(lines)
    return int(bool(lines))


def _differences(old: Path, new: Path) -> Iterator[str]:
    files = sorted({path.relative_to(of) for of in (old, new) for path in of.rglob("*") if path.is_file()})
    for path in files:
        yield from difflib.unified_diff(_lines(old / path), _lines(new / path), f"a/{path}", f"b/{path}", n=1)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []


if __name__ == "__main__":
    sys.exit(main())

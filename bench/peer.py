"""Programs of others that ours are compared with: of their public source at one commit, built outside of the project.

They are kept in `~/.cache/nodeprint-peers`, or the folder that NODEPRINT_PEERS names. Where GitHub cannot be reached, a
clone that lies there as `sources/NAME` is used; the commit has to be in it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("NODEPRINT_PEERS", Path.home() / ".cache/nodeprint-peers"))


@dataclass(frozen=True)
class Peer:
    """A public repository at a commit, the command that builds it there, and its programs."""

    repository: str
    commit: str
    build: str


#: Each is built as its authors say. By itself gcc makes of STREAM's copy a call of memcpy, which stores past the
#: caches: the flag leaves it the loop that STREAM has.
PEERS = {
    "stream": Peer(
        "https://github.com/jeffhammond/STREAM",
        "6703f7504a38a8da96b353cadafa64d3c2d7a2d3",
        "gcc -O3 -march=native -fno-tree-loop-distribute-patterns -fopenmp -mcmodel=medium {flags} -o {name} stream.c",
    ),
    "c2clat": Peer(
        "https://github.com/rigtorp/c2clat",
        "54196827e53e7138f0a1a39d231fdbf567f5d8f0",
        "g++ -O3 -DNDEBUG c2clat.cpp -o {name} -pthread",
    ),
    "multichase": Peer(
        "https://github.com/google/multichase",
        "a1ffd89b20d033f28fa44d6ee92d7a378b1b1dca",
        "make -s multichase pingpong",
    ),
    "IMB": Peer(
        "https://github.com/intel/mpi-benchmarks",
        "46e8757a920c334abfea6340499f1c5deaefb834",
        "make -s -C src_c TARGET=MPI1 CC=mpicc && cp src_c/IMB-MPI1 {name}",
    ),
}


def built(peer: str, name: str, flags: Sequence[str] = ()) -> Path | None:
    """The program `name` of a peer, built with `flags`; None, with the reason printed, where it cannot be had."""
    of = PEERS[peer]
    folder = CACHE / "built" / f"{peer}-{of.commit[:12]}"
    program = folder / name
    if program.exists():
        return program
    source = CACHE / "sources" / peer
    try:
        if not source.exists():
            source.parent.mkdir(parents=True, exist_ok=True)
            _call(["git", "clone", "--quiet", of.repository, str(source)])
        if not folder.exists():
            _call(["git", "clone", "--quiet", "--no-checkout", str(source), str(folder)])
            _call(["git", "-C", str(folder), "checkout", "--quiet", of.commit])
        _call(["sh", "-c", of.build.format(name=name, flags=shlex.join(flags))], folder)
    except (OSError, RuntimeError) as error:
        print(f"{peer}: not compared, as it cannot be built: {error}")
        return None
    return program


def installed(program: str, package: str) -> Path | None:
    """A program of a package, which is installed where this user may; None with the reason printed."""
    if shutil.which(program) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-qq", "-y", package], check=False, capture_output=True)
    found = shutil.which(program)
    if found is None:
        print(f"{program}: not compared, as it is not here: install the package {package}")
    return Path(found) if found else None


def crate(name: str, version: str) -> Path | None:
    """A program that Rust's registry has; None with the reason printed."""
    program = CACHE / "cargo/bin" / name
    if not program.exists() and shutil.which("cargo"):
        command = ["cargo", "install", "--quiet", "--locked", f"{name}@{version}", "--root", str(CACHE / "cargo")]
        # rustc takes source text from what is left on standard input
        subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
    if not program.exists():
        print(f"{name}: not compared, as cargo is missing or could not install it")
        return None
    return program


def _call(command: Sequence[str], folder: Path | None = None) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"{command[0]} ended with {done.returncode}"])[-1])

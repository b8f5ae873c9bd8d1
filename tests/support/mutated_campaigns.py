"""python -m tests.support.mutated_campaigns COUNT [--seed N] [--base CAMPAIGN]: damaged campaigns, given to commands.

Files of a campaign (records, outcomes, surveys, sheet, configuration, acceptance, store, table of deviations) are cut,
exchanged between nodes, duplicated, or get flipped bits and absurd numbers. Every command has to do its work or to
refuse in one sentence, within 60 s of a processor and 1 GiB. What ends otherwise is printed with its seed.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import random
import resource
import shutil
import signal
import sys
import tarfile
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NoReturn
from unittest import mock

import nodeprint.history.text
import nodeprint.interface.export
import nodeprint.report.documents
from nodeprint import simulate
from nodeprint.cli.app import main as command_line
from nodeprint.cli.shared import judge_and_write
from nodeprint.judge import acceptance
from nodeprint.machine.topology.presets import preset
from nodeprint.report import protocol
from nodeprint.simulate import Plan
from tests.support import mutated_files

#: What a child needs is loaded before it is forked.
LOADED = (nodeprint.history.text, nodeprint.interface.export, nodeprint.report.documents, protocol)
MOST_SECONDS, MOST_KIB = 60, 1 << 20
_COMMANDS = (
    ("status", "BASE"),
    ("judge", "BASE"),
    ("export", "BASE", "--to", "OUT.csv", "--table", "deviations"),
    ("export", "BASE", "--to", "OUT.csv", "--table", "pairs"),
    ("verify", "BASE"),
    ("drift", "BASE"),
    ("since", "BASE"),
    ("judge", "BASE", "--json"),
)
#: So often it is shown how many were tried.
_SHOWN = 25
#: Pages take seconds.
_PAGES = ("report", "BASE")
_ONE_OF_PAGES = 25


def base(folder: Path) -> Path:
    """A small campaign that was judged, with all kinds of files."""
    plan = Plan(preset("graviton3-64"), nodes=3, runs=2, passes=1)
    campaign = folder / "main"
    simulate.write(plan, campaign)
    acceptance.keep_rules(acceptance.load(), campaign)
    (campaign / "config.yaml").write_text("launch: here\nruns: 2\n")
    with redirect_stdout(io.StringIO()):
        judge_and_write(campaign)
    return campaign


def tried(campaign: Path, seed: int) -> str:
    """Damage a copy of a campaign by a seed and give it to the commands, in a process of its own; what went wrong,
    empty where nothing did."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, campaign.name)
        shutil.copytree(campaign, copy, symlinks=True)
        generator = random.Random(seed)
        damage = damaged(copy, generator)
        said = Path(folder, "said")
        if not (child := os.fork()):
            _run(copy, generator, said)
        _, status, used = os.wait4(child, 0)
        words = said.read_text() if said.exists() else ""
        if status:
            words += f"ended with {os.waitstatus_to_exitcode(status)}\n"
        if used.ru_maxrss > MOST_KIB + _RESIDENT_KIB:
            words += f"took {used.ru_maxrss >> 10} MiB\n"
        return f"seed {seed}: {damage}\n{words}" if words else ""


_RESIDENT_KIB = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def damaged(campaign: Path, generator: random.Random) -> str:
    """Damage one to three files of a campaign; what was done."""
    files = sorted(path for path in campaign.rglob("*") if path.is_file())
    kinds: dict[str, list[Path]] = {}
    for path in files:
        inside = path.relative_to(campaign)
        kinds.setdefault(inside.parts[0] if inside.parts[0] != "nodes" else path.suffix, []).append(path)
    done = []
    for _ in range(generator.randint(1, 3)):
        path = generator.choice(kinds[generator.choice(sorted(kinds))])
        accident = generator.choice(_ACCIDENTS)
        if path.exists():
            accident(path, files, generator)
            done.append(f"{accident.__name__} {path.relative_to(campaign)}")
    return ", ".join(done)


def _flip(path: Path, _: Sequence[Path], generator: random.Random) -> None:
    raw = bytearray(path.read_bytes())
    for _number in range(generator.choice((1, 1, 8))):
        if raw:
            raw[generator.randrange(len(raw))] ^= 1 << generator.randrange(8)
    path.write_bytes(raw)


def _cut(path: Path, _: Sequence[Path], generator: random.Random) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: generator.randint(0, len(raw))])


def _content(path: Path, files: Sequence[Path], generator: random.Random) -> None:
    """Lines, numbers and bytes of what is in a file, unpacked where it is packed."""
    raw = path.read_bytes()
    packed = path.suffix == ".gz"
    try:
        text = gzip.decompress(raw) if packed else raw
    except (OSError, EOFError):
        return
    changed = mutated_files.mutated(text, [text], generator)
    path.write_bytes(gzip.compress(changed, 1) if packed else changed)


def _member(path: Path, files: Sequence[Path], generator: random.Random) -> None:
    """The content of one file in a survey; of any other file its own."""
    if not path.name.endswith(".tar.gz"):
        _content(path, files, generator)
        return
    out = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as new:
        members = old.getmembers()
        chosen = generator.choice([member for member in members if member.isreg()])
        for member in members:
            file = old.extractfile(member) if member.isreg() else None
            raw = file.read() if file is not None else b""
            if member is chosen:
                raw = mutated_files.mutated(raw, [raw], generator)
                member.size = len(raw)
            new.addfile(member, io.BytesIO(raw) if file is not None else None)
    path.write_bytes(out.getvalue())


def _exchange(path: Path, files: Sequence[Path], generator: random.Random) -> None:
    other = generator.choice([file for file in files if file.suffix == path.suffix])
    if other.exists():
        first, second = path.read_bytes(), other.read_bytes()
        path.write_bytes(second)
        other.write_bytes(first)


def _duplicate(path: Path, files: Sequence[Path], generator: random.Random) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw + raw[generator.randint(0, len(raw)) :])


def _remove(path: Path, _: Sequence[Path], generator: random.Random) -> None:
    path.unlink()


_ACCIDENTS: tuple[Callable[[Path, Sequence[Path], random.Random], None], ...] = (
    _flip,
    _cut,
    _content,
    _content,
    _content,
    _member,
    _exchange,
    _duplicate,
    _remove,
)


def _run(copy: Path, generator: random.Random, said: Path) -> NoReturn:
    """Give a campaign to the commands in this process, and end it; what is wrong is written to a file."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS * len(_COMMANDS), MOST_SECONDS * len(_COMMANDS)))
    signal.alarm(10 * MOST_SECONDS)
    commands = [*_COMMANDS, _PAGES] if not generator.randrange(_ONE_OF_PAGES) else _COMMANDS
    for words in commands:
        arguments = [word.replace("BASE", str(copy)).replace("OUT", str(copy.parent / "out")) for word in words]
        begun = resource.getrusage(resource.RUSAGE_SELF)
        if wrong := _wrong(arguments):
            with said.open("a") as file:
                file.write(f"{' '.join(words)}: {wrong}\n")
        used = resource.getrusage(resource.RUSAGE_SELF)
        if used.ru_utime + used.ru_stime - begun.ru_utime - begun.ru_stime > MOST_SECONDS:
            with said.open("a") as file:
                file.write(f"{' '.join(words)}: took more than {MOST_SECONDS} s\n")
    os._exit(0)


def _wrong(arguments: Sequence[str]) -> str:
    """What is wrong with how a command ends; empty where nothing is."""
    out, errors = io.StringIO(), io.StringIO()
    with mock.patch.object(sys, "argv", ["nodeprint", *arguments]), redirect_stdout(out), redirect_stderr(errors):
        try:
            command_line()
        except SystemExit as ended:
            if ended.code not in (None, 0, 1, 2, 3):
                return f"ends with {ended.code}"
        except BaseException:  # noqa: BLE001 (whatever ends a command is what is looked for)
            return traceback.format_exc()
    if "Traceback" in (said := errors.getvalue()):
        return said
    # content that no reader expects costs one node; its reader has to expect it all the same
    shown = out.getvalue() + said
    return shown[:2000] if "does not expect" in shown else ""


def main() -> int:
    """Try damaged campaigns; 1 where a command ended otherwise than it may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--base", type=Path)
    arguments = parser.parse_args()
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        campaign = arguments.base or base(Path(folder))
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            if words := tried(campaign, seed):
                found += 1
                print(words, flush=True)
            if (number := seed + 1 - arguments.seed) % _SHOWN == 0:
                print(f"{number} of {arguments.count} damaged campaigns, {found} found", file=sys.stderr, flush=True)
    print(f"{arguments.count} damaged campaigns, {found} ended otherwise than they may")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

"""python -m tests.support.mutated_campaigns COUNT [--seed N] [--base CAMPAIGN]: damaged files, given to commands.

Files of a campaign (records, outcomes, surveys, sheet, configuration, acceptance, store, table of deviations) are cut,
exchanged between nodes, duplicated, or get flipped bits and absurd numbers. Every command has to do its work or to
reject them in one sentence, within 60 s of a processor and 1 GiB. A command that does otherwise is printed with its
seed. A campaign has a damaged file in each of its nodes, as an error of one hides none of another, or one in a file of
the whole campaign.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import nodeprint
import nodeprint.history.change_sentences
import nodeprint.interface.export
import nodeprint.report.documents
from nodeprint import simulate
from nodeprint.cli.app import main as command_line
from nodeprint.cli.shared import judge_and_write
from nodeprint.data.store import packing
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance
from nodeprint.machine.topology import captured
from nodeprint.machine.tree import open_tree
from nodeprint.report import protocol
from nodeprint.simulate import Plan
from tests.support import machines, mutated_files

#: What a child needs is loaded before it is forked.
LOADED = (nodeprint.history.change_sentences, nodeprint.interface.export, nodeprint.report.documents, protocol)
MOST_SECONDS, MOST_KIB = 60, 1 << 20
_COMMANDS = (
    ("status", "BASE"),
    ("judge", "BASE", "--recheck", "OUT.again"),
    ("show", "BASE"),
    ("protocol", "BASE", "--to", "OUT.protocol"),
    ("export", "BASE", "--to", "OUT.csv", "--table", "deviations"),
    ("export", "BASE", "--to", "OUT.csv", "--table", "coherence-cas"),
    ("verify", "BASE"),
    ("drift", "BASE"),
    ("history", "BASE"),
    ("open", "BASE"),
)
#: So often it is shown how many were tried.
_SHOWN = 25
#: Pages take seconds.
_PAGES = ("report", "BASE")
_ONE_OF_PAGES = 25


#: Nodes of the campaign, each of which has a damaged file.
NODES = 12
#: In so many campaigns one has its only damage in a file that is of no node.
_ONE_OF_WHOLE = 4
_MACHINE = machines.Epyc(0x31, 0x17, "AMD EPYC 7252 8-Core Processor", (0, 2), 1, 2, 4, lambda ccd: ccd // 2)


def base(folder: Path) -> Path:
    """A campaign of small nodes that was judged, with all kinds of files."""
    root = machines.epyc(_MACHINE, sockets=1, threads=1).write(folder / "root")
    plan = Plan(captured.read(open_tree(root)), nodes=NODES, runs=1, passes=1, pair_runs=2)
    campaign = folder / "main"
    simulate.write(plan, campaign)
    acceptance.keep_rules(acceptance.load(), campaign)
    (campaign / "config.yaml").write_text("launch: here\nruns: 1\n")
    with redirect_stdout(io.StringIO()):
        judge_and_write(campaign)
    return campaign


def inputs(seed: int) -> int:
    """How many files the campaign of a seed has damaged."""
    return NODES if seed % _ONE_OF_WHOLE else 1


def tried(campaign: Path, seed: int) -> str:
    """Damage a copy of a campaign by a seed and give it to the commands, in a process of its own; the failures, empty
    if there are none."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, campaign.name)
        shutil.copytree(campaign, copy, symlinks=True)
        generator = random.Random(seed)
        damage = damaged(copy, generator, of_nodes=inputs(seed) > 1)
        said = Path(folder, "said")
        if not (child := os.fork()):
            try:
                _run(copy, generator, said)
            finally:
                os._exit(1)
        _, status, used = os.wait4(child, 0)
        words = said.read_text() if said.exists() else ""
        if status:
            words += f"ended with {os.waitstatus_to_exitcode(status)}\n"
        if used.ru_maxrss > MOST_KIB + _RESIDENT_KIB:
            words += f"took {used.ru_maxrss >> 10} MiB\n"
        return f"seed {seed}: {damage}\n{words}" if words else ""


_RESIDENT_KIB = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def damaged(campaign: Path, generator: random.Random, *, of_nodes: bool) -> str:
    """Damage a file of each node, or one of the whole campaign; a description of the damage."""
    files = sorted(path for path in campaign.rglob("*") if path.is_file())
    done = []
    for node in sorted((campaign / "nodes").iterdir()) if of_nodes else [None]:
        kinds: dict[str, list[Path]] = {}
        for path in files:
            inside = path.relative_to(campaign)
            if node is None and inside.parts[0] != "nodes":
                kinds.setdefault(inside.parts[0], []).append(path)
            elif node is not None and node in path.parents:
                kinds.setdefault(path.name.partition(".")[0] if path.suffix != ".gz" else path.suffixes[0], []).append(
                    path
                )
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
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    packing.mapped = _in_this_process  # type: ignore[assignment, attr-defined]
    for words in commands:
        arguments = [word.replace("BASE", str(copy)).replace("OUT", str(copy.parent / "out")) for word in words]
        begun = resource.getrusage(resource.RUSAGE_SELF)
        if wrong := _wrong(arguments, _opened if words[0] == "open" else command_line):
            with said.open("a") as file:
                file.write(f"{' '.join(words)}: {wrong}\n")
        used = resource.getrusage(resource.RUSAGE_SELF)
        if used.ru_utime + used.ru_stime - begun.ru_utime - begun.ru_stime > MOST_SECONDS:
            with said.open("a") as file:
                file.write(f"{' '.join(words)}: took more than {MOST_SECONDS} s\n")
    os._exit(0)


def _in_this_process(task: Callable[[Any], Any], items: Iterable[Any], _: int) -> Iterator[Any]:
    return map(task, items)


def _opened() -> None:
    """Read a campaign by the Python interface."""
    try:
        campaign = nodeprint.open(Path(sys.argv[2]))
        campaign.deviations()
        _ = campaign.verdict
        for measurement in ("coherence-cas", "chase-latency"):
            campaign.data(measurement)
    except NodeprintError:
        return


def _wrong(arguments: Sequence[str], command: Callable[[], object]) -> str:
    """The way in which a command ends wrongly; empty if it does not."""
    out, errors = io.StringIO(), io.StringIO()
    with mock.patch.object(sys, "argv", ["nodeprint", *arguments]), redirect_stdout(out), redirect_stderr(errors):
        try:
            command()
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
        seed, done = arguments.seed, 0
        while done < arguments.count:
            if words := tried(campaign, seed):
                found += 1
                print(words, flush=True)
            done += inputs(seed)
            seed += 1
            if seed % _SHOWN == 0:
                used = resource.getrusage(resource.RUSAGE_CHILDREN)
                seconds = round(used.ru_utime + used.ru_stime)
                words = f"{done} of {arguments.count} damaged files, {seconds} CPU s, next seed {seed}, {found} found"
                print(words, file=sys.stderr, flush=True)
    print(f"{done} damaged files, {found} campaigns ended otherwise than they may")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

"""Arguments and output that commands share."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

from nodeprint import files
from nodeprint.errors import NodeprintError
from nodeprint.settings.texts import say

if TYPE_CHECKING:
    from nodeprint.judge.verdict import Verdict
    from nodeprint.machine.topology.model import Topology
    from nodeprint.report.pages.blocks import Block, Section

Campaign = Annotated[
    Path, typer.Argument(metavar="CAMPAIGN", help="Directory of a campaign, such as results/main.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
#: The readers of matrices, which are not imported to print the help.
FORMATS = (
    "nodeprint",
    "intel-mlc",
    "linktest",
    "multichase-pingpong",
    "c2clat",
    "chips-and-cheese",
    "core-to-core-latency-terminal",
    "macos-core-to-core-latency",
    "long-table",
    "core-to-core-latency",
)
Format = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"Format of the matrix (default: recognized): {', '.join(FORMATS)}."),
]
#: Columns of sentences in a file or pipe.
_IN_A_PIPE = 100


def output_file(ctx: typer.Context, path: Path | None) -> Path | None:
    """Check the path of a file before the command starts (a callback of typer).

    At the end of the command, a message names a directory that was created. Raises CannotWriteError for a new directory
    in `/`.
    """
    if path is not None:
        files.check_directories(path.parent)
        if missing := [folder for folder in path.parents if not folder.exists()]:
            ctx.call_on_close(lambda: _say_created(missing[-1]))
    return path


def output_directory(ctx: typer.Context, path: Path | None) -> Path | None:
    """Check the path of a directory, as `output_file` checks that of a file."""
    if path is not None:
        files.check_directories(path)
    return output_file(ctx, path)


def _say_created(folder: Path) -> None:
    if folder.is_dir():
        typer.echo(f"nodeprint: {say('commands', 'created', folder=folder)}", err=True)


def leave_out(options: Mapping[str, object], problem: str, advice: str) -> None:
    """Raise NodeprintError if one of the options, by name, is given: it would have no effect."""
    if given := [option for option, value in options.items() if value]:
        raise NodeprintError(problem, key=given[0], advice=advice)


def read_labels(root: Path | None, xml: Path | None, cpuid: Path | None) -> Topology:
    """Return the labels of a machine from --root, --xml or --cpuid, or of this machine. Only one may be given."""
    from nodeprint.machine.topology import captured
    from nodeprint.machine.tree import open_tree

    given: dict[str, object] = {"--root": root, "--xml": xml, "--cpuid": cpuid}
    *first, _ = [option for option, path in given.items() if path] or [""]
    leave_out(dict.fromkeys(first, True), "one source of labels is read, and there are several", "leave it out")
    if xml:
        return captured.read_xml(xml)
    return captured.read_cpuid(cpuid) if cpuid else captured.read(open_tree(root or Path("/")))


@contextmanager
def input_files(*paths: Path) -> Iterator[list[Path]]:
    """Yield files to read, with a copy for each path that is `-` or a pipe, as readers open a file more than once.

    Errors name the path, not the copy.
    """
    with tempfile.TemporaryDirectory(prefix="nodeprint-") as folder:
        kept: dict[Path, Path] = {}
        for number, path in enumerate(paths):
            if str(path) == "-" or path.is_fifo():
                kept[path] = Path(folder, str(number), "standard-input")
                kept[path].parent.mkdir()
                with kept[path].open("wb") as file, sys.stdin.buffer if str(path) == "-" else path.open("rb") as source:
                    shutil.copyfileobj(source, file)
        try:
            yield [kept.get(path, path) for path in paths]
        except NodeprintError as error:
            sentence = str(error)
            for path, copy in kept.items():
                sentence = sentence.replace(str(copy), "standard input" if str(path) == "-" else str(path))
            raise NodeprintError(sentence) from error


def print_json(facts: object) -> None:
    """Print facts (JSON types, structures, dataclasses) as JSON; the same facts give the same text."""
    typer.echo(dumps(msgspec.to_builtins(facts), indent=1, sort_keys=True, allow_nan=False))


def show(*blocks: Block | str) -> None:
    """Print blocks and lines for a reader, as `show_sections` does."""
    from nodeprint.report.pages.blocks import Section, Text

    show_sections([Section("", tuple(Text(block) if isinstance(block, str) else block for block in blocks))])


def show_sections(sections: Iterable[Section]) -> None:
    """Print sections for a reader, wrapped at COLUMNS or the width of the terminal, and at 100 in a file or pipe.

    Outcomes are in color on a terminal.
    """
    from nodeprint.report import terminal

    columns = terminal_columns()
    Console(highlight=False, width=columns).print(terminal.painted(sections, columns), soft_wrap=True)


def terminal_columns() -> int:
    """Return the number of columns of a line for a reader."""
    return shutil.get_terminal_size((_IN_A_PIPE, 24)).columns


def say_origin(simulated: bool) -> None:
    """Print the first line of output that is not from a measurement."""
    if simulated:
        show("SIMULATED, not a measurement")


def judge_and_write(campaign: Path, *, baseline: Path | None = None, acceptance: Path | None = None) -> Verdict:
    """Judge a campaign; write verdict.json, deviations.nc, JUnit, Prometheus text, drain.sh and the manifest."""
    from nodeprint.campaign import node_sheet
    from nodeprint.data.store import manifest, store
    from nodeprint.judge import campaign as judging
    from nodeprint.report import former_verdict, verdict_files

    place = store.base(campaign)
    former = former_verdict.read(place)
    verdict = judging.judge(campaign, baseline=baseline, acceptance=acceptance).verdict
    verdict_files.write(verdict, place, node_sheet.states(campaign))
    if words := former_verdict.keep(place, former):
        print(f"nodeprint: {words}", file=sys.stderr, flush=True)
    manifest.write(campaign)
    return verdict

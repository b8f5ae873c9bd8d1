"""python -m nodeprint_addons.atlas.collect DIRECTORY --out reference.json: the table of published machines.

Medians are those of core-to-core-latency matrices in DIRECTORY, each named after its processor, and of cards there.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from nodeprint import files
from nodeprint.errors import NodeprintError
from nodeprint.readers import matrix_file
from nodeprint_addons.atlas import card_file
from nodeprint_addons.atlas.matrix_card import card_of_matrix
from nodeprint_addons.atlas.published_machines import PublishedMachine, ReferenceTable

_PUBLISHED = "core-to-core-latency"
_ISSUES = "core-to-core-latency-issues"
_PROJECT = "https://github.com/nviennot/core-to-core-latency"
_SOURCES = {
    _ISSUES: {"url": f"{_PROJECT}/issues", "version": "November 2026", "license": ""},
    _PUBLISHED: {"url": _PROJECT, "version": "96a943a", "license": "MIT"},
    "card": {"url": "sent by users", "version": "", "license": ""},
}


#: Medians inside a CCX and between CCXs of a socket, from matrices in the issues of the tool's project; `file` is the
#: issue number. The home of the line was not controlled.
_SENT = tuple(
    PublishedMachine(processor, sockets, cpus, "cas", {"same CCX": inside, "same socket": between}, _ISSUES, issue)
    for processor, sockets, cpus, inside, between, issue in (
        ("AMD EPYC 74F3 24-Core Processor", 1, 48, 19.8, 100.0, "33"),
        ("AMD EPYC 9454P 48-Core Processor", 1, 96, 26.4, 103.0, "144"),
        ("AMD EPYC 9654 96-Core Processor", 2, 384, 27.1, 95.0, "89"),
        ("AMD EPYC 9754 128-Core Processor", 1, 256, 32.6, 110.0, "94"),
    )
)


def collect(folder: Path) -> ReferenceTable:
    """The table of matrices sent to the tool's project, and of all matrices and cards in `folder`.

    Standard error lists the files that hold neither.
    """
    machines = [*_SENT]
    for path in sorted(folder.iterdir()):
        try:
            if path.suffix == ".csv":
                machines.append(_published(path))
            elif path.suffix == ".json":
                machines.append(_sent(path))
        except NodeprintError as error:
            print(f"left out: {error}", file=sys.stderr)
    return ReferenceTable(
        {name: _SOURCES[name] for name in sorted({machine.source for machine in machines})}, tuple(machines)
    )


def _published(path: Path) -> PublishedMachine:
    dual = re.match(r"Dual (.*)", path.stem)
    card = card_of_matrix(matrix_file.read_output(path), dual[1] if dual else path.stem, sockets=2 if dual else 0)
    assert card.matrix is not None
    medians = {figure.name: round(figure.median, 1) for figure in card.figures}
    processor = card.processor
    sockets, operation = max(processor.sockets, 1), card.matrix.operation
    return PublishedMachine(processor.name, sockets, processor.cpus, operation, medians, _PUBLISHED, path.name)


def _sent(path: Path) -> PublishedMachine:
    card = card_file.read(path)
    if card.matrix is None or card.origin.simulated:
        raise NodeprintError("no measured matrix", where=path, advice="take it out")
    measurement = card.matrix.measurement
    medians = {figure.name: round(figure.median, 1) for figure in card.figures if figure.measurement == measurement}
    processor = card.processor
    return PublishedMachine(
        processor.name, processor.sockets, processor.cpus, card.matrix.operation, medians, "card", path.name
    )


def main(words: Sequence[str] | None = None) -> None:
    """The script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("reference.json"))
    arguments = parser.parse_args(words)
    table = collect(arguments.folder)
    files.write(arguments.out, msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n")
    print(f"{arguments.out}: {len(table.machines)} machines")


if __name__ == "__main__":
    main()

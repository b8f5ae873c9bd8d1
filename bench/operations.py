"""The command line of benchmarks that go through the operations of the kernels."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Protocol, TypeVar

from tests.support.real_parts import ALLOWED


class _Named(Protocol):
    """An operation by its kernel and its `--op`."""

    @property
    def name(self) -> str: ...


Operation = TypeVar("Operation", bound=_Named)


def chosen(bench: str, description: str | None, operations: Sequence[Operation]) -> tuple[list[Operation], int]:
    """Parse the command line: the operations it names and the runs of each; none if only one CPU is allowed."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each operation (3)")
    parser.add_argument("only", nargs="*", metavar="OPERATION", help="those whose names begin so, as chase")
    arguments = parser.parse_args()
    if len(ALLOWED) < 2:
        print(f"{bench}: unverified, only one CPU is allowed here")
        return [], arguments.rounds
    named = tuple(arguments.only) or ("",)
    return [operation for operation in operations if operation.name.startswith(named)], arguments.rounds

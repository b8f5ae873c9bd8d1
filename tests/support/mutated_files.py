"""python -m tests.support.mutated_files FOLDER [FOLDER ...]: files spoiled as copies and pastes spoil them, and read.

Each is read as a matrix, a table or output of a tool, or the topology that it is; it has to be read or refused in one
sentence. What ends otherwise is printed with its seed, and kept where --keep says.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nodeprint import structure
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import captured, serialized
from nodeprint.machine.tree import open_tree
from nodeprint.readers import matrix_file, table_file

_NUMBER = re.compile(rb"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_EXTREMES = (b"0", b"-1", b"1e308", b"1e-320", b"nan", b"inf", b"99999999999999999999", b"0x10", b"1_000", b"1,5", b"")
_LINES = (
    b"```",
    b"> quoted",
    b"Lmod: loading gcc/13",
    b"\x1b[32m42\x1b[0m",
    b"----------------",
    b"{",
    b"]",
    b"\t\t\t",
    b"==> a.log <==",
    "\u00e9\u00b0\u00b1\u00b2\u2462".encode(),
    b"\x00\xff\xfe",
    b"0" * 400,
    b"[" * 3000,
)
_ENDINGS = (".xml", ".gz", ".xz", ".bz2", ".tar")
#: A matrix of more CPUs is not searched for structure, which takes a tenth of a second.
_MOST_CPUS = 40


def mutated(content: bytes, strangers: Sequence[bytes], generator: random.Random) -> bytes:
    """The content after one to four accidents."""
    for _ in range(generator.randint(1, 4)):
        content = _ACCIDENTS[generator.randrange(len(_ACCIDENTS))](content, strangers, generator)
    return content


def _cut(content: bytes, _: Sequence[bytes], generator: random.Random) -> bytes:
    return content[: generator.randint(0, len(content))]


def _byte(content: bytes, _: Sequence[bytes], generator: random.Random) -> bytes:
    at = generator.randint(0, len(content))
    return content[:at] + bytes([generator.randrange(256)]) + content[at + generator.randint(0, 1) :]


def _lines(content: bytes, strangers: Sequence[bytes], generator: random.Random) -> bytes:
    lines = content.split(b"\n")
    at = generator.randrange(len(lines))
    other = generator.choice(strangers).split(b"\n")
    some = other[generator.randrange(len(other)) :][: generator.randint(1, 5)]
    kind = generator.randrange(6)
    new: tuple[list[bytes], ...] = (
        [],
        [lines[at]] * 2,
        [generator.choice(_LINES), lines[at]],
        [*some, lines[at]],
        [lines[at][::-1]],
        [lines[at][:-3]],
    )
    lines[at : at + 1] = new[kind]
    return b"\n".join(lines)


def _number(content: bytes, _: Sequence[bytes], generator: random.Random) -> bytes:
    numbers = list(_NUMBER.finditer(content))
    if not numbers:
        return content
    match = generator.choice(numbers)
    return content[: match.start()] + generator.choice(_EXTREMES) + content[match.end() :]


def _form(content: bytes, _: Sequence[bytes], generator: random.Random) -> bytes:
    """Another separator, line end or encoding, quotation, wrapped lines."""
    kind = generator.randrange(8)
    if kind < 3:
        first, second = generator.sample([b",", b";", b"\t", b" ", b"|"], 2)
        return content.replace(first, second)
    if kind == 3:
        return content.replace(b"\n", b"\r\n")
    if kind == 4:
        return content.decode("utf-8", "replace").encode("utf-16")
    if kind == 5:
        return b"".join(b"> " + line for line in content.splitlines(keepends=True))
    if kind == 6:
        width = generator.randint(10, 120)
        return b"\n".join(
            line[i : i + width] for line in content.split(b"\n") for i in range(0, max(len(line), 1), width)
        )
    return content.replace(b".", b",")


_ACCIDENTS = (_cut, _byte, _byte, _lines, _lines, _lines, _number, _number, _form)


def outcome(path: Path) -> str:
    """`read` or `refused`, after all that reads such a file; anything else is raised."""
    results = [_attempt(reader, path) for reader in (_matrix, _table, *([_topology] if _is_topology(path) else []))]
    return "read" if "read" in results else "refused"


def _attempt(reader: object, path: Path) -> str:
    try:
        reader(path)  # type: ignore[operator]
    except NodeprintError as error:
        sentence = str(error)
        if "\n" in sentence or len(sentence) > 1500:
            raise AssertionError(f"no sentence: {sentence[:200]!r}") from error
        return "refused"
    return "read"


def _matrix(path: Path) -> None:
    imported = matrix_file.read_output(path)
    if imported.cores is not None and len(imported.cores.cpus) <= _MOST_CPUS:
        structure.find(imported.cores.ns, imported.cores.cpus).lines()


def _table(path: Path) -> None:
    table_file.read_table(path)


def _is_topology(path: Path) -> bool:
    return path.suffix in _ENDINGS


def _topology(path: Path) -> None:
    machine = captured.read_xml(path) if path.suffix == ".xml" else captured.read(open_tree(path))
    serialized.as_json(machine)


def run(files: Sequence[Path], count: int, seed: int, keep: Path | None = None) -> Counter[str]:
    """How often each outcome came, of `count` mutated copies; a fault is printed with its seed."""
    contents = [path.read_bytes() for path in files]
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(seed, seed + count):
            generator = random.Random(number)
            of_file = generator.randrange(len(files))
            path = Path(folder) / f"cn001{files[of_file].suffix}"  # a single output needs a host
            path.write_bytes(mutated(contents[of_file], contents, generator))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    seen[outcome(path)] += 1
            except Exception:  # noqa: BLE001 (any that is none of ours is what is looked for)
                seen["fault"] += 1
                print(f"seed {number}, {files[of_file]}:\n{traceback.format_exc()}", file=sys.stderr)
                if keep is not None:
                    (keep / f"{number}{path.suffix}").write_bytes(path.read_bytes())
    return seen


def main() -> int:
    """The script: 1 where a file ended otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--largest", type=int, default=200_000, help="bytes of a file that is taken")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    files = sorted(
        path
        for folder in given.folders
        for path in folder.rglob("*")
        if path.is_file() and 0 < path.stat().st_size <= given.largest and path.suffix != ".py"
    )
    begun = time.monotonic()
    seen = run(files, given.count, given.seed, given.keep)
    print(f"{sum(seen.values())} mutated copies of {len(files)} files: {dict(seen)}, {time.monotonic() - begun:.0f} s")
    return int(bool(seen["fault"]))


if __name__ == "__main__":
    sys.exit(main())

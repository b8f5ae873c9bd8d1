"""Would the tests notice? A seeded draw of small faults, each tried with the tests of the room that it is in.

    python -m tests.mutants                                100 of the draw with seed 1
    python -m tests.mutants --seed 7 --draw 20 --room judge

A function or a constant of the rooms is drawn, then a place in it: a comparison, an operator, a number, a truth value
or a negation is changed. The room's tests run on a copy of the project, without reference data and without those that
measure or start services, in three rounds, each of which tries what is left of the one before: with the module's own
tests, with all quick ones, with those that are marked `slow`. So a call that is stopped says how many died at least,
and whose own tests are missing. A mutant dies where a test fails that passes without it, or where one takes a minute of
a processor. Results are kept in build/mutants/ by commit and seed, so that a call goes on where the last one was
stopped. Survivors are printed with their change; those that change nothing that anybody could notice stand in
equivalent_mutants.yaml, with the reason.

All tests of a mutant run in one process, a copy of this one, which has the libraries loaded.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NoReturn, TextIO

if __name__ == "__main__":
    # a copy of this process has one thread, so that no other may hold a lock when it is copied
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ.pop("NODEPRINT_DATA", None)

import msgspec
import pandas
import pytest
import scipy.stats
import typer
import xarray
import yaml

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build/mutants"
#: By room its sources and its tests.
ROOMS: Mapping[str, tuple[str, str]] = {
    "judge": ("nodeprint/judge", "tests/unit/judge"),
    "stats": ("nodeprint/stats", "tests/unit/stats"),
    "data": ("nodeprint/data", "tests/unit/data"),
    "topology": ("nodeprint/machine/topology", "tests/unit/machine"),
    "names": ("nodeprint/report/names.py", "tests/unit/report"),
    "workflow": ("workflow", "tests/workflow"),
}
#: Tests of a room that no mutant is tried with.
_ROOMS_OWN = "not long and not emulated and not machine"
#: Seconds of a processor after which a test, and with it a mutant, is dead.
_STUCK_S = 60
#: What the tests use beside the project, loaded once for all mutants.
_LOADED = (pandas, scipy.stats, typer, xarray)
#: The share that has to die, of those that are not equivalent.
ASKED = 0.8
#: What becomes of an operator.
_OPERATORS: Mapping[type[ast.AST], ast.AST] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Div(),
    ast.Pow: ast.Mult(),
    ast.And: ast.Or(),
    ast.Or: ast.And(),
    ast.BitAnd: ast.BitOr(),
    ast.BitOr: ast.BitAnd(),
}


class Round(msgspec.Struct, frozen=True):
    """Which tests (a marker's expression) try a mutant, and whether they are those of its module or of its room."""

    name: str
    which: str
    own: bool = False


#: Most mutants die at once; a survivor costs all of its room.
ROUNDS = (Round("own", "not slow", own=True), Round("quick", "not slow"), Round("slow", "slow"))


class Mutant(msgspec.Struct, frozen=True):
    """A change of one place: in which room, file (from the project's folder) and function or constant, on which line,
    from what to what, and the file with it."""

    room: str
    path: str
    of: str
    line: int
    before: str
    after: str
    text: str


class Tried(msgspec.Struct, frozen=True):
    """A mutant, its number in the draw, and what became of it: the test that fails, "time" where one took too long, ""
    of a survivor."""

    number: int
    room: str
    path: str
    of: str
    line: int
    before: str
    after: str
    died_by: str

    @property
    def equivalent(self) -> bool:
        """Whether a person has said that nobody could notice the change."""
        return (self.path, self.of, self.before, self.after) in _equivalents()

    def __str__(self) -> str:
        end = "died" if self.died_by else "equivalent" if self.equivalent else "survived"
        return f"{end}: {self.path}:{self.line} {self.of}: {self.before} -> {self.after}"


@cache
def _equivalents() -> frozenset[tuple[str, str, str, str]]:
    known = yaml.safe_load((ROOT / "tests/equivalent_mutants.yaml").read_text())
    return frozenset((entry["path"], entry["of"], entry["before"], entry["after"]) for entry in known)


def drawn(seed: int, root: Path = ROOT, rooms: Mapping[str, tuple[str, str]] = ROOMS) -> Iterator[Mutant]:
    """Mutants of a project without end: a function or constant at random, then a place in it."""
    scopes = [
        (room, path, number)
        for room, (sources, _) in rooms.items()
        for path in _files(root / sources)
        for number in range(len(_scopes(path)))
    ]
    generator = random.Random(seed)
    while True:
        room, path, number = generator.choice(scopes)
        yield _mutated(room, path, str(path.relative_to(root)), number, generator)


def _files(sources: Path) -> list[Path]:
    return sorted(sources.rglob("*.py")) if sources.is_dir() else [sources]


@cache
def _scopes(path: Path) -> list[ast.AST]:
    """Functions, and what modules and classes set: constants and defaults."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    bodies = [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
    constants = [node for body in bodies for node in body if isinstance(node, ast.Assign | ast.AnnAssign)]
    return [scope for scope in (*functions, *constants) if _places(scope)]


def _places(scope: ast.AST) -> list[ast.expr]:
    """Expressions that can be changed; types and decorators are none."""
    types = [getattr(node, field, None) for node in ast.walk(scope) for field in ("annotation", "returns")]
    types += getattr(scope, "decorator_list", [])
    # whether zip asks for equal lengths changes nothing where they are
    types += [node.value for node in ast.walk(scope) if isinstance(node, ast.keyword) and node.arg == "strict"]
    left_alone = {id(node) for of in types if of is not None for node in ast.walk(of)}
    return [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.expr) and id(node) not in left_alone and _changed(node) is not None
    ]


def _mutated(room: str, path: Path, name: str, number: int, generator: random.Random) -> Mutant:
    """A change of one place of a scope of a file, which has this `name` in the project."""
    text = path.read_text()
    scope = _scopes(path)[number]
    place = generator.choice(_places(scope))
    changed = _changed(place)
    assert changed is not None and place.end_lineno is not None and place.end_col_offset is not None
    starts = [0]
    for line in text.encode().split(b"\n"):  # columns count bytes
        starts.append(starts[-1] + len(line) + 1)
    begin, end = starts[place.lineno - 1] + place.col_offset, starts[place.end_lineno - 1] + place.end_col_offset
    after = f"({ast.unparse(changed)})"
    mutated = text.encode()[:begin] + after.encode() + text.encode()[end:]
    return Mutant(room, name, _name(scope), place.lineno, ast.unparse(place), after, mutated.decode())


def _name(scope: ast.AST) -> str:
    """The name of a function, or what an assignment sets."""
    match scope:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
            return name
        case ast.Assign([target, *_]) | ast.AnnAssign(target):
            return ast.unparse(target)
    raise TypeError(scope)


def _changed(node: ast.AST) -> ast.expr | None:
    """What a node becomes; None of one that is left alone."""
    match node:
        case ast.Compare(left, [first, *others], comparators):
            return ast.Compare(left, [_OPERATORS[type(first)], *others], comparators)  # type: ignore[list-item]
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            return ast.BinOp(left, _OPERATORS[type(operator)], right)  # type: ignore[arg-type]
        case ast.BoolOp(operator, values):
            return ast.BoolOp(_OPERATORS[type(operator)], values)  # type: ignore[arg-type]
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            return operand
        case ast.Constant(bool() | int() | float() as value):
            return ast.Constant(not value if isinstance(value, bool) else value + 1)
    return None


def died_by(mutant: Mutant, copy: Path, of: Round) -> str:
    """The test of its room that notices a mutant in a round, tried in a copy of the project; "time" where it never
    ends, "" where none notices it."""
    failed = _failing_with(mutant, copy, _in_turn(copy, mutant, own=of.own), of)
    # other users of the machine can make a test fail: it does so again, alone
    if failed in ("", "time") or not _failing_with(mutant, copy, [failed], of):
        return failed if failed == "time" else ""
    return _that_passes(copy, failed, of)


def _failing_with(mutant: Mutant, copy: Path, tests: Iterable[str], of: Round) -> str:
    source = copy / mutant.path
    kept = source.read_text()
    source.write_text(mutant.text)
    try:
        return _first_failure(copy, tests, of)
    finally:
        source.write_text(kept)


def _in_turn(copy: Path, mutant: Mutant, *, own: bool) -> list[str]:
    """The files of a room's tests: that which has the module's name, those that have its folder's, those that name it,
    the rest; the first of these that there are, if only its `own` are asked for."""
    path = Path(mutant.path)
    module = path.parent.name if path.stem == "__init__" else path.stem

    def rank(file: Path) -> int:
        names = file.name == f"test_{module}.py", path.parent.name in file.name, _names(file, module)
        return names.index(True) if any(names) else len(names)

    files = sorted((copy / ROOMS[mutant.room][1]).rglob("test_*.py"), key=lambda file: (rank(file), file.name))
    return [str(file.relative_to(copy)) for file in files if not own or rank(file) == rank(files[0])]


def _names(file: Path, module: str) -> bool:
    return re.search(rf"\b{module}\b", file.read_text()) is not None


class _Watch:
    """A plugin of pytest: which test or file fails, and no test takes more than _STUCK_S of a processor."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_runtest_setup(self) -> None:
        """Ends the process where the test has not ended then."""
        signal.setitimer(signal.ITIMER_VIRTUAL, _STUCK_S)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps the first that fails."""
        self._keep(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keeps the first file that cannot be collected."""
        self._keep(report)

    def _keep(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


def _first_failure(copy: Path, tests: Iterable[str], of: Round) -> str:
    """The first of the tests of a round that fails, or a file that cannot be collected; "time" where one does not end
    or nothing can be loaded, "" where all pass."""
    with tempfile.TemporaryFile("w+") as failed:
        if not (child := os.fork()):
            _run(copy, tests, of, failed)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        failed.seek(0)
        return failed.read() if ended == 0 else "time"


def _run(copy: Path, tests: Iterable[str], of: Round, failed: TextIO) -> NoReturn:
    """The tests of a copy in this process, and its end; what fails is written to a file."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    os.chdir(copy)
    paths = [str(copy), str(copy / "workflow")]
    sys.path[:0] = paths
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    options = ["-q", "-x", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=600", "-m"]
    watch = _Watch()
    status = pytest.main([*options, f"{_ROOMS_OWN} and {of.which}", *tests], plugins=[watch])
    failed.write(watch.failed)
    failed.flush()
    # without a test that fails, what all need cannot be loaded
    os._exit(not watch.failed and status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED))


@cache
def _that_passes(copy: Path, test: str, of: Round) -> str:
    """The test, if it passes without any change.

    Raises:
        SystemExit: it does not, so that nothing can be said of mutants.
    """
    # what a test is called with may be the constant that was changed: without that there is no test of the name
    if _first_failure(copy, [test.partition("[")[0]], of):
        raise SystemExit(f"{test} fails without any change, too")
    return test


def clean_copy(folder: Path, commit: str, root: Path = ROOT) -> Path:
    """The copy of the project in a folder, as it was committed: a killed call leaves a mutant in it, and nothing may be
    drawn from that."""
    copy, partial = folder / "copy", folder / "copy.partial"
    if not copy.exists():
        shutil.rmtree(partial, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "-q", "--shared", str(root), str(partial)], check=True)
        (partial / ".venv").symlink_to(sys.prefix)  # which the tests of the workflow call
        (partial / "kernels/build").symlink_to(root / "kernels/build")
        (partial / ".git/info/exclude").write_text(".venv\nkernels/build\n")  # links, which are none of its files
        partial.rename(copy)
    (copy / ".git/index.lock").unlink(missing_ok=True)
    for command in (["reset", "-q", "--hard", commit], ["clean", "-qfd"]):
        subprocess.run(["git", "-C", str(copy), *command], check=True)
    return copy


def main() -> int:
    """Try the draw, print what survived and the share of what died; 1 where it is less than asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draw", type=int, default=100, help="how many are drawn")
    parser.add_argument("--room", choices=ROOMS, help="of one room alone")
    arguments = parser.parse_args()
    rooms = {arguments.room: ROOMS[arguments.room]} if arguments.room else ROOMS
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    folder = BUILD / f"{commit.stdout.strip()}-{arguments.room or 'all'}-{arguments.seed}"
    copy = clean_copy(folder, commit.stdout.strip())
    remaining = dict(enumerate(islice(drawn(arguments.seed, copy, rooms), arguments.draw)))
    tried: dict[int, Tried] = {}
    for of in ROUNDS:
        tried |= _tried(remaining, copy, of, folder)
        survivors = [result for result in tried.values() if not result.died_by and not result.equivalent]
        remaining = {result.number: remaining[result.number] for result in survivors}
    shutil.rmtree(copy)
    equivalent = sum(result.equivalent and not result.died_by for result in tried.values())
    counted = len(tried) - equivalent
    print(f"{counted - len(survivors)} of {counted} died; {equivalent} are equivalent", *survivors, sep="\n")
    return 0 if len(survivors) <= (1 - ASKED) * counted else 1


def _tried(mutants: Mapping[int, Mutant], copy: Path, of: Round, folder: Path) -> dict[int, Tried]:
    """What became of mutants in a round; what its file in `folder` has is not tried again."""
    results = folder / f"{of.name}.jsonl"
    lines = results.read_text().splitlines() if results.exists() else []
    kept = {result.number: result for result in (msgspec.json.decode(line, type=Tried) for line in lines)}
    tried = {number: kept[number] for number in mutants if number in kept}
    for number, mutant in mutants.items():
        if number in tried:
            continue
        fields = msgspec.structs.asdict(mutant)
        del fields["text"]
        tried[number] = Tried(number, **fields, died_by=died_by(mutant, copy, of))
        with results.open("ab") as file:
            file.write(msgspec.json.encode(tried[number]) + b"\n")
        died = sum(bool(result.died_by) for result in tried.values())
        print(f"{of.name}: {len(tried)} of {len(mutants)}, {died} died: {tried[number]}", flush=True)
    return tried


if __name__ == "__main__":
    sys.exit(main())

"""Would the tests notice? A seeded draw of small faults, each tried with the tests of the room that it is in.

    python -m tests.mutants                                100 of the draw with seed 1
    python -m tests.mutants --seed 7 --draw 20 --room judge

A function or a constant of the rooms is drawn, then a place in it: a comparison, an operator, a number, a truth value
or a negation is changed. The room's tests run on a copy of the project, without reference data, those of the module
first; a mutant dies where one fails or where they take three times the processor time that they may. Results are kept
in build/mutants/ by commit and seed, so that a call goes on where the last one was stopped; survivors are printed
with their change, as a person has to say which of them change nothing that anybody could notice.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import msgspec

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
#: Seconds of a processor that a room's tests may take, which is a minute of two quiet cores, and after how many times
#: that a mutant is dead. What sleeps for ever is ended after an hour.
LIMIT_S, PATIENCE, _ASLEEP_S = 120, 3, 3600
#: What becomes of an operator.
_OPERATORS: Mapping[type[ast.AST], ast.AST] = {
    ast.Lt: ast.LtE(), ast.LtE: ast.Lt(), ast.Gt: ast.GtE(), ast.GtE: ast.Gt(), ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(), ast.Is: ast.IsNot(), ast.IsNot: ast.Is(), ast.In: ast.NotIn(), ast.NotIn: ast.In(),
    ast.Add: ast.Sub(), ast.Sub: ast.Add(), ast.Mult: ast.Div(), ast.Div: ast.Mult(), ast.FloorDiv: ast.Div(),
    ast.Pow: ast.Mult(), ast.And: ast.Or(), ast.Or: ast.And(), ast.BitAnd: ast.BitOr(), ast.BitOr: ast.BitAnd(),
}  # fmt: skip


class Mutant(msgspec.Struct, frozen=True):
    """A change of one place: in which room and file (from the project's folder), on which line, from what to what, and
    the file with it."""

    room: str
    path: str
    line: int
    before: str
    after: str
    text: str


def drawn(seed: int, rooms: Mapping[str, tuple[str, str]] = ROOMS) -> Iterator[Mutant]:
    """Mutants without end: a function or constant at random, then a place in it."""
    scopes = [(room, path, number) for room, (sources, _) in rooms.items() for path in _files(sources)
                 for number in range(len(_scopes(ast.parse(path.read_text()))))]  # fmt: skip
    generator = random.Random(seed)
    while True:
        room, path, number = generator.choice(scopes)
        yield _mutated(room, path, number, generator)


def _files(sources: str) -> list[Path]:
    path = ROOT / sources
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _scopes(tree: ast.Module) -> list[ast.AST]:
    """Functions, and what modules and classes set: constants and defaults."""
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
        node for node in ast.walk(scope)
        if isinstance(node, ast.expr) and id(node) not in left_alone and _changed(node) is not None
    ]  # fmt: skip


def _mutated(room: str, path: Path, number: int, generator: random.Random) -> Mutant:
    """A change of one place of a scope."""
    text = path.read_text()
    place = generator.choice(_places(_scopes(ast.parse(text))[number]))
    changed = _changed(place)
    assert changed is not None and place.end_lineno is not None and place.end_col_offset is not None
    starts = [0]
    for line in text.encode().split(b"\n"):  # columns count bytes
        starts.append(starts[-1] + len(line) + 1)
    begin, end = starts[place.lineno - 1] + place.col_offset, starts[place.end_lineno - 1] + place.end_col_offset
    after = f"({ast.unparse(changed)})"
    mutated = text.encode()[:begin] + after.encode() + text.encode()[end:]
    return Mutant(room, str(path.relative_to(ROOT)), place.lineno, ast.unparse(place), after, mutated.decode())


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


def dies(mutant: Mutant, copy: Path) -> bool:
    """Whether the room's tests notice a mutant, tried in a copy of the project."""
    tests = ROOMS[mutant.room][1]
    source = copy / mutant.path
    kept = source.read_text()
    own = Path(tests) / f"test_{source.stem}.py"
    first = [str(own)] if (copy / own).exists() else []
    environment = {key: value for key, value in os.environ.items() if key != "NODEPRINT_DATA"} | {
        "PYTHONPATH": f"{copy}{os.pathsep}{copy / 'workflow'}", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not long and not emulated",
               *first, tests]  # fmt: skip
    source.write_text(mutant.text)
    try:
        ended = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=_ASLEEP_S, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE * LIMIT_S,) * 2),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True
    finally:
        source.write_text(kept)
    return ended.returncode != 0


def main() -> int:
    """Try the draw and print what survived; 1 where the tests of a room fail without any change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draw", type=int, default=100, help="how many are drawn")
    parser.add_argument("--room", choices=ROOMS, help="of one room alone")
    arguments = parser.parse_args()
    rooms = {arguments.room: ROOMS[arguments.room]} if arguments.room else ROOMS
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    name = f"{commit.stdout.strip()}-{arguments.room or 'all'}-{arguments.seed}"
    results, copy = BUILD / f"{name}.jsonl", BUILD / name
    if not copy.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(copy)], check=True)
    tried = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    mutants = list(islice(drawn(arguments.seed, rooms), arguments.draw))  # before anybody edits a file meanwhile
    for number, mutant in enumerate(mutants):
        if number < len(tried):
            continue
        tried.append({"path": mutant.path, "line": mutant.line, "before": mutant.before, "after": mutant.after,
                      "room": mutant.room, "died": dies(mutant, copy)})  # fmt: skip
        with results.open("a") as file:
            file.write(json.dumps(tried[-1]) + "\n")
        print(f"{number + 1} of {arguments.draw}: {_line(tried[-1])}", flush=True)
    shutil.rmtree(copy)
    survivors = [result for result in tried[: arguments.draw] if not result["died"]]
    print(f"{len(survivors)} of {arguments.draw} survived the tests of their rooms", *map(_line, survivors), sep="\n")
    return 0


def _line(result: Mapping[str, object]) -> str:
    verb = "died" if result["died"] else "survived"
    return f"{verb}: {result['path']}:{result['line']}: {result['before']} -> {result['after']}"


if __name__ == "__main__":
    sys.exit(main())

"""What the judge imports, and names that stand twice: each number may only fall."""

from __future__ import annotations

import ast
import collections
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.support.real_parts import ROOT

#: The judge's entry, and how many modules it imports, itself included; lower it with each that is gone.
ENTRY, MOST_IMPORTED = "nodeprint.judge.judge", 101
#: No verdict needs these.
NEVER = ("nodeprint.report", "nodeprint.interface", "nodeprint.readers", "nodeprint.data.export", "matplotlib")
#: Names of classes and of modules that still stand in several modules; a name that is unique goes from the list.
TWICE = yaml.safe_load((Path(__file__).parent / "names_twice.yaml").read_text())


def modules() -> dict[str, Path]:
    """Every module of both packages by its name."""
    paths = [path for package in ("nodeprint", "nodeprint_addons") for path in (ROOT / package).rglob("*.py")]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imported(name: str, of: dict[str, Path]) -> Iterator[str]:
    """The modules of the packages that a module imports anywhere in it."""
    for node in ast.walk(ast.parse(of[name].read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in of)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from (named for named in names if named in of)


def test_the_judge_imports_few_modules() -> None:
    of = modules()
    seen, todo = set[str](), [ENTRY]
    while todo:
        if (name := todo.pop()) not in seen:
            seen.add(name)
            todo += imported(name, of)
    assert len(seen) <= MOST_IMPORTED, "the judge needs no readers of files, launchers or pages"
    script = f"import json, sys, {ENTRY}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert {name for name in loaded if name.split(".")[0] == "nodeprint"} <= {*seen, "nodeprint", *_packages(seen)}
    assert not [name for name in loaded if name.startswith(NEVER)]


def _packages(names: set[str]) -> set[str]:
    """The packages that modules are in, which Python imports with them."""
    return {name.rsplit(".", count)[0] for name in names for count in range(1, name.count(".") + 1)}


def test_names_of_classes_and_modules_occur_once() -> None:
    of = modules()
    nodes = (node for path in of.values() for node in ast.walk(ast.parse(path.read_text())))
    classes = collections.Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    stems = collections.Counter(path.stem for path in of.values() if path.name != "__init__.py")
    assert {name for name, count in classes.items() if count > 1} <= set(TWICE["classes"])
    assert {name for name, count in stems.items() if count > 1} <= set(TWICE["modules"])

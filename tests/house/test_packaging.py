"""The examples of packaging/, as far as they can be checked without their tools."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeprint.cli.shared import judge_and_write as judge
from tests.support.real_parts import ROOT, need

PACKAGING = ROOT / "packaging"


@pytest.mark.parametrize(
    "path", sorted(PACKAGING.rglob("*.py")) + sorted(PACKAGING.rglob("*.eb")), ids=lambda p: p.name
)
def test_recipes_are_python(path: Path) -> None:
    ast.parse(path.read_text())


def test_spack_asks_for_what_pip_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    specs = project["dependencies"] + project["optional-dependencies"]["report"]
    pip = {re.split(r"[<>=]", spec)[0].lower() for spec in specs}
    spack = set(re.findall(r'depends_on\("py-([a-z0-9-]+)@', (PACKAGING / "spack/package.py").read_text()))
    assert pip == spack - {"setuptools"}


def test_the_easyconfig_installs_this_version() -> None:
    names = {
        node.targets[0].id: node.value
        for node in ast.parse(next(PACKAGING.rglob("*.eb")).read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert ast.literal_eval(names["version"]) == version
    assert next(PACKAGING.rglob("*.eb")).name == f"nodeprint-{version}-foss-2023b.eb"


def test_nhc_reads_the_verdict_of_its_own_node(campaign: Callable[..., Path]) -> None:
    need("bash", "awk")
    folder = campaign("a", "b")
    judge(folder)
    path = folder / "verdict.json"

    def checked(node: str, text: str | None = None) -> tuple[int, str]:
        if text is not None:
            path.write_text(text)
        script = (
            f'die() {{ echo "$2"; }}; . {PACKAGING}/nhc/nodeprint.nhc; check_nodeprint {path} DEVIATES "OUTSIDE LIMIT"'
        )
        done = subprocess.run(
            ["bash", "-c", script], env={"PATH": "/usr/bin:/bin", "HOSTNAME": f"{node}.site"}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    assert checked("a") == checked("nowhere") == (0, "")
    before = path.read_text()
    outcome = re.findall(r'^   "outcome": "(.*)"', before, re.MULTILINE)[1]
    head, _, tail = before.rpartition(f'   "outcome": "{outcome}"')
    bad = head + '   "outcome": "OUTSIDE LIMIT"' + tail
    assert checked("a", bad) == (0, "")
    code, said = checked("b", bad)
    assert code == 1 and said.startswith("check_nodeprint: b is OUTSIDE LIMIT; ")

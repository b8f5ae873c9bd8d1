"""The examples of packaging/, as far as they can be checked without their tools."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from nodeprint import __version__
from nodeprint.cli.shared import judge_and_write as judge
from tests.support.real_parts import ROOT, need

PACKAGING = ROOT / "packaging"
GITHUB = ROOT / ".github"


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
    assert ast.literal_eval(names["version"]) == __version__
    assert next(PACKAGING.rglob("*.eb")).name == f"nodeprint-{__version__}-foss-2023b.eb"


def test_version_is_that_of_the_package_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "nodeprint.__version__"}
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == __version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest and newest[1] == __version__
    bundle = re.search(r"^version=.*", (ROOT / "setup/bundle").read_text(), re.MULTILINE)
    assert bundle
    done = subprocess.run(
        ["sh", "-c", f"{bundle[0]}; echo $version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == __version__


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


def test_hosted_tests_run_what_ci_runs_on_every_supported_python() -> None:
    jobs = yaml.safe_load((GITHUB / "workflows/tests.yml").read_text())["jobs"]
    assert any(".ci/run" in step.get("run", "") for step in jobs["tests"]["steps"])
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][0]
    lowest, above = re.fullmatch(r"python >=3\.(\d+),<3\.(\d+)", conda).groups()  # type: ignore[union-attr]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in range(int(lowest), int(above))]


@pytest.mark.parametrize("path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.name)
def test_issue_forms_are_as_the_host_reads_them(path: Path) -> None:
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= set(form)
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in asked}) == len(asked)
    assert all(field["attributes"]["label"] for field in asked)

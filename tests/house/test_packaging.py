"""The examples of packaging/, as far as they can be checked without their tools."""

import ast
import json
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeprint import __version__
from nodeprint.cli.shared import judge_and_write as judge
from nodeprint.report import verdict_files
from tests.support.fleets import judged
from tests.support.real_parts import PACKAGES, ROOT, need

PACKAGING = ROOT / "packaging"
GITHUB = ROOT / ".github"


@pytest.mark.parametrize(
    "path", sorted(PACKAGING.rglob("*.py")) + sorted(PACKAGING.rglob("*.eb")), ids=lambda p: p.name
)
def test_recipes_are_python(path: Path) -> None:
    ast.parse(path.read_text())


def test_spack_asks_for_what_pip_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pip = {re.split(r"[<>=]", spec)[0].lower() for spec in project["dependencies"]}
    recipe = next(PACKAGING.glob("spack/spack_repo/*/packages/nodeprint/package.py"))
    spack = set(re.findall(r'depends_on\("py-([a-z0-9-]+)@', recipe.read_text()))
    assert pip == spack - {"setuptools", "mpi4py"}
    conda = yaml.safe_load((PACKAGING / "conda/recipe.yaml").read_text())["requirements"]["run"]
    names = {re.split(r"[ <>=]", spec)[0].replace("matplotlib-base", "matplotlib") for spec in conda}
    assert pip == (names - {"python"}) | {"typst"}, "of which conda-forge has the command alone"


def imported_packages(source: str) -> set[str]:
    """Top-level packages that a source imports anywhere."""
    nodes = list(ast.walk(ast.parse(source)))
    modules = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {module.partition(".")[0] for module in modules}


def test_a_plain_installation_has_every_package_that_nodeprint_imports() -> None:
    """Else a public function ends in ModuleNotFoundError. Parquet alone is an extra, and has a sentence of its own."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    installed = {re.split(r"[<>=]", spec)[0].lower() for spec in dependencies}
    distributions = metadata.packages_distributions()
    sources = [path.read_text() for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    imported = set().union(*map(imported_packages, sources)) - sys.stdlib_module_names - {*PACKAGES}
    assert {"xarray", "matplotlib", "typst"} <= imported
    missing = {name for name in imported if not {d.lower() for d in distributions.get(name, ())} & installed}
    assert missing == {"pyarrow", "markupsafe", "_typeshed"}  # jinja2 needs the second, type checkers alone the third


def test_the_easyconfig_installs_this_version() -> None:
    names = {
        node.targets[0].id: node.value
        for node in ast.parse(next(PACKAGING.rglob("*.eb")).read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert ast.literal_eval(names["version"]) == __version__
    assert next(PACKAGING.rglob("*.eb")).name == f"nodeprint-{__version__}-foss-2025b.eb"


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
            f'die() {{ echo "$2"; }}; . {PACKAGING}/nhc/nodeprint.nhc; check_nodeprint {path} DEVIATES "OUT OF SPEC"'
        )
        done = subprocess.run(
            ["bash", "-c", script],
            env={"PATH": "/usr/bin:/bin", "HOSTNAME": f"{node}.site"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    assert checked("a") == checked("nowhere") == (0, "")
    before = path.read_text()
    outcome = re.findall(r'^   "outcome": "(.*)"', before, re.MULTILINE)[1]
    head, _, tail = before.rpartition(f'\n   "outcome": "{outcome}"')
    bad = head + '\n   "outcome": "OUT OF SPEC"' + tail
    assert checked("a", bad) == (0, "")
    code, output = checked("b", bad)
    assert code == 1 and output.startswith("check_nodeprint: b is OUT OF SPEC; ")


def address_of(path: Path) -> Any:
    """packaging/address.py, as of a tree."""
    return runpy.run_path(str(path / "packaging/address.py"))


def test_the_address_of_the_project_is_set_in_one_place(tmp_path: Path) -> None:
    tool = address_of(ROOT)
    address = (PACKAGING / "ADDRESS").read_text().strip()
    for name in tool["FILES"]:
        text = (ROOT / name).read_text()
        assert tool["written"](text, address) == text, f"call packaging/address.py: {name}"
        known = tool["written"](text, "https://git.site/nodeprint")
        assert known != text and "https://git.site/nodeprint" in known
        assert tool["written"](known, "https://git.site/other").count("git.site/nodeprint") == 0
        assert tool["written"](known, "") == tool["written"](text, "")
    sources = subprocess.run(
        ["git", "ls-files", "packaging", "*.toml", "*.cff", "ansible", ".github", "environment.yml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not [name for name in sources if re.search(r"example\.(org|com)|your-?name|TODO", (ROOT / name).read_text())]


def test_zenodo_and_citation_name_the_same() -> None:
    zenodo = json.loads((ROOT / ".zenodo.json").read_text())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert [person["name"] for person in zenodo["creators"]] == [person["name"] for person in citation["authors"]]
    assert zenodo["license"] == citation["license"] == "MIT" and zenodo["keywords"] == citation["keywords"]


def test_hosted_tests_run_what_ci_runs_on_every_supported_python() -> None:
    jobs = yaml.safe_load((GITHUB / "workflows/tests.yml").read_text())["jobs"]
    assert any(".ci/run" in step.get("run", "") for step in jobs["tests"]["steps"])
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][0]
    lowest, above = re.fullmatch(r"python >=3\.(\d+),<3\.(\d+)", conda).groups()  # type: ignore[union-attr]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in range(int(lowest), int(above))]


@pytest.mark.parametrize("path", sorted((GITHUB / "workflows").glob("*.yml")), ids=lambda path: path.name)
def test_workflows_name_actions_by_commit_and_keep_no_credentials(path: Path) -> None:
    """zizmor in `make lint` looks for more; where it is skipped, nothing else would."""
    text = path.read_text()
    used = re.findall(r"uses: (\S+)(.*)", text)
    by_name = [name for name, version in used if not re.fullmatch(r".*@[0-9a-f]{40} # v\d+\.\d+\.\d+", name + version)]
    assert not by_name
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    checkouts = [step["with"] for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts and all(words["persist-credentials"] is False for words in checkouts)


def test_updates_are_asked_for_all_that_is_pinned() -> None:
    updates = yaml.safe_load((GITHUB / "dependabot.yml").read_text())["updates"]
    folders = {update["package-ecosystem"]: ROOT / update["directory"].strip("/") for update in updates}
    assert set(folders) == {"github-actions", "pip", "docker"}
    assert (folders["pip"] / "requirements.lock").exists() and (folders["docker"] / "Containerfile").exists()


def test_the_notes_of_a_release_are_its_section() -> None:
    notes = runpy.run_path(str(PACKAGING / "release_notes.py"))["notes"]
    changelog = "# Changelog\n\n## 0.2.0 (2027-01-01)\nNew.\n\n**A**\n- a\n\n## 0.1.0\nOld.\n"
    assert notes(changelog, "0.2.0") == "New.\n\n**A**\n- a\n"
    assert (notes(changelog, "0.1.0"), notes(changelog, "0.1")) == ("Old.\n", "")
    assert notes((ROOT / "CHANGELOG.md").read_text(), __version__), "the next release has notes"


@pytest.mark.parametrize("path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.name)
def test_issue_forms_are_as_the_host_reads_them(path: Path) -> None:
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= set(form)
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in asked}) == len(asked)
    assert all(field["attributes"]["label"] for field in asked)


#: What Prometheus would have of a node that deviates and was not measured for 61 days.
_RULE_TEST = """
rule_files: [alerts.yaml]
evaluation_interval: 1d
tests:
  - interval: 1d
    input_series:
      - {series: 'nodeprint_node_verdict{node="cn1",class="FAIL",verdict="DEVIATES"}', values: "1x70"}
      - {series: 'nodeprint_node_verdict{node="cn2",class="PASS",verdict="SAME"}', values: "1x70"}
      - {series: 'nodeprint_node_verdict{node="cn3",class="FAIL",verdict="DEVIATES",simulated="true"}', values: "1x70"}
      - {series: 'nodeprint_measured_timestamp_seconds{node="cn1"}', values: "0x70"}
      - {series: 'nodeprint_measured_timestamp_seconds{node="cn2"}', values: "864000x70"}
    promql_expr_test:
      - expr: count(ALERTS{alertname="NodeprintNodeFound"})
        eval_time: 1d
        exp_samples: [{labels: "{}", value: 1}]
      - {expr: 'count(ALERTS{alertname="NodeprintNotMeasured"})', eval_time: 30d, exp_samples: []}
      - expr: count(ALERTS{alertname="NodeprintNotMeasured"})
        eval_time: 62d
        exp_samples: [{labels: "{}", value: 1}]
"""


def exported() -> str:
    """verdict.prom of a fleet with a finding and every kind of measurement."""
    return verdict_files.prometheus(judged("node001: core 17 +9%", jobs=2, cells=True).verdict)


def test_the_dashboard_shows_what_is_exported() -> None:
    dashboard = json.loads((PACKAGING / "grafana/nodeprint.json").read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) and dashboard["schemaVersion"] >= 36
    asked = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    asked += (PACKAGING / "grafana/alerts.yaml").read_text()
    text = exported()
    for metric in sorted(set(re.findall(r"nodeprint_[a-z_]+", asked))):
        assert f"\n{metric}{{" in text, metric
    for measurement in re.findall(r'measurement="([a-z-]+)"', asked):
        assert f'measurement="{measurement}"' in text, measurement
    labels = set(re.findall(r"\{\{([a-z]+)\}\}", json.dumps(dashboard)))
    assert "group" in labels, "a class of pairs has it where it is a mixture alone"
    for label in labels - {"group"}:
        assert f'{label}="' in text, label


@pytest.mark.long  # as it comes with all of Prometheus
@pytest.mark.parametrize("what", ["metrics", "rules"])
def test_promtool_takes_what_is_exported_and_the_alerts(what: str, tmp_path: Path) -> None:
    need("promtool")
    if what == "metrics":
        words = ["check", "metrics"]
    else:
        shutil.copy(PACKAGING / "grafana/alerts.yaml", tmp_path)
        (tmp_path / "test.yaml").write_text(_RULE_TEST)
        words = ["test", "rules", "test.yaml"]
    done = subprocess.run(
        ["promtool", *words],
        cwd=tmp_path,
        input=exported() if what == "metrics" else "",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

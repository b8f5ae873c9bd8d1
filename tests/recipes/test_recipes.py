"""Each recipe of packaging/ is loaded by the tool that it is for. What is not at hand is skipped and named."""

import ast
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.real_parts import ROOT, missing, need
from tests.support.virtual_cluster import cluster, up

pytestmark = pytest.mark.recipe

PACKAGING = ROOT / "packaging"
TOOLS = Path(os.environ.get("NODEPRINT_RECIPES", ROOT / "build/recipes"))
SPACK = PACKAGING / "spack/spack_repo/nodeprint"


def tool(name: str) -> str:
    """A program of the recipes' environment."""
    path = TOOLS / "bin" / name
    if not path.exists():
        missing(f"{name} is not in {TOOLS}: `make test-recipes` installs it")
    return str(path)


def run(*words: str | Path, cwd: Path = ROOT, timeout: float = 600, **environment: str) -> str:
    """What a program prints; it must end with 0."""
    done = subprocess.run(
        words, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(script: str, *words: str | Path) -> str:
    """What a script prints in the recipes' environment."""
    return run(tool("python"), "-c", script, *words)


# --- ReFrame ----------------------------------------------------------------------------------------------------------

SITE = """\
site_configuration = {
    "systems": [{
        "name": "virtual", "hostnames": [".*"], "stagedir": "STAGE", "outputdir": "STAGE/out",
        "modules_system": "nomod",
        "partitions": [{
            "name": "main", "scheduler": "squeue", "launcher": "local", "environs": ["builtin"], "access": ["-pmain"],
        }],
    }],
}
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    state = up(tmp_path_factory.mktemp("cluster") / "state", 3)
    yield state
    cluster("down", state=state)


@pytest.mark.parametrize(("nodes", "accepted"), [("cn[01-03]", True), ("cn01", False)])
def test_reframe_measures_each_node_and_judges_all_of_them(
    slurm: Path, tmp_path: Path, nodes: str, accepted: bool
) -> None:
    """A node without peers fails, unless that is asked for."""
    tmp_path.chmod(0o755)
    (tmp_path / "site.py").write_text(SITE.replace("STAGE", str(tmp_path / "stage")))
    words: list[str | Path] = [
        "env",
        f"NODEPRINT_HOME={ROOT}",
        f"NODEPRINT_NODES={nodes}",
        f"NODEPRINT_RESULTS={tmp_path}/results",
        "RFM_REPORT_FILE=",
        tool("reframe"),
        "-C",
        tmp_path / "site.py",
        "-c",
        PACKAGING / "reframe/nodeprint_check.py",
        "-r",
        "--report-file",
        tmp_path / "report.json",
        "--perflogdir",
        tmp_path / "perf",
        "-S",
        "NodeprintBegin.preset=test",
        "-S",
        "NodeprintBegin.configuration=measure: [coherence-cas]",
    ]
    # all virtual nodes are these CPUs: that they are alike is not the question
    fail_on = "not-measured" if accepted else "not-same"
    done = cluster(
        "exec", "login", *map(str, words), "-S", f"NodeprintJudge.fail_on={fail_on}", state=slurm, check=False
    )
    assert (done.returncode == 0) is accepted, done.stdout + done.stderr
    measured = sorted(path.parts[-3] for path in tmp_path.rglob("nodes/*/job1/status.json"))
    assert measured == (["cn01", "cn02", "cn03"] if accepted else ["cn01"])
    verdict = json.loads(next(tmp_path.rglob("verdict.json")).read_text())
    assert sorted(verdict["nodes"]) == measured
    assert accepted or verdict["nodes"]["cn01"]["outcome"] == "NO PEERS"


# --- NHC --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh"])
def test_nhc_reads_the_verdict_of_a_node_among_a_thousand_in_50_ms(tmp_path: Path, shell: str) -> None:
    need(shell.split(maxsplit=1)[0])
    nodes = {f"cn{i:04}": {"findings": [{"part": "x" * 200}] * 5, "outcome": "SAME"} for i in range(1000)}
    nodes["cn0990"]["outcome"] = "DEVIATES"
    path = tmp_path / "verdict.json"
    path.write_text(json.dumps({"nodes": nodes}, indent=1, sort_keys=True))
    check = f'die() {{ echo "$2"; }}; . {PACKAGING}/nhc/nodeprint.nhc; check_nodeprint {path} DEVIATES "OUT OF SPEC"'

    def called(node: str) -> tuple[int, str, float]:
        began = os.times()
        done = subprocess.run(
            [*shell.split(), "-c", check],
            env={"PATH": "/usr/bin:/bin", "HOSTNAME": f"{node}.site"},
            check=False,
            capture_output=True,
            text=True,
        )
        ended = os.times()  # its CPU time, as other programs may run
        took_s = ended.children_user + ended.children_system - began.children_user - began.children_system
        return done.returncode, done.stdout, took_s

    assert called("cn0989")[:2] == called("elsewhere")[:2] == (0, "")
    found = [called("cn0990") for _ in range(5)]
    assert all(code == 1 and "cn0990 is DEVIATES" in text for code, text, _ in found)
    assert min(seconds for *_, seconds in found) < 0.05


# --- Spack ------------------------------------------------------------------------------------------------------------


def test_spack_solves_the_recipe(tmp_path: Path) -> None:
    """As it lies in a checkout, whose packages Spack takes from the same."""
    need("spack")
    (tmp_path / "repos.yaml").write_text(f"repos:\n  nodeprint: {SPACK}\n")
    text = run("spack", "-C", tmp_path, "spec", "nodeprint", timeout=1800)
    for name in (
        "py-typst",
        "py-cmcrameri",
        "py-junitparser",
        "py-msgspec",
        "snakemake",
        "likwid",
        "openmpi",
        "py-mpi4py",
    ):
        assert f"^{name}@" in text, name


def test_spack_has_what_the_recipe_depends_on() -> None:
    """Where no Spack is at hand: its packages, by a clone of spack-packages that NODEPRINT_SPACK_PACKAGES names."""
    clone = os.environ.get("NODEPRINT_SPACK_PACKAGES")
    if not clone:
        missing("NODEPRINT_SPACK_PACKAGES names no clone of spack-packages")
    listed = run("git", "-C", clone, "ls-tree", "--name-only", "HEAD:repos/spack_repo/builtin/packages").split()
    ours = {path.parent.name for path in SPACK.glob("packages/*/package.py")}
    texts = [path.read_text() for path in SPACK.glob("packages/*/package.py")]
    asked = {name for text in texts for name in re.findall(r'depends_on\("([a-z0-9-]+)', text)} - {"c"}
    assert {name for name in asked if name.replace("-", "_") not in ours | set(listed)} == set()
    systems = run("git", "-C", clone, "ls-tree", "--name-only", "HEAD:repos/spack_repo/builtin/build_systems").split()
    imported = {name for text in texts for name in re.findall(r"spack_repo\.builtin\.build_systems\.(\w+)", text)}
    assert {f"{name}.py" for name in imported} <= set(systems)


# --- EasyBuild, conda, containers -------------------------------------------------------------------------------------


def test_easybuild_finds_all_dependencies_in_its_own_easyconfigs(tmp_path: Path) -> None:
    lmod = Path("/usr/share/lmod/lmod/libexec")
    if not (lmod / "lmod").exists():
        missing("Lmod is not installed")
    (recipe,) = (PACKAGING / "easybuild").glob("*.eb")
    words: list[str | Path] = [tool("eb"), "--dry-run", "--robot", recipe, "--prefix", tmp_path]
    root = ["--allow-use-as-root-and-accept-consequences"] if os.geteuid() == 0 else []
    text = run(*words, *root, PATH=f"{lmod}:{os.environ['PATH']}", LMOD_CMD=f"{lmod}/lmod", EB_PYTHON=tool("python"))
    assert f"(module:nodeprint/{recipe.stem.removeprefix('nodeprint-')})" in "".join(text.split())
    for name in ("Python", "likwid", "mpi4py"):
        assert f"(module:{name}/" in "".join(text.split())


def test_rattler_build_reads_the_recipe() -> None:
    script = (
        "import sys; from rattler_build import Stage0Recipe; "
        "recipe = Stage0Recipe.from_file(sys.argv[1]); print(recipe.to_dict())"
    )
    recipe = ast.literal_eval(python(script, PACKAGING / "conda/recipe.yaml"))
    assert recipe["about"]["license"] == "MIT" and len(str(recipe)) > 500


def test_the_containers_are_read_by_their_linters() -> None:
    run(tool("hadolint"), PACKAGING / "container/Containerfile")
    text = run(tool("spython"), "recipe", "--parser", "singularity", PACKAGING / "apptainer/nodeprint.def")
    assert "FROM python:3.13-slim" in text and "install --no-cache-dir nodeprint" in text and "exec nodeprint" in text


@pytest.mark.parametrize("builder", ["buildah", "podman", "docker", "apptainer"])
def test_the_container_is_built(builder: str) -> None:
    need(builder)
    wheels = sorted((ROOT / "build/wheels").glob("*.whl"))
    if not wheels:
        missing("no wheels: `make wheel` makes them")
    words = ["build", "-f", str(PACKAGING / "container/Containerfile"), "-t", "nodeprint", "."]
    if builder == "apptainer":
        words = ["build", "/tmp/nodeprint.sif", str(PACKAGING / "apptainer/nodeprint.def")]
    done = subprocess.run(
        [builder, *words], cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False, stdin=subprocess.DEVNULL
    )
    if re.search(r"no such host|docker daemon|dial tcp|dial unix", done.stderr):
        missing(f"{builder} cannot fetch the base image here: {done.stderr.strip().splitlines()[-1][:200]}")
    assert done.returncode == 0, done.stdout + done.stderr


# --- wheels, Grafana, Snakemake's catalog -----------------------------------------------------------------------------


def test_twine_takes_the_wheels_and_the_source_archive() -> None:
    built = sorted((ROOT / "build/wheels").iterdir()) if (ROOT / "build/wheels").exists() else []
    if not built:
        missing("no wheels: `make wheel` makes them")
    assert sorted(path.suffix for path in built) == [".gz", ".whl", ".whl"], "two architectures and the sources"
    assert run(tool("twine"), "check", "--strict", *built).count("PASSED") == len(built)


def test_grafana_knows_all_of_the_dashboard() -> None:
    """Through Grafana's own types and back nothing that matters is lost."""
    script = (
        "import json, sys; from grafana_foundation_sdk.models.dashboard import Dashboard; "
        "from grafana_foundation_sdk.cog.encoder import JSONEncoder; import grafana_foundation_sdk.cog.plugins as p; "
        "p.register_default_plugins(); "
        "print(JSONEncoder().encode(Dashboard.from_json(json.load(open(sys.argv[1])))))"
    )
    before = json.loads((PACKAGING / "grafana/nodeprint.json").read_text())
    after: dict[str, Any] = json.loads(python(script, PACKAGING / "grafana/nodeprint.json"))
    assert after["title"] == before["title"] and after["schemaVersion"] == before["schemaVersion"]
    for was, now in zip(before["panels"], after["panels"], strict=True):
        assert [now[key] for key in ("id", "type", "title", "gridPos")] == [
            was[key] for key in ("id", "type", "title", "gridPos")
        ]
        assert [target["expr"] for target in now["targets"]] == [target["expr"] for target in was["targets"]]


def test_the_catalog_of_snakemake_takes_the_workflow() -> None:
    """Its rules (snakemake.github.io/snakemake-workflow-catalog): a Snakefile in workflow/, a README of the
    configuration, and the usage with its keys."""
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert set(usage) <= {"mandatory-flags", "software-stack-deployment", "report"}
    assert set(usage["mandatory-flags"]) <= {"desc", "flags"}
    assert set(usage["software-stack-deployment"]) <= {"conda", "apptainer", "apptainer+conda", "singularity"}
    assert isinstance(usage["report"], bool)
    assert (ROOT / "workflow/Snakefile").exists() and (ROOT / "config/README.md").exists()
    assert shutil.which("snakemake"), "the workflow's own tool"

"""nodeprint as a package: built as a wheel, installed elsewhere, used with nothing of the checkout."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.settings import config, sources
from tests.support.real_parts import ROOT, copy_programs
from tests.support.schemas import valid, valid_campaign

pytestmark = pytest.mark.machine


def call(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Standard output of a command that must succeed, called as a user does."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        command, cwd=cwd, env=clean | environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(house: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment with the wheel and the locked packages."""
    folder = tmp_path_factory.mktemp("installed")
    pip = ("-m", "pip", "--disable-pip-version-check")
    call(sys.executable, *pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ".", cwd=house)
    (wheel,) = folder.glob("*.whl")
    # with a pip of its own, as that of Ubuntu 22.04 installs for no other Python
    call(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    call(folder / "venv/bin/python", *pip, "install", "--quiet", "--no-deps", "--no-compile", wheel, cwd=folder)
    link_locked_packages(folder / "venv")
    return folder / "venv/bin"


def link_locked_packages(venv: Path) -> None:
    """The locked packages as they are installed here, and no others; that pip installs them is tested elsewhere."""
    (site,) = venv.glob("lib/*/site-packages")
    for name in re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE):
        for file in metadata.files(name) or ():
            source, target = Path(str(file.locate())), Path(os.path.normpath(site / file))
            if file.suffix == ".pyc" or not source.is_file():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.parent.name == "bin":  # a script begins with the path of its Python
                target.write_bytes(source.read_bytes().replace(bytes(Path(sys.prefix)), bytes(venv), 1))
                target.chmod(0o755)
            else:
                link(source, target)
                compiled = Path(cache_from_source(str(source)))
                if source.suffix == ".py" and compiled.exists():
                    link(compiled, Path(cache_from_source(str(target))))


def link(source: Path, target: Path) -> None:
    """A file at a second place with its time of change, so that what Python compiled of it is valid there, too."""
    target.parent.mkdir(exist_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:  # on another file system
        shutil.copy2(source, target)


def test_the_whole_package_works_from_another_folder(installed: Path, tmp_path: Path) -> None:
    nodeprint = installed / "nodeprint"
    assert call(nodeprint, "--version", cwd=tmp_path).startswith("nodeprint ")
    valid(json.loads(call(nodeprint, "topology", "--json", cwd=tmp_path)), "topology")
    call(
        nodeprint,
        "simulate",
        "graviton3-64",
        "--nodes",
        "3",
        "--runs",
        "1",
        "--passes",
        "1",
        "--out",
        "c",
        cwd=tmp_path,
    )
    call(nodeprint, "judge", "c", cwd=tmp_path)
    printed = call(nodeprint, "report", "c", cwd=tmp_path).splitlines()
    assert "c/report/cluster.pdf" in printed
    assert (tmp_path / "c/report/cluster.pdf").read_bytes().startswith(b"%PDF")
    assert "verdict.json" in valid_campaign(tmp_path / "c")


@pytest.mark.long  # two wheels, each with its kernels
def test_a_commit_makes_the_same_wheel_and_source_archive_twice(tmp_path: Path) -> None:
    """From clones at other paths, at other times and with other modes."""
    sums = []
    for place, umask in (("a", "022"), ("elsewhere/b", "027")):
        build = (
            f"umask {umask}; git clone --quiet {ROOT} {place} && cd {place} && {sys.executable} -c 'from setuptools "
            'import build_meta as b; b.build_wheel("built"); b.build_sdist("built")\''
        )
        call("sh", "-c", build, cwd=tmp_path)
        files = sorted((tmp_path / place / "built").iterdir())
        sums.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files})
    assert len(sums[0]) == 2 and sums[0] == sums[1]
    (archive,) = (tmp_path / "a/built").glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        (member,) = [entry for entry in packed if entry.name.endswith("nodeprint/settings/commit.py")]
        module = packed.extractfile(member)
        assert module is not None
        head = call("git", "rev-parse", "--short", "HEAD", cwd=ROOT).strip()
        assert f'_COMMIT = "{head}"' in module.read().decode()
        shown = call("git", "log", "-1", "--format=%ct", cwd=ROOT)
        assert {entry.mtime for entry in packed} == {int(shown)}


def test_the_package_has_its_addons(installed: Path, tmp_path: Path) -> None:
    nodeprint = installed / "nodeprint"
    call(
        nodeprint,
        "simulate",
        "graviton3-64",
        "--nodes",
        "1",
        "--runs",
        "1",
        "--passes",
        "1",
        "--out",
        "c",
        cwd=tmp_path,
    )
    call(nodeprint, "publish", "c", "--to", "card.json", cwd=tmp_path)
    assert "SIMULATED" in call(nodeprint, "verify-card", "card.json", cwd=tmp_path)
    (tmp_path / "cards").mkdir()
    (tmp_path / "card.json").rename(tmp_path / "cards/card.json")
    call(nodeprint, "atlas", "cards", "--to", "site", cwd=tmp_path)
    assert {path.name for path in (tmp_path / "site").iterdir()} >= {"index.html", "atlas.js", "atlas.css"}
    assert call(nodeprint, "iodie", "--help", cwd=tmp_path)
    printed = call(nodeprint, "judge", "c", "--reference", "published", cwd=tmp_path)
    assert "published values of its model do not apply to a simulated node" in " ".join(printed.split())
    files = "from nodeprint_addons.atlas import published_machines as p; print(len(p.table().machines))"
    assert int(call(installed / "python", "-c", files, cwd=tmp_path)) > 30


def test_an_editable_install_is_found_beside_a_clone_of_its_name(tmp_path: Path) -> None:
    """Python takes a folder without `__init__.py` for a package where no place on its path has a whole one."""
    build = "import sys; from setuptools import build_meta; build_meta.build_editable(sys.argv[1])"
    call(sys.executable, "-c", build, tmp_path / "wheels", cwd=ROOT)
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "nodeprint").mkdir()
    found = "import site; site.addsitedir('site'); import nodeprint; print(nodeprint.__file__)"
    assert call(sys.executable, "-c", found, cwd=tmp_path).strip() == str(ROOT / "nodeprint/__init__.py")


def test_the_workflow_of_the_package_measures_here(installed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    path = {"PATH": f"{installed}:{os.environ['PATH']}"}
    call(installed / "nodeprint", "sources", "--to", folder, cwd=tmp_path)
    tracked = ["git", "ls-files", "kernels", "workflow", "profiles", "config", "reports"]
    for name in call(*tracked, cwd=ROOT).splitlines():
        assert (folder / name).read_bytes() == (ROOT / name).read_bytes(), name
        assert os.access(folder / name, os.X_OK) == os.access(ROOT / name, os.X_OK), name
    copy_programs(folder / "kernels/build")  # as `make -C kernels` there would make them of the same files
    (folder / "config/config.yaml").write_text("preset: test\nruns: 1\nmeasure: [coherence-cas]\n")
    call("snakemake", "--cores", "all", cwd=folder, **path)
    assert (folder / "results/main/report/cluster.pdf").exists()
    assert "records" in valid_campaign(folder / "results/main")


def test_the_workflow_as_a_module_of_another(installed: Path, tmp_path: Path) -> None:
    """What snakedeploy writes: a Snakefile of one's own that takes all rules from nodeprint's."""
    folder = tmp_path / "site"
    path = {"PATH": f"{installed}:{os.environ['PATH']}"}
    place = Path(call(installed / "nodeprint", "sources", cwd=tmp_path).strip())
    assert place.is_relative_to(installed.parent)
    shutil.copytree(place / "kernels", folder / "kernels")
    copy_programs(folder / "kernels/build")
    (folder / "config").mkdir()
    (folder / "workflow").mkdir()
    (folder / "config/acceptance.yaml").write_text("# the defaults\n")
    (folder / "config/config.yaml").write_text("preset: test\nruns: 1\nmeasure: [coherence-cas]\n")
    (folder / "workflow/Snakefile").write_text(
        f'configfile: "config/config.yaml"\nmodule nodeprint:\n    snakefile: "{place}/workflow/Snakefile"\n'
        "    config: config\nuse rule * from nodeprint\n"
    )
    node_run = folder / "kernels/node-run"
    works = node_run.read_text()
    node_run.write_text("#!/bin/sh\nexit 1\n")
    failed = subprocess.run(
        ["snakemake", "--cores", "all"], cwd=folder, env=os.environ | path, capture_output=True, text=True, check=False
    )
    assert failed.returncode == 1 and "can't open file" not in failed.stderr, failed.stderr
    assert not (folder / "results/main/verdict.json").exists()

    node_run.write_text(works)
    call("snakemake", "--cores", "all", cwd=folder, **path)
    (node,) = json.loads((folder / "results/main/verdict.json").read_text())["nodes"].values()
    assert node["outcome"] == "NO PEERS"


def module(folder: Path, place: Path) -> None:
    """A Snakefile in `folder` that has the configuration in itself and no other file; its rules are renamed."""
    folder.mkdir(exist_ok=True)
    settings = {"campaign": "a", "preset": "test", "runs": 1, "measure": ["coherence-cas"]}
    (folder / "Snakefile").write_text(
        f'module nodeprint:\n    snakefile: "{place}/workflow/Snakefile"\n    config: {settings}\n'
        "use rule * from nodeprint as nodeprint_*\n"
    )


def test_a_module_needs_no_file_of_configuration(tmp_path: Path) -> None:
    module(tmp_path / "other", ROOT)
    call(Path(sys.prefix, "bin/snakemake"), "--list-rules", cwd=tmp_path / "other")
    (written,) = (tmp_path / "other/.snakemake/nodeprint").iterdir()
    read = config.load(written)
    assert (read.campaign, read.measure, read.acceptance) == ("a", ("coherence-cas",), f"{ROOT}/config/acceptance.yaml")


def test_a_module_is_read_from_a_repository_and_a_prefix_is_rejected(tmp_path: Path) -> None:
    """Snakemake checks out nothing of a repository: kernels and acceptance are those of the installed package."""
    repository, folder, snakemake = tmp_path / "repository", tmp_path / "other", Path(sys.prefix, "bin/snakemake")
    shutil.copytree(ROOT / "workflow", repository / "workflow", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "environment.yml", repository)
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "rules"]):
        call(*git, *words, cwd=tmp_path)
    module(folder, ROOT)
    snakefile = folder / "Snakefile"
    text = snakefile.read_text()
    where = f'"{ROOT}/workflow/Snakefile"'
    snakefile.write_text(text.replace(where, f'gitfile("{repository}", path="workflow/Snakefile", commit="HEAD")'))
    call(snakemake, "--list-rules", cwd=folder)
    (written,) = (folder / ".snakemake/nodeprint").iterdir()
    assert Path(config.load(written).acceptance).is_file()
    snakefile.write_text(text.replace(where, f'{where}\n    prefix: "results/np"'))
    done = subprocess.run([snakemake, "--list-rules"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "remove it, and set the key `results` of its config" in done.stderr


@pytest.mark.long  # it measures, and Snakemake's report takes a while
def test_a_module_without_files_measures_and_its_report_has_the_pages(installed: Path, tmp_path: Path) -> None:
    path = {"PATH": f"{installed}:{os.environ['PATH']}"}
    folder = tmp_path / "other"
    module(folder, Path(call(installed / "nodeprint", "sources", cwd=tmp_path).strip()))
    call("snakemake", "--cores", "all", "nodeprint_all", cwd=folder, **path)
    call("snakemake", "--report", "report.zip", "nodeprint_all", cwd=folder, **path)
    with zipfile.ZipFile(folder / "report.zip") as packed:
        pages = {Path(name).name: packed.read(name) for name in packed.namelist() if "/data/raw/" in name}
    assert set(pages) == {"verdict.xml", "cluster.pdf", "cluster.html"}
    assert pages["cluster.pdf"].startswith(b"%PDF") and b"<html" in pages["cluster.html"]


@pytest.mark.long  # mypy reads all that nodeprint imports
def test_mypy_sees_the_types_from_another_package(installed: Path, tmp_path: Path) -> None:
    lines = ["import nodeprint", "opened = nodeprint.open('c')", "reveal_type(opened)"]
    lines += ["reveal_type(opened.verdict.nodes['cn1'].outcome)", "reveal_type(opened.plot.matrix('cn1'))"]
    (tmp_path / "site.py").write_text("\n".join(lines) + "\n")
    words: list[str | Path] = ["-m", "mypy", "--strict", "--python-executable", installed / "python", "site.py"]
    printed = call(sys.executable, *words, cwd=tmp_path)
    for name in ("open_campaign.OpenCampaign", "outcome.Outcome"):
        assert re.search(rf'Revealed type is "nodeprint\S*{name}"', printed), printed
    (tmp_path / "wrong.py").write_text("import nodeprint\nnodeprint.open(3)\n")
    done = subprocess.run([sys.executable, *words[:-1], "wrong.py"], cwd=tmp_path, capture_output=True, check=False)
    assert b'incompatible type "int"' in done.stdout


def test_the_sources_are_copied_into_a_new_folder_only(tmp_path: Path) -> None:
    out = sources.copy(tmp_path / "new")
    assert os.access(out / "kernels/node-run", os.X_OK)
    assert not (out / "kernels/build").exists()
    with pytest.raises(NodeprintError, match="is not empty"):
        sources.copy(tmp_path / "new")

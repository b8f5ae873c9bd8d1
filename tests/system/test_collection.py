"""The Ansible collection, built, and installed alone from its archive in an empty folder."""

import json
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from nodeprint import __version__
from tests.support.real_parts import ROOT, built, need

pytestmark = pytest.mark.machine

PLAYBOOKS = ("prepare", "measure", "fetch", "facts", "restore", "slurm_drain")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("ansible-galaxy", "ansible-playbook")
    built("static")
    out = tmp_path_factory.mktemp("collection")
    done = subprocess.run([ROOT / "setup/collection", out], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture
def installed(archive: Path, tmp_path: Path) -> Path:
    """An empty folder in which it was installed."""
    run(tmp_path, "ansible-galaxy", "collection", "install", "--offline", "-p", tmp_path / "collections", archive)
    return tmp_path


def run(folder: Path, *words: str | Path, code: int = 0) -> str:
    """What a command prints in a folder that has the collection and nothing of the checkout."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"), "ANSIBLE_LOCAL_TEMP": str(folder / "tmp")}
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def changed(output: str) -> list[str]:
    """The counts of changes of all hosts."""
    return re.findall(r"changed=(\d+)", output)


def hosts(folder: Path, **variables: object) -> Path:
    """An inventory of this machine, without ssh."""
    name = os.uname().nodename.partition(".")[0]
    own = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "/usr/bin/python3",
        "nodeprint_home": str(folder / "home"),
        "nodeprint_measure_busy": True,
    }
    path = folder / "hosts.yml"
    path.write_text(json.dumps({"nodes": {"hosts": {name: own | variables}}}))
    return path


def test_the_archive_has_all_that_a_collection_has(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        galaxy = json.load(tar.extractfile("MANIFEST.json"))["collection_info"]  # type: ignore[arg-type]
    assert galaxy["version"] == __version__ and galaxy["namespace"] == galaxy["name"] == "nodeprint"
    assert {f"playbooks/{name}.yml" for name in PLAYBOOKS} <= set(names)
    assert {
        "meta/runtime.yml",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "plugins/modules/kernel_setting.py",
        "roles/nodeprint/README.md",
        "roles/nodeprint/meta/argument_specs.yml",
    } <= set(names)
    assert sum(re.fullmatch(r"roles/nodeprint/files/nodeprint-\w+\.tar\.gz", name) is not None for name in names) == 1


def test_every_variable_of_the_specification_is_a_default_of_the_role() -> None:
    role = ROOT / "ansible/roles/nodeprint"
    specs = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]
    defaults = yaml.safe_load((role / "defaults/main.yml").read_text())
    assert {f"{name}.yml" for name in specs} <= {path.name for path in (role / "tasks").iterdir()}
    for spec in specs.values():
        for name, option in spec["options"].items():
            assert name in defaults or option.get("required"), name
            assert option.get("required") or option["default"] == defaults[name], name
            assert f"`{name}`" in (role / "README.md").read_text()


@pytest.mark.long
def test_installed_alone_it_prepares_measures_and_removes(installed: Path, tmp_path: Path) -> None:
    inventory = hosts(installed)
    assert "measure" in run(installed, "ansible-doc", "-t", "role", "nodeprint.nodeprint.nodeprint")
    play: list[str | Path] = ["ansible-playbook", "-i", inventory]
    prepare = [*play, "nodeprint.nodeprint.prepare", "--tags", "kernels"]
    assert changed(run(installed, *prepare, "--check")) != ["0"] and not (installed / "home").exists()
    assert changed(run(installed, *prepare)) != ["0"] and [*(installed / "home").glob("nodeprint-*/node-run")]
    assert changed(run(installed, *prepare)) == ["0"], "a second call changes nothing"
    assert changed(run(installed, *prepare, "--check")) == ["0"]
    config = {
        "campaign": "main",
        "results": str(tmp_path / "results"),
        "launch": "ansible",
        "preset": "test",
        "measure": ["coherence-cas"],
        "runs": 1,
        "inventory": str(inventory),
    }
    (installed / "config.yaml").write_text(json.dumps(config))
    subprocess.run(
        ["nodeprint", "discover", "--config", installed / "config.yaml"], cwd=ROOT, check=True, capture_output=True
    )
    campaign = tmp_path / "results/main"
    run(installed, *play, "nodeprint.nodeprint.measure", "-e", f"nodeprint_campaign={campaign}")
    (status,) = campaign.glob("nodes/*/job1/status.json")
    assert json.loads(status.read_text())["outcome"] == "complete"
    run(installed, *play, "nodeprint.nodeprint.restore", "--tags", "kernels", "-e", f"nodeprint_campaign={campaign}")
    assert not [*(installed / "home").glob("nodeprint-*/node-run")]


def test_a_host_that_is_not_reached_is_one_sentence(installed: Path) -> None:
    path = hosts(installed, ansible_connection="ssh", ansible_host="127.0.0.9", ansible_port=9)
    text = run(installed, "ansible-playbook", "-i", path, "nodeprint.nodeprint.prepare", "--tags", "kernels", code=4)
    assert "Connection refused" in text and "Traceback" not in text

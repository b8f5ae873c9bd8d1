"""Which launchers there are: nodeprint's own, and those that another package adds by an entry point."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodeprint import addons
from nodeprint.campaign.launchers.launcher import Engine, Launcher, Scheduler
from nodeprint.campaign.launchers.launcher_registry import launcher, scheduler
from nodeprint.errors import NodeprintError
from nodeprint.settings import config
from tests.support.real_parts import ROOT

Add = Callable[[str], None]


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Install a made-up distribution of one module, whose entry point `site` names its `Site`."""

    def adder(source: str) -> None:
        folder = tmp_path / "site/site_launcher-1.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: site_launcher\nVersion: 1\n")
        (folder / "entry_points.txt").write_text("[nodeprint.launchers]\nsite = site_launcher:Site\n")
        (tmp_path / "site/site_launcher.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path / "site")
        monkeypatch.delitem(__import__("sys").modules, "site_launcher", raising=False)
        launcher.cache_clear()

    yield adder
    launcher.cache_clear()


def test_nodeprints_own_are_entry_points_and_known_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][addons.LAUNCHERS]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    assert addons.names(addons.LAUNCHERS) == list(points)
    for name, point in points.items():
        made = launcher(name)
        assert made.name == name and point == f"{type(made).__module__}:{type(made).__name__}"


@pytest.mark.parametrize("name", addons.names(addons.LAUNCHERS))
def test_each_launcher_starts_node_run_in_one_way(name: str) -> None:
    """By Snakemake, for a list of nodes, or by jobs; the key that an option of `make run` replaces is one of them."""
    made = launcher(name)
    assert made.is_here + isinstance(made, Engine) + isinstance(made, Scheduler) == 1
    assert (made.executor == "nodeprint") == isinstance(made, Scheduler)
    content = {"launch": name, **{key: "x" for key in made.call_keys.values() if "." not in key}}
    settings = config.checked(content, "config.yaml")
    assert made.jobs(settings).jobs_at_a_time == 500
    assert made.other_nodes({}, settings) is None


def test_an_unknown_one_is_named_with_those_that_are_known(tmp_path: Path, add: Add) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("launch: site\n")
    own = ", ".join(addons.names(addons.LAUNCHERS))
    with pytest.raises(NodeprintError, match=rf"^{path}: launch: 'site' is unknown; known are {own}$"):
        config.load(path)
    with pytest.raises(NodeprintError, match=rf"^'site' is unknown; known are {own}$"):
        launcher("site")
    add("from nodeprint.campaign.launchers.here import HereLauncher\nclass Site(HereLauncher):\n    name = 'site'\n")
    assert config.load(path).launch == "site"
    assert launcher("site").is_here


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("Site = 7\n", "launch: site is no Launcher"),
        (
            "from nodeprint.campaign.launchers.launcher import Launcher as Site\n",
            "launch: the launcher site has no nodes",
        ),
        (
            "from nodeprint.campaign.launchers.command_scheduler import CommandScheduler as Site\n",
            "launch: the launcher site has no nodes_command",
        ),
        ("import nothing_of_this_name\n", r"add-on site \(site_launcher:Site\) fails to load: No module named"),
    ],
)
def test_one_that_cannot_be_used_is_one_sentence(add: Add, source: str, said: str) -> None:
    add(source)
    with pytest.raises(NodeprintError, match=said):
        launcher("site")


def test_a_launcher_that_submits_nothing_is_no_scheduler() -> None:
    assert isinstance(scheduler("slurm"), Launcher)
    with pytest.raises(NodeprintError, match="launch: `launch: here` submits no jobs"):
        scheduler("here")

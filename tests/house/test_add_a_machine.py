"""docs/how-to/add-a-machine.md, done: its example is unknown before it is in the table, and labeled after."""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from nodeprint import structure
from nodeprint.data.places import layout
from nodeprint.data.store import store
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import processors
from nodeprint.machine.topology.presets import from_part
from nodeprint.machine.tree import Tree, open_tree
from nodeprint.simulate import Plan, Variation, fleet
from nodeprint.simulate.survey import survey
from tests.support.labels import assert_labeled, ids, read
from tests.support.machines import Epyc, epyc
from tests.support.real_parts import ROOT

PAGE = (ROOT / "docs/how-to/add-a-machine.md").read_text()
ENTRY = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
FIXTURE, TEST = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def example() -> Epyc:
    """The fixture that the page lays out."""
    names: dict[str, object] = {"Epyc": Epyc}
    exec(FIXTURE, names)
    found = names["EXAMPLE"]
    assert isinstance(found, Epyc)
    return found


@pytest.fixture
def entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The table with the page's entry at its end."""
    whole = files("nodeprint.machine.topology").joinpath("processors.toml").read_text("utf-8")
    (tmp_path / "processors.toml").write_text(f"{whole}\n{ENTRY}")
    monkeypatch.setattr(processors, "files", lambda _: tmp_path)
    processors._table.cache_clear()
    yield
    processors._table.cache_clear()


def run_the_pages_test(example: Epyc) -> None:
    names = {"EXAMPLE": example, "epyc": epyc, "read": read, "assert_labeled": assert_labeled}
    exec(TEST, names)


def test_it_is_unknown_before(example: Epyc) -> None:
    labels = read(epyc(example))
    assert {level for level in ("ccd", "quadrant") if labels.provenance[level] == "unknown"} == {"ccd", "quadrant"}
    assert_labeled(labels, epyc(example), "socket", "ccx", "core")
    assert ids(labels) == {"unknown-part"}
    with pytest.raises(AssertionError):
        run_the_pages_test(example)
    with pytest.raises(NodeprintError, match="no part"):
        from_part("EPYC 1F01", 2)


@pytest.mark.usefixtures("entered")
def test_it_is_labeled_after(example: Epyc) -> None:
    run_the_pages_test(example)
    for fake in (epyc(example, nps=4), epyc(example, threads=1)):
        assert_labeled(read(fake), fake, "quadrant", "ccd", "ccx", "core", "numa")


@pytest.mark.usefixtures("entered")
def test_it_is_simulated_and_its_matrix_agrees_with_its_labels() -> None:
    topology = from_part("EPYC 1F01", 2)
    (stack,) = fleet(Plan(topology, nodes=1, spread=Variation(core=0.002))).pairs
    slots, cpus = layout.slots_of(topology, [cpu.cpu for cpu in topology.cpus])
    assert (slots == stack.layout.slots).all()
    latency = np.full((len(cpus), len(cpus)), np.nan)
    a, b = stack.pairs.T
    latency[a, b] = latency[b, a] = np.asarray(stack.values).mean(axis=(0, 1))
    first = [i for i, slot in enumerate(slots) if slot[layout.THREAD] == 0]
    seen = structure.find(latency[np.ix_(first, first)], [cpus[i] for i in first], topology, True)
    relations = {item.level: (item.relation, item.label) for item in seen.agreement}
    assert relations["quadrant"] == ("agrees", "quadrant") and relations["ccx"] == ("agrees", "ccx")


def test_labels_kept_before_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store holds labels with a hash of the table that made them."""
    job = tmp_path / "nodes/n1/job1"
    job.mkdir(parents=True)
    (job / "survey.tar.gz").write_bytes(survey(from_part("EPYC 7742", 1), "n1", {}))
    store.survey(job.parent)
    read: list[Path] = []

    def opened(path: Path) -> Tree:
        read.append(path)
        return open_tree(path)

    monkeypatch.setattr(store, "open_tree", opened)
    store.survey(job.parent)
    assert not read
    monkeypatch.setattr(processors, "digest", lambda: "another table")
    store.survey(job.parent)
    assert len(read) == 1

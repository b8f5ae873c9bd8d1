"""Messages between nodes: read, judged and drawn, from numbers; test_fabric_slurm has a real fabric."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint import fabric
from nodeprint.fabric import Fabric
from nodeprint.verdict import fabric as judged

from .conftest import TRAILER, header, lines, pair


def made(
    n: int = 8, seed: int = 1, runs: int = 2, noise: float = 0.02, far: float = 1.5, started: tuple[str, ...] = ()
) -> Fabric:
    """A healthy fabric of two switches: 100 us a message within, `far` times as much between them."""
    rng = np.random.default_rng(seed)
    places = tuple("leaf0" if i < n // 2 else "leaf1" for i in range(n))
    near = np.array(places)[:, None] == np.array(places)[None, :]
    node = 1 + 0.005 * rng.standard_normal((2, n))
    true = 100e3 * np.where(near, 1, far) * node[0][:, None] * node[1][None, :]
    values = true * (1 + noise * rng.standard_normal((runs, n, n)))
    values[:, np.arange(n), np.arange(n)] = np.nan
    names = tuple(f"job{1 + i // 2}/run{1 + i % 2}" for i in range(runs))
    return Fabric(
        "linktest-fabric", tuple(f"cn{i:02d}" for i in range(1, n + 1)), places, names,
        started or ("2026-01-01T00:00:00Z",) * runs, values, {"directed": True, "operation": "unidirectional"},
    )  # fmt: skip


def test_healthy_fabrics_have_no_finding() -> None:
    accused = [seed for seed in range(100) if judged.judge(made(8, seed)) or judged.judge(made(4, seed))]
    assert len(accused) <= 3


@pytest.mark.parametrize("n", [4, 6, 16])
def test_a_slow_link_is_named_with_its_direction(n: int) -> None:
    one = made(n)
    one.values[:, 1, 3] *= 2
    (found,) = judged.judge(one)
    assert (found.term, found.node, found.to, found.sends, found.receives) == ("link", "cn02", "cn04", True, False)
    assert "from cn02 to cn04 is" in found.text and "not in the other" in found.text
    one.values[:, 3, 1] *= 2
    (found,) = judged.judge(one)
    assert {found.node, found.to} == {"cn02", "cn04"}
    assert found.sends and found.receives
    assert found.effect == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(
    ("send", "receive", "said"), [(3, 1, "when it sends"), (1, 3, "when it receives"), (3, 3, "in both directions")]
)
@pytest.mark.parametrize("n", [4, 16])
def test_a_slow_node_is_named_and_none_of_its_links(n: int, send: float, receive: float, said: str) -> None:
    one = made(n)
    one.values[:, 2, :] *= send
    one.values[:, :, 2] *= receive
    (found,) = judged.judge(one)
    assert (found.term, found.node, found.to) == ("node", "cn03", "")
    assert said in found.text
    assert (found.sends, found.receives) == (send > 1, receive > 1)


def test_a_second_job_confirms() -> None:
    soon = made(6, runs=4, started=("2026-01-01T00:00:00Z",) * 2 + ("2026-01-01T00:05:00Z",) * 2)
    later = made(6, runs=4, started=("2026-01-01T00:00:00Z",) * 2 + ("2026-01-01T01:00:00Z",) * 2)
    for one, confirmed in ((soon, False), (later, True)):
        one.values[:, 0, 1] *= 2
        (found,) = judged.judge(one)
        assert found.confirmed is confirmed


def test_one_run_of_two_shows_nothing() -> None:
    one = made(8)
    one.values[0, 0, 1] *= 2
    assert judged.judge(one) == []


def test_three_nodes_cannot_tell() -> None:
    one = made(3)
    one.values[:, 0, 1] *= 5
    assert judged.judge(one) == []
    assert "cannot be told" in judged.entry(one, [])["text"]


@given(st.integers(4, 12), st.integers(0, 2**16), st.randoms(use_true_random=False))
def test_the_order_of_nodes_changes_nothing(n: int, seed: int, random: object) -> None:
    one = made(n, seed)
    one.values[:, 0, 2] *= 2
    order = list(range(n))
    random.shuffle(order)  # type: ignore[attr-defined]
    at = np.array(order)
    other = Fabric(
        one.measurement, tuple(one.nodes[i] for i in order), tuple(one.places[i] for i in order), one.runs, one.started,
        one.values[:, at][:, :, at], one.header,
    )  # fmt: skip
    assert [(f.node, f.to) for f in judged.judge(one)] == [(f.node, f.to) for f in judged.judge(other)]


def written(campaign: Path, run: int, *pairs: dict[str, object], nodes: tuple[str, ...] = ("b", "a")) -> Path:
    path = campaign / f"fabric/job1/run{run}/linktest-fabric.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    ranks = [[node, 0] for node in nodes for _ in range(2)]
    head = header(
        kernel="linktest", operation="unidirectional", quantity="message", home=None, directed=True, ranks=ranks,
        run=run, cpus=[], message_bytes=1024,
    )  # fmt: skip
    path.write_text(lines(head, *pairs, TRAILER))
    return path


def test_ranks_become_nodes(tmp_path: Path) -> None:
    times = {(0, 2): 1.0, (0, 3): 2.0, (1, 2): 3.0, (2, 0): 8.0, (0, 1): 99.0}
    written(tmp_path, 1, *(pair(a, b, latency_ns=t, home=-1) for (a, b), t in times.items()))
    (tmp_path / "nodes.tsv").write_text("node\thost\track\nb\tb\tr1\na\ta\tr2\n")
    (one,) = fabric.read(tmp_path)
    assert (one.nodes, one.places) == (("b", "a"), ("r1", "r2"))
    assert one.values[0, 0, 1] == 2.0  # the median over pairs of ranks
    assert one.values[0, 1, 0] == 8.0
    assert np.isnan(np.diagonal(one.values[0])).all()  # ranks of one node are no link


def test_a_damaged_file_is_a_problem_and_no_more(tmp_path: Path) -> None:
    written(tmp_path, 1, pair(0, 2, home=-1))
    written(tmp_path, 2).write_text('{"record": 1}\n')
    (one,) = fabric.read(tmp_path)
    assert one.runs == ("job1/run1",)
    assert len(one.problems) == 1
    assert fabric.read(tmp_path / "elsewhere") == []
    assert json.dumps(judged.entry(one, []), allow_nan=False)

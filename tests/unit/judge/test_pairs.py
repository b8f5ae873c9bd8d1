"""Terms of pairs: each shows a defect of its own component whole, and nothing of what all of its parent has."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from nodeprint.data.places.layout import OTHER_SOCKET, SOCKET, Layout, layout_of, slots_of
from nodeprint.judge import pairs
from nodeprint.machine.topology.presets import from_part

#: By processor how many terms two sockets of it have in each component type: of four CCDs of two CCXs in a quadrant
#: each, and of eight CCDs of one CCX, two in a quadrant.
COMPONENTS = {
    "EPYC 7601": {"class": 7, "link": 28, "ccd": 16, "block": 8, "ccx": 16},
    "EPYC 7763": {"class": 7, "quadrant": 16, "link": 28, "ccd": 32, "block": 120, "ccx": 16},
}


def layout(component: str) -> Layout:
    """All pairs of the cores of two sockets."""
    topology = from_part(component, 2, False)
    slots, cpus = slots_of(topology, [cpu.cpu for cpu in topology.cpus])
    return layout_of(topology, slots, np.column_stack(np.triu_indices(len(cpus), 1)), cpus)


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_part_has_its_terms(component: str) -> None:
    of = pairs.of(layout(component))
    cores = len(of.layout.slots)
    each = dict.fromkeys(("core-in", "core-near", "core-far"), cores)
    assert Counter(term.component_type for term in of.terms) == COMPONENTS[component] | each
    for component_type in ("core-in", "core-near", "core-far"):
        assert [term.where for term in of.terms if term.component_type == component_type] == [
            {"core": n} for n in range(cores)
        ]
    assert of.unwitnessed == () and pairs.of(layout(component)) is of
    assert all(
        of.pools[pool] == of.component_types[component_type]
        for pool, component_type in zip(of.pool, of.component_type, strict=True)
    )
    far = [of.layout.closeness[term.covers[0]] == OTHER_SOCKET and term.component_type != "class" for term in of.terms]
    assert (of.pool % 2).tolist() == far


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_part_shows_all_of_its_own_defect_and_nothing_of_what_all_of_its_parent_has(component: str) -> None:
    of = pairs.of(layout(component))
    sockets = np.sort(of.layout.slots[:, SOCKET][of.layout.pairs], axis=1)
    strata = of.layout.classes * 4 + sockets[:, 0] * 2 + sockets[:, 1]
    for term, weights in zip(of.terms, of.contrast, strict=True):
        assert weights[term.covers].sum() == pytest.approx(1.0, abs=1e-4), term
        assert not np.intersect1d(term.covers, term.against).size, term
        by_stratum = np.bincount(strata, weights)
        if term.component_type == "class":
            assert np.count_nonzero(by_stratum) == 1 and not len(term.against)
        else:
            assert by_stratum == pytest.approx(0.0, abs=1e-4), term
        assert len(set(of.layout.closeness[term.covers] == OTHER_SOCKET)) == 1


def test_pairs_of_a_term_are_those_of_its_part() -> None:
    of = pairs.of(layout("EPYC 7763"))
    core, ccd = of.layout.pairs, of.layout.pairs // 8
    outside = ccd[:, 0] != ccd[:, 1]
    far = (core[:, 0] < 64) != (core[:, 1] < 64)
    expected = {
        ("ccd", (3, 0)): ~far & ((ccd[:, 0] == 3) ^ (ccd[:, 1] == 3)),
        ("ccd", (3, 1)): far & ((ccd[:, 0] == 3) ^ (ccd[:, 1] == 3)),
        ("block", (2, 3)): (ccd[:, 0] == 2) & (ccd[:, 1] == 3),
        ("link", (0, 5)): (ccd[:, 0] // 2 == 0) & (ccd[:, 1] // 2 == 5),
        ("ccx", (9,)): (ccd == 9).all(axis=1),
        ("core-in", (17,)): (core == 17).any(axis=1) & ~outside,
        ("core-near", (17,)): (core == 17).any(axis=1) & outside & ~far,
        ("core-far", (17,)): (core == 17).any(axis=1) & far,
    }
    by_place = {(term.component_type, tuple(term.where.values())): term for term in of.terms}
    for place, covers in expected.items():
        assert np.array_equal(by_place[place].covers, np.flatnonzero(covers)), place
    # compared with the other cores of its CCX, to the same places
    others = (ccd == 2).any(axis=1) & ~far & outside & (core != 17).all(axis=1)
    assert np.array_equal(by_place["core-near", (17,)].against, np.flatnonzero(others))


def test_one_cause_shows_in_all_terms_of_its_part() -> None:
    of = pairs.of(layout("EPYC 7601"))
    causes = {(cause.term, tuple(cause.where.items())): [of.terms[i] for i in cause.members] for cause in of.composites}
    assert Counter(term for term, _ in causes) == {"core": 128, "ccd": 24, "class": 4, "socket": 4, "node": 1}
    component_types = {place: Counter(term.component_type for term in terms) for place, terms in causes.items()}
    assert component_types["node", ()] == {"class": 7}
    assert component_types["class", (("beyond_class", 1),)] == {"class": 5}
    assert component_types["socket", (("socket", 1),)] == {"class": 3}
    assert component_types["socket", (("socket", 1), ("beyond_class", 1))] == {"class": 2}
    assert component_types["ccd", (("ccd", 5),)] == {"ccd": 2, "ccx": 2, "block": 1}
    assert component_types["ccd", (("ccd", 5), ("to_others", 1))] == {"ccd": 2}
    assert component_types["ccd", (("ccd", 5), ("inside", 1))] == {"ccx": 2, "block": 1}
    assert {
        term.where["ccx"] for term in causes["ccd", (("ccd", 5), ("inside", 1))] if term.component_type == "ccx"
    } == {
        10,
        11,
    }
    assert component_types["core", (("core", 9),)] == {"core-in": 1, "core-near": 1, "core-far": 1}
    assert component_types["core", (("core", 9), ("outside", 1))] == {"core-near": 1, "core-far": 1}


def test_two_cores_in_a_ccx_have_one_pair_that_names_neither() -> None:
    for cores, unnamed in ((2, True), (4, False)):
        slots = np.array([[0, 0, core // cores, core // cores, core, 0] for core in range(4)])
        layout = Layout(slots, np.array(list(itertools.combinations(range(4), 2))))
        assert pairs.no_core_inside(pairs.of(layout)) == unnamed
    apart = Layout(np.array([[0, 0, core, core, core, 0] for core in range(4)]), layout.pairs)
    assert not pairs.no_core_inside(pairs.of(apart))  # there are no pairs inside at all

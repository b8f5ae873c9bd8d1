"""The terms of pairs of CPUs, from coarse to fine, each a contrast.

A contrast is the mean over a set of pairs minus the mean over matched pairs without the component (its complement). It
is taken stratum by stratum, so that a shift of the parent cancels. Terms of component type `class` have no complement.
A term without complement in any stratum cannot be separated from its parent and is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import OTHER_SOCKET, SAME_CCD, SAME_CCX, Ints, Layout
from nodeprint.judge.terms import COMPONENT_TYPES, Cause, Term, Terms

Bools = npt.NDArray[np.bool_]


_BUILT: dict[bytes, Terms] = {}


def of(layout: Layout) -> Terms:
    """All terms of a layout, built once."""
    key = layout.key + layout.pairs.astype(np.int32).tobytes()
    if key not in _BUILT:
        _BUILT[key] = build(layout)
    return _BUILT[key]


def build(layout: Layout) -> Terms:
    """All terms that the layout's design matrix can estimate."""
    hybrid = bool(layout.kinds)
    cores = [*_core_terms(layout, inside=not layout.harvested, hybrid=hybrid)]
    distinct = _distinct(
        [
            *_class_terms(layout),
            *(cores if hybrid else ()),  # a performance core is a cluster, too, and is called a core
            *_component_terms("ccd", layout.ends["ccd"], layout),
            *_component_terms("quadrant", layout.ends["quadrant"], layout),
            *_link_terms("link", "quadrant", layout.ends["quadrant"], layout),
            *_link_terms("block", "ccd", layout.ends["ccd"], layout),
            *_ccx_terms(layout),
            *cores,
        ]
    )
    contrast = np.zeros((len(distinct), len(layout.pairs)), dtype=np.float32)
    for row, term in zip(contrast, distinct, strict=True):
        row[:] = _contrast_row(term, layout.strata)
    component_types = tuple(COMPONENT_TYPES)
    component_type = np.array([component_types.index(term.component_type) for term in distinct], dtype=np.int64)
    across = np.array([layout.closeness[term.covers[0]] == OTHER_SOCKET for term in distinct], dtype=np.int64)
    pool = np.where(component_type > 0, 2 * component_type + across, 0)
    return Terms(
        layout,
        tuple(distinct),
        contrast,
        tuple(_composites(distinct, layout)),
        component_types,
        component_type,
        pool,
        {int(number): component_types[number // 2] for number in np.unique(pool)},
        tuple(
            component_type
            for component_type in _unwitnessed(distinct, contrast, layout)
            if not (layout.harvested and component_type == "core-in")
        ),
    )


#: A component is examined if some term shows at least this share of an effect that the component alone has on its
#: pairs.
_WITNESS = 0.5


def _unwitnessed(terms: list[Term], contrast: npt.NDArray[np.float32], layout: Layout) -> tuple[str, ...]:
    """Component types with a component for which no term would show half of a defect in all its pairs."""
    known = {term.covers.tobytes() for term in terms}
    blind: set[str] = set()
    for component_type, covers in _components(layout):
        pairs = np.flatnonzero(covers).astype(np.int64)
        if component_type not in blind and len(pairs) and pairs.tobytes() not in known:
            shown = np.abs(contrast[:, pairs].sum(axis=1)).max(initial=0.0)
            blind |= {component_type} if shown < _WITNESS - 1e-3 else set()
    return tuple(component_type for component_type in COMPONENT_TYPES if component_type in blind)


def _components(layout: Layout) -> Iterator[tuple[str, Bools]]:
    """Every component that a defect may affect, as its component type and its pairs: CCDs to others, CCXs and cores."""
    far = layout.closeness == OTHER_SOCKET
    within = (layout.ends["ccx"][0] == layout.ends["ccx"][1]) & (layout.ends["core"][0] != layout.ends["core"][1])
    outside = (layout.ends["ccx"][0] != layout.ends["ccx"][1]) & ~far
    for number in _known(layout.ends["ccd"]):
        yield "ccd", ~far & ((layout.ends["ccd"][0] == number) ^ (layout.ends["ccd"][1] == number))
    for number in _known(layout.ends["ccx"]):
        yield "ccx", within & (layout.ends["ccx"][0] == number)
    for number in _known(layout.ends["core"]):
        of_core = (layout.ends["core"][0] == number) | (layout.ends["core"][1] == number)
        yield "core-in", within & of_core
        yield "core-near", outside & of_core


def _distinct(terms: list[Term]) -> list[Term]:
    """The first of all terms that cover the same pairs. A quadrant of one die is the die; between two such is a
    link."""
    seen: dict[bytes, Term] = {}
    for term in terms:
        seen.setdefault(term.covers.tobytes(), term)
    return list(seen.values())


def _known(component: tuple[Ints, Ints]) -> list[int]:
    """The numbers of the components of a level, none if it is unknown."""
    return [number for number in np.unique(np.concatenate(component)).tolist() if number >= 0]


def _term(component_type: str, where: Mapping[str, int], covers: Bools, scope: Bools, layout: Layout) -> Iterator[Term]:
    """A term that compares `covers` with the rest of its `scope` in the same strata; none if there is no rest."""
    against = scope & ~covers & np.isin(layout.strata, np.unique(layout.strata[covers]))
    if against.any():
        yield Term(component_type, COMPONENT_TYPES[component_type].term, where, _numbers(covers), _numbers(against))


def _numbers(chosen: Bools) -> Ints:
    return np.flatnonzero(chosen).astype(np.int64)


def _class_terms(layout: Layout) -> Iterator[Term]:
    for number in np.unique(layout.strata):
        pairs_of_class = _numbers(layout.strata == number)
        first = int(pairs_of_class[0])
        s, t = sorted((int(layout.ends["socket"][0][first]), int(layout.ends["socket"][1][first])))
        where = {"class": int(layout.classes[first]), "socket": s} | ({"to_socket": t} if t != s else {})
        yield Term("class", "class", where, pairs_of_class, pairs_of_class[:0])


def _component_terms(component_type: str, component: tuple[Ints, Ints], layout: Layout) -> Iterator[Term]:
    """A component to all others, separately within its socket and across sockets."""
    a, b = component
    far = layout.closeness == OTHER_SOCKET
    for number in _known(component):
        for across in (False, True):
            scope = (far == across) & (a != b)
            covers = scope & ((a == number) ^ (b == number))
            yield from _term(component_type, {component_type: number, "across": int(across)}, covers, scope, layout)


def _link_terms(
    component_type: str, component_name: str, component: tuple[Ints, Ints], layout: Layout
) -> Iterator[Term]:
    """Between two components, or the pairs of one component that no finer component holds."""
    low, high = np.minimum(*component), np.maximum(*component)
    outside = (layout.closeness > (SAME_CCX if component_name == "ccd" else SAME_CCD)) & (low >= 0)
    n = int(high.max(initial=0)) + 1
    for code in np.unique((low * n + high)[outside]):
        p, q = int(code // n), int(code % n)
        if p != q or component_name == "ccd":  # pairs inside a quadrant are terms of the component type block
            covers = outside & (low == p) & (high == q)
            yield from _term(component_type, {component_name: p, f"to_{component_name}": q}, covers, outside, layout)


def _ccx_terms(layout: Layout) -> Iterator[Term]:
    inside = (layout.ends["ccx"][0] == layout.ends["ccx"][1]) & (layout.closeness == SAME_CCX)
    for number in np.unique(layout.ends["ccx"][0][inside]).tolist():
        yield from _term("ccx", {"ccx": number}, inside & (layout.ends["ccx"][0] == number), inside, layout)


def _core_terms(layout: Layout, *, inside: bool, hybrid: bool) -> Iterator[Term]:
    """A core to its CCX (`inside`), to the rest of its socket, and across sockets.

    It is compared with the other cores of its CCX, or of its CCD if its CCX has no other. Performance cores of a hybrid
    processor, which share no cluster and are on no CCD, are compared with each other.

    If cores are fused off, their positions differ from chip to chip. A core inside its CCX then has no counterpart on
    other chips; a slow one still shows in its pairs to the others.
    """
    cores = _known(layout.ends["core"])
    ccx, ccd = (np.full(max(cores, default=0) + 1, -1, dtype=np.int64) for _ in range(2))
    for side in (0, 1):
        ccx[layout.ends["core"][side]], ccd[layout.ends["core"][side]] = (
            layout.ends["ccx"][side],
            layout.ends["ccd"][side],
        )
    alone = (np.bincount(ccx[cores], minlength=1)[ccx[cores]] == 1) & ((ccd[cores] >= 0) | hybrid)
    home = ccx.copy()
    home[cores] = np.where(alone, -1 if hybrid else -2 - ccd[cores], ccx[cores])
    beside = home[layout.ends["core"][0]], home[layout.ends["core"][1]]
    same_core = layout.ends["core"][0] == layout.ends["core"][1]
    far = layout.closeness == OTHER_SOCKET
    in_ccx = (layout.ends["ccx"][0] == layout.ends["ccx"][1]) & ~same_core
    scopes = {"core-near": ~in_ccx & ~far & ~same_core, "core-far": far}
    if inside:
        scopes = {"core-in": in_ccx, **scopes}
    for component_type, scope in scopes.items():
        for core in cores:
            covers = scope & ((layout.ends["core"][0] == core) | (layout.ends["core"][1] == core))
            touches = (beside[0] == home[core]) | (beside[1] == home[core])
            yield from _term(component_type, {"core": core}, covers, scope & touches, layout)


def _contrast_row(term: Term, stratum: Ints) -> npt.NDArray[np.float32]:
    row = np.zeros(len(stratum), dtype=np.float64)
    if not len(term.against):
        row[term.covers] = 1 / len(term.covers)
        return row.astype(np.float32)
    inside, outside = stratum[term.covers], stratum[term.against]
    usable = np.isin(inside, outside)  # strata without complement cannot separate this term from its parent
    covers = term.covers[usable]
    row[covers] = 1 / len(covers)
    for number in np.unique(inside[usable]):
        against_of = term.against[outside == number]
        row[against_of] -= (stratum[covers] == number).sum() / len(covers) / len(against_of)
    return row.astype(np.float32)


def _composites(terms: Sequence[Term], layout: Layout) -> Iterator[Cause]:
    """Causes that show in several terms at once; for the same terms, the first."""
    seen: set[frozenset[int]] = set()
    for name, where, members in _together(terms, layout):
        if len(members) > 1 and frozenset(members) not in seen:
            seen.add(frozenset(members))
            covers = np.unique(np.concatenate([terms[i].covers for i in members]))
            yield Cause(name, where, np.array(members, dtype=np.int64), covers)


def _together(terms: Sequence[Term], layout: Layout) -> Iterator[tuple[str, Mapping[str, int], list[int]]]:
    """The terms that one cause may show in: its name and place, and their numbers."""
    classes = _by("class", ("class",), terms)
    every = sorted(i for mine in classes.values() for i in mine)
    fabric = [i for i in every if int(terms[i].where["class"]) > 1]
    yield "node", {}, every
    yield "class", {"beyond_class": 1}, fabric
    for socket, mine in _by("socket", ("class",), terms).items():
        own = [i for i in mine if "to_socket" not in terms[i].where]
        yield "socket", {"socket": socket}, own
        yield "socket", {"socket": socket, "beyond_class": 1}, [i for i in own if i in fabric]
    for number, mine in classes.items():
        yield "class", {"class": number}, mine
    for quadrant, ports in _by("quadrant", ("quadrant",), terms).items():
        yield "quadrant", {"quadrant": quadrant, "to_others": 1}, ports
    ccxs, blocks = _by("ccx", ("ccx",), terms), _by("ccd", ("block",), terms)
    for ccd, ports in _by("ccd", ("ccd",), terms).items():
        inside = [i for mine in ccxs.values() for i in mine if layout.ends["ccd"][0][terms[i].covers[0]] == ccd]
        inside += [i for i in blocks.get(ccd, ()) if terms[i].where["to_ccd"] == ccd]
        yield "ccd", {"ccd": ccd}, ports + inside
        yield "ccd", {"ccd": ccd, "to_others": 1}, ports
        yield "ccd", {"ccd": ccd, "inside": 1}, inside
    cores_in = _by("core", ("core-in",), terms)
    for core, outside in _by("core", ("core-near", "core-far"), terms).items():
        own = (layout.ends["core"][0] == core) | (layout.ends["core"][1] == core)
        # in a CCX of two cores the only pair counts to both
        alone = [i for mine in ccxs.values() for i in mine if own[terms[i].covers].all()]
        yield "core", {"core": core}, [*cores_in.get(core, alone), *outside]
        yield "core", {"core": core, "outside": 1}, outside


def _by(key: str, component_types: Collection[str], terms: Sequence[Term]) -> dict[int, list[int]]:
    """By place the numbers of the terms of some component types there."""
    out: dict[int, list[int]] = {}
    for number, term in enumerate(terms):
        if term.component_type in component_types:
            out.setdefault(int(term.where[key]), []).append(number)
    return dict(sorted(out.items()))


def no_core_inside(terms: Terms) -> bool:
    """Whether there are pairs inside CCXs, but none that name a core: with two cores there is one pair."""
    inside = terms.layout.closeness == SAME_CCX
    return bool(inside.any()) and not len(terms.indices("core-in"))

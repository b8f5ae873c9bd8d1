"""AMD's chiplets: the CCD of each CCX, and the quadrant or half of the I/O die of each CCD.

No register reports the quadrant (nothing beyond the die is in CPUID leaf 0x80000026, AMD64 Architecture Programmer's
Manual volume 3, E.4.24). It is known if NUMA nodes follow it (NPS4), or by the rule of the processor table if the
package has every CCD in place. In a virtual machine only NUMA nodes count, because APIC ids are not the chip's. The
rule does not apply if virtualization is undetermined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodeprint.machine.topology.facts import Facts, groups_of, is_finer
from nodeprint.machine.topology.processors import Generation, Processor
from nodeprint.settings.texts import say

Order = Callable[[int], tuple[int, ...]]

#: SLIT distance between NUMA nodes of one quadrant or socket where each L3 is a node; nodes of NPS4 are 12 apart.
_L3_NODE_DISTANCE = 11


def chiplets(
    facts: Facts,
    generation: Generation | None,
    part: Processor | None,
    numa: Mapping[int, int],
    nps: int | None,
    order: Order | None,
) -> None:
    """Add CCDs, quadrants, halves and positions to the `facts` of an AMD or Hygon machine with numbered sockets.

    `numa` is the NUMA node of each CPU. `nps` is the number of nodes per socket, None if they do not partition it.
    `order` sorts the CPUs of a socket as they are on the chip, None if unknown.
    """
    sockets = facts.parts.get("socket", {})
    if set(sockets) != set(facts.cpus):
        sockets = {}
    facts.parts |= {level: {} for level in ("ccd", "quadrant", "half")}
    ranks = _ranks(facts, generation, part, order)
    _find_ccds(facts, generation, ranks)
    numbers = _ccd_numbers(facts, facts.parts["ccd"], ranks, generation, order)
    if generation is not None and facts.machine.virtual is not True:
        _find_positions(facts, generation, part)
    if generation is not None and sockets:
        _find_quadrants(facts, generation, numa, nps, numbers)
        _find_halves(facts, generation, numa, nps)


def l3_as_numa(facts: Facts, numa: Mapping[int, int]) -> bool:
    """Whether the firmware made each L3 a NUMA node: as many as CCXs, and not as NPS places them."""
    ccx, sockets = facts.parts.get("ccx", {}), facts.parts.get("socket", {})
    if not ccx or set(numa) != set(ccx) or _sets(numa) != _sets(ccx):
        return False
    per_socket = len(set(ccx.values())) / max(1, len(set(sockets.values())))
    if per_socket not in (1, 2, 4):
        return True
    inside = {
        node.distances[i]
        for node in facts.numa_nodes
        for i, target in enumerate(facts.numa_nodes)
        if node is not target and node.cpus and target.cpus and node.distances
        if sockets.get(node.cpus[0]) == sockets.get(target.cpus[0])
    }
    return _L3_NODE_DISTANCE in inside


def _sets(parts: Mapping[int, int]) -> set[tuple[int, ...]]:
    return set(groups_of(parts).values())


def _ranks(facts: Facts, generation: Generation | None, part: Processor | None, order: Order | None) -> dict[int, int]:
    """Each CCX's number in its socket by APIC id, by CPU; empty where unknown.

    Ranks are those numbers if every CCX is seen. If some may be hidden, the APIC id's stride decides, where the parts
    a CCX may have allow only one.
    """
    ccx, sockets = facts.parts.get("ccx", {}), facts.parts.get("socket", {})
    if order is None or not set(facts.cpus) == set(ccx) == set(sockets):
        return {}
    by_socket: dict[int, list[tuple[int, ...]]] = {}
    for cpus in groups_of(ccx).values():
        by_socket.setdefault(sockets[cpus[0]], []).append(cpus)
    wanted = part.ccds * (part.generation.ccx_per_ccd or 1) if part is not None else None
    out: dict[int, int] = {}
    for groups in by_socket.values():
        groups.sort(key=lambda cpus: min(map(order, cpus)))
        if facts.complete is not False or len(groups) == wanted:
            numbers: list[int] | None = list(range(len(groups)))
        else:
            numbers = _strided(facts, groups, generation, wanted)
        if numbers is None:
            return {}
        out |= {cpu: number for number, cpus in zip(numbers, groups, strict=True) for cpu in cpus}
    return out


def _strided(
    facts: Facts, groups: list[tuple[int, ...]], generation: Generation | None, wanted: int | None
) -> list[int] | None:
    if not facts.apicids or generation is None or generation.cores_per_ccx is None or wanted is None:
        return None
    base = 0
    if len(set(facts.parts["socket"].values())) > 1:
        width = 1 << (wanted * generation.cores_per_ccx * 2 - 1).bit_length()
        base = min(facts.apicids[c] for g in groups for c in g) // width * width
    fits = []
    for threads in (1, 2):
        stride = 1 << (generation.cores_per_ccx * threads - 1).bit_length()
        blocks = [{(facts.apicids[c] - base) // stride for c in cpus} for cpus in groups]
        numbers = [min(block) for block in blocks]
        if all(len(b) == 1 for b in blocks) and len(set(numbers)) == len(numbers) and max(numbers) < wanted:
            fits.append(numbers)
    return fits[0] if len(fits) == 1 else None


def _find_ccds(facts: Facts, generation: Generation | None, ranks: Mapping[int, int]) -> None:
    """CCDs by leaf 0x80000026, else by the dies that Linux or CPUID report, else by the table."""
    virtual = facts.machine.virtual
    ccx, sockets, dies = (facts.parts.get(level, {}) for level in ("ccx", "socket", "die"))
    per_ccd = generation.ccx_per_ccd if generation is not None else None
    shift = facts.shifts.get("ccd")
    if not virtual and shift is not None and facts.apicids:
        facts.parts["ccd"] = {cpu: facts.apicids[cpu] >> shift for cpu in facts.cpus}
        facts.provenance["ccd"] = "cpuid"
    elif not virtual and set(dies) == set(facts.cpus) and is_finer(dies, sockets) and _dies_fit(dies, ccx, per_ccd):
        facts.parts["ccd"], facts.provenance["ccd"] = dict(dies), facts.provenance["die"]
    elif per_ccd == 1 and ccx:
        facts.parts["ccd"], facts.provenance["ccd"] = dict(ccx), "table"
    elif per_ccd is not None and virtual is False and ranks:
        counts = [len({ranks[c] for c in cpus}) for cpus in groups_of(sockets).values()]
        if facts.complete is not False and any(count % per_ccd for count in counts):
            facts.warn("odd-ccx", ccxs=max(counts), per_ccd=per_ccd)
        else:
            first: dict[tuple[int, int], int] = {}
            facts.parts["ccd"] = {c: first.setdefault((sockets[c], ranks[c] // per_ccd), c) for c in sorted(ranks)}
            facts.provenance["ccd"] = "table"
    if (ccd := facts.parts["ccd"]) and ccx and any(len({ccd[c] for c in cpus}) > 1 for cpus in groups_of(ccx).values()):
        facts.warn("ccd-cuts-ccx")
        facts.parts["ccd"].clear()
        del facts.provenance["ccd"]


def _dies_fit(dies: Mapping[int, int], ccx: Mapping[int, int], per_ccd: int | None) -> bool:
    """Whether dies can be CCDs: whole CCXs, no more than a CCD has. On Rome and Milan Linux's die is the package."""
    if not ccx:
        return True
    groups = groups_of(dies).values()
    whole = all(len({dies.get(c) for c in cpus}) == 1 for cpus in groups_of(ccx).values())
    return whole and (per_ccd is None or all(len({ccx.get(c) for c in g}) <= per_ccd for g in groups))


def _ccd_numbers(
    facts: Facts,
    ccd: Mapping[int, int],
    ranks: Mapping[int, int],
    generation: Generation | None,
    order: Order | None,
) -> dict[int, int]:
    """The number of each CPU's CCD in its socket, by APIC id; empty where unknown."""
    sockets = facts.parts.get("socket", {})
    if set(ccd) != set(facts.cpus) or not sockets:  # where some are unknown the others cannot be counted
        return {}
    if {"ccd", "socket"} <= facts.shifts.keys() and facts.apicids:
        top = (1 << facts.shifts["socket"]) - 1
        return {cpu: (facts.apicids[cpu] & top) >> facts.shifts["ccd"] for cpu in facts.cpus}
    if generation is not None and generation.ccx_per_ccd and ranks:
        return {cpu: ranks[cpu] // generation.ccx_per_ccd for cpu in ranks}
    if facts.complete is False or order is None:
        return {}
    out: dict[int, int] = {}
    for cpus in groups_of(sockets).values():
        ccds = sorted({ccd[c] for c in cpus}, key=lambda d: min(order(c) for c in cpus if ccd[c] == d))
        out |= {c: ccds.index(ccd[c]) for c in cpus}
    return out


def _find_positions(facts: Facts, generation: Generation, part: Processor | None) -> None:
    """Whether every core and CCD of the die is in place: if not, ids are compacted and positions are unknown."""
    cores, ccx, sockets = (facts.parts.get(level, {}) for level in ("core", "ccx", "socket"))
    seen_cores = {len({cores.get(c, c) for c in cpus}) for cpus in groups_of(ccx).values()}
    ccd = facts.parts["ccd"]
    seen_ccds = {len({ccd[c] for c in cpus if c in ccd}) for cpus in groups_of(sockets).values()}
    if facts.complete is False:
        seen_cores = _behind(seen_cores, part.cores_per_ccx if part else None, generation.cores_per_ccx)
        seen_ccds = _behind(seen_ccds, part.ccds if part else None, generation.ccds)
    if seen_cores and generation.cores_per_ccx:
        facts.core_positions = _in_place(min(seen_cores) >= generation.cores_per_ccx, facts)
        if facts.core_positions is False:
            facts.warn("cores-fused-off", active=_some(seen_cores), all=generation.cores_per_ccx)
    if seen_ccds and 0 not in seen_ccds and generation.ccds:
        facts.ccd_positions = _in_place(min(seen_ccds) >= generation.ccds, facts)
        if facts.ccd_positions is False and generation.has_quadrants:
            facts.warn("ccds-fused-off", active=_some(seen_ccds), all=generation.ccds)


def _in_place(whole: bool, facts: Facts) -> bool | None:
    """Whether parts are in place: what looks whole may be made up unless the machine is known to be no virtual one."""
    return None if whole and facts.machine.virtual is None else whole


def _behind(seen: set[int], of_part: int | None, whole: int | None) -> set[int]:
    """How many are active where some may be hidden, which is not fused off: by the part's name, or by a whole one."""
    if of_part is not None:
        return {of_part}
    return {whole} if whole is not None and max(seen, default=0) >= whole else set()


def _some(numbers: set[int]) -> str:
    return " or ".join(map(str, sorted(numbers)))


def _find_quadrants(
    facts: Facts,
    generation: Generation,
    numa: Mapping[int, int],
    nps: int | None,
    numbers: Mapping[int, int],
) -> None:
    """Quadrants by NPS4 nodes, which are authoritative, else by the table's rule."""
    sockets = facts.parts["socket"]
    ruled: dict[int, int] = {}
    if (
        facts.machine.virtual is False
        and generation.has_quadrants
        and facts.ccd_positions
        and len(numbers) == len(facts.cpus)
    ):
        for cpu, number in numbers.items():
            quadrant = generation.quadrant_of(number)
            if quadrant is not None:
                ruled[cpu] = sockets[cpu] * 4 + quadrant
    nodes = nps == 4 and generation.has_quadrants
    if nodes and _cuts(numa, facts.parts["ccd"] or facts.parts.get("ccx", {})):
        nodes = False
        facts.warn("numa-contradicts-table", "cut")
    if nodes:
        names = ruled or _hint(generation, numbers, sockets)
        same = _sets(names) == _sets(numa)
        facts.parts["quadrant"] = names if same else _numbered_within(numa, sockets, 4)
        facts.provenance["quadrant"] = "numa"
        if ruled and _sets(ruled) != _sets(numa):
            facts.warn("numa-contradicts-table", "other", generation=generation.name, rule=generation.quadrant)
    elif ruled:
        facts.parts["quadrant"], facts.provenance["quadrant"] = ruled, "table"
    elif not generation.without_quadrants:
        why = _why_no_rule(facts, generation)
        facts.warn(
            "quadrant-unknown",
            "unknown_machine" if facts.machine.virtual is None else "known_machine",
            levels="quadrants" if facts.parts["ccd"] else "CCDs and quadrants",
            reason=say("warnings", "quadrant-unknown", "reasons", why),
        )


def _why_no_rule(facts: Facts, generation: Generation) -> str:
    """The key of the reason (reports/texts.yaml) why the table's rule gives no quadrants."""
    if facts.machine.virtual:
        return "virtual"
    if facts.machine.virtual is None:
        return "maybe_virtual"
    if not generation.has_quadrants:
        return "no_rule"
    if facts.ccd_positions:
        return "no_order"
    return "not_every_ccd"


def _cuts(nodes: Mapping[int, int], parts: Mapping[int, int]) -> bool:
    return any(len({nodes.get(c) for c in cpus}) > 1 for cpus in groups_of(parts).values())


def _hint(generation: Generation, numbers: Mapping[int, int], sockets: Mapping[int, int]) -> dict[int, int]:
    """Numbers for quadrants that NUMA nodes give: by a rule that also held on harvested parts (CCD mod 4)."""
    if not (generation.quadrant or "").startswith("ccd mod"):
        return {}
    return {c: sockets[c] * 4 + (generation.quadrant_of(n) or 0) for c, n in numbers.items()}


def _numbered_within(nodes: Mapping[int, int], sockets: Mapping[int, int], per_socket: int) -> dict[int, int]:
    """The parts `nodes`, numbered from 0 in each socket and on over the sockets."""
    out: dict[int, int] = {}
    for socket, cpus in groups_of(sockets).items():
        numbers = sorted({nodes[c] for c in cpus})
        out |= {c: socket * per_socket + numbers.index(nodes[c]) for c in cpus}
    return out


def _find_halves(facts: Facts, generation: Generation, numa: Mapping[int, int], nps: int | None) -> None:
    """Halves of the I/O die by NPS2 nodes, and by nothing else."""
    if nps != 2 or not generation.has_io_die or _cuts(numa, facts.parts["ccd"] or facts.parts.get("ccx", {})):
        return
    facts.parts["half"], facts.provenance["half"] = _numbered_within(numa, facts.parts["socket"], 2), "numa"
    if facts.parts["quadrant"] and _cuts(numa, facts.parts["quadrant"]):
        facts.warn("numa-contradicts-table", "halves", generation=generation.name, rule=generation.quadrant)
        facts.parts["quadrant"].clear()
        facts.provenance.pop("quadrant")

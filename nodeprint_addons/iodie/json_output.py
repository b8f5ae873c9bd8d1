"""What was found of I/O dies for programs, as nodeprint_addons/iodie/iodie.json has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodeprint_addons.iodie import sentences
from nodeprint_addons.iodie.analysis import NodeDies
from nodeprint_addons.iodie.die import Die
from nodeprint_addons.iodie.line_clusters import LineClusters
from nodeprint_addons.iodie.part_comparison import DieComparison


def of_node(node: NodeDies) -> dict[str, Any]:
    """A node's dies."""
    return {
        "node": node.node,
        "simulated": node.simulated,
        "measurement": node.measurement,
        "missing": list(node.missing),
        "dies": [_die_json(die) for die in node.dies],
    }


def _die_json(die: Die) -> dict[str, Any]:
    ends, ns, half, apart = die.end_ns
    odd, both = dict(die.odd_ends), die.agreement
    return {
        "socket": die.frame.socket,
        "homes": list(die.homes),
        "level": die.frame.level,
        "lines": _clusters_json(die.clusters),
        "census": _clusters_json(die.census) if die.census is not None else None,
        "agreement": None if both is None else {"lines": both.lines, "index": _figure(both.index)},
        "rules": [
            {
                "bits": list(r.bits),
                "groups": [list(g) for g in r.groups],
                "right": _figure(r.right),
                "lines": r.lines,
                "in_page": r.in_page,
            }
            for r in die.rules
        ],
        "map": _map_json(die),
        "no_map": die.no_map,
        "no_geometry": die.no_geometry,
        "ends": [
            {
                "end": int(e),
                "ns": _figure(v),
                "half_ns": _figure(h),
                "apart_sd": _figure(z, 2),
                "stands_apart": int(e) in odd,
            }
            for e, v, h, z in zip(ends, ns, half, apart, strict=True)
        ],
        "links": [{"socket": link.socket, "ns": _figure(link.ns), "half_ns": _figure(link.half)} for link in die.links],
        "scatter_ns": _figure(die.fit.scatter_ns),
        "core": None if die.core is None else {"cycles": _figure(die.core.cycles), "half": _figure(die.core.half)},
        "clock_spread": _figure(die.frame.clock_spread),
    }


def _clusters_json(clusters: LineClusters) -> dict[str, Any]:
    return {
        "lines": len(clusters.label),
        "clusters": clusters.count,
        "sizes": clusters.sizes.tolist(),
        "unassigned": int((clusters.label < 0).sum()),
        "hidden": list(clusters.hidden),
        "least_share": _figure(clusters.least_share),
        "separation": _figure(clusters.separation, 2),
        "noise_ns": _figure(clusters.noise_ns),
        "detectable_ns": _figure(clusters.detectable_ns),
    }


def _map_json(die: Die) -> dict[str, Any] | None:
    if die.sites is None or die.distances is None:
        return None
    sites, distances, shape_of = die.sites, die.distances, die.geometry
    return {
        "sites": [
            {
                "name": sentences.site_name(die, site),
                "ends": sentences.ends_of(die, site),
                "clusters": np.flatnonzero(sites.of_cluster == site).tolist(),
                "share": _figure(die.share(site)[0]),
                "share_half": _figure(die.share(site)[1]),
            }
            for site in range(sites.with_memory)
        ],
        "further": [
            {"site": sites.count + i, "ns": list(map(_figure, ns)), "half_ns": list(map(_figure, half))}
            for i, (ns, half) in enumerate(zip(distances.further, distances.further_half, strict=True))
        ],
        "distances": [
            {
                "sites": [int(p), int(q)],
                "line_ns": _figure(distances.line[i]),
                "line_half_ns": _figure(distances.line_half[i]),
                "pair_ns": _figure(distances.pair[i]),
                "pair_half_ns": _figure(distances.pair_half[i]),
            }
            for i, (p, q) in enumerate(distances.ends)
        ],
        "geometry": None
        if shape_of is None
        else {
            "kind": shape_of.kind,
            "sites": shape_of.sites,
            "site": shape_of.site.tolist(),
            "hop_ns": [_figure(v) for v in shape_of.hop_ns],
            "hop_half_ns": [_figure(v) for v in shape_of.hop_half],
            "pair_hop_ns": [_figure(v) for v in shape_of.pair_hop_ns],
            "pair_hop_half_ns": [_figure(v) for v in shape_of.pair_hop_half],
            "advantage": _figure(shape_of.advantage, 2),
            "certain": _figure(shape_of.certain),
        },
        "anchored_by": "the labels of quadrants" if die.agrees == 1 else None,
        "labels_index": _figure(die.agrees),
    }


def of_fleet(comparison: DieComparison) -> dict[str, Any]:
    """The comparison of nodes."""
    return {
        "nodes": list(comparison.nodes),
        "others": dict(comparison.not_compared),
        "parts": [
            {
                "kind": part.key[0],
                "socket": part.key[1],
                "where": [list(ends) for ends in part.key[2]],
                "unit": part.unit,
                "median": _figure(np.median(part.value)),
                "values": [_figure(value) for value in part.value],
                "half": [_figure(value) for value in part.half],
            }
            for part in comparison.parts
        ],
    }


def _figure(value: float | None, digits: int = 4) -> float | None:
    """A number: rounded, None where it is unknown."""
    return None if value is None or not np.isfinite(value) else round(float(value), digits)

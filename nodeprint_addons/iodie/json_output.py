"""Results on I/O dies for programs, in the format of nodeprint_addons/iodie/iodie.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from nodeprint_addons.iodie import part_comparison, sentences
from nodeprint_addons.iodie.analysis import PART, NodeDies
from nodeprint_addons.iodie.data import rows_of
from nodeprint_addons.iodie.die import Die
from nodeprint_addons.iodie.line_clusters import LineClusters


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
    common, index, core = die.common_lines, die.census_agreement, die.core_cycles
    return {
        "socket": die.socket,
        "homes": list(die.homes),
        "level": die.level,
        "lines": _clusters_json(die.clusters),
        "census": _clusters_json(die.census) if die.census is not None else None,
        "agreement": {"lines": common, "index": _figure(index)} if die.census is not None else None,
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
                "end": int(end.Index),
                "ns": _figure(end.ns),
                "half_ns": _figure(end.half),
                "apart_sd": _figure(end.apart_sd, 2),
                "stands_apart": bool(end.odd),
            }
            for end in rows_of(die.own_parts)
        ],
        "links": [
            {"socket": socket, "ns": _figure(link.value), "half_ns": _figure(link.half)}
            for socket, link in die.links.items()
        ],
        "scatter_ns": _figure(die.fit.scatter_ns),
        "core": None if core is None else {"cycles": _figure(core.value), "half": _figure(core.half)},
        "clock_spread": _figure(die.clock_spread),
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
    if die.sites is None or die.to_lines is None or die.to_cpus is None:
        return None
    sites, shape_of, to_lines, to_cpus = die.sites, die.geometry, die.to_lines.between, die.to_cpus
    return {
        "sites": [
            {
                "name": sentences.site_name(die, site),
                "ends": sentences.ends_of(die, site),
                "clusters": np.flatnonzero(sites.of_cluster == site).tolist(),
                "share": _figure(die.share(site).value),
                "share_half": _figure(die.share(site).half),
            }
            for site in range(sites.with_memory)
        ],
        "further": [
            {"site": site, "ns": list(map(_figure, further.ns)), "half_ns": list(map(_figure, further.half))}
            for site in range(sites.count, sites.with_memory)
            for further in (die.to_lines.to_site(site),)
        ],
        "distances": [
            {
                "sites": [int(p), int(q)],
                "line_ns": _figure(to_lines.ns[i]),
                "line_half_ns": _figure(to_lines.half[i]),
                "pair_ns": _figure(to_cpus.ns[i]),
                "pair_half_ns": _figure(to_cpus.half[i]),
            }
            for i, (p, q) in enumerate(to_lines.ends)
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


def of_fleet(nodes: Sequence[NodeDies]) -> dict[str, Any] | None:
    """The comparison of nodes; None if fewer than two have the same dies."""
    compared = part_comparison.compare(nodes)
    if compared is None:
        return None
    return {
        "nodes": [node.node for node in part_comparison.alike(nodes)],
        "others": part_comparison.not_compared(nodes),
        "parts": [_part_json(part) for _, part in compared.groupby(PART, sort=False)],
    }


def _part_json(part: pd.DataFrame) -> dict[str, Any]:
    """One part on all nodes."""
    first = part.iloc[0]
    return {
        "kind": first["kind"],
        "socket": int(first["socket"]),
        "where": [list(ends) for ends in first["where"]],
        "unit": first["unit"],
        "median": _figure(np.median(part["value"])),
        "values": [_figure(value) for value in part["value"]],
        "half": [_figure(value) for value in part["half"]],
    }


def _figure(value: float | None, digits: int = 4) -> float | None:
    """A number: rounded, None where it is unknown."""
    return None if value is None or not np.isfinite(value) else round(float(value), digits)

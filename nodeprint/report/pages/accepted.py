"""The facts of a campaign: its machines, when and by which version they were measured, and its tolerances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from nodeprint import __version__
from nodeprint.errors import printable
from nodeprint.judge.agreements import decided_metrics
from nodeprint.judge.verdict import Limit, NodeVerdict, Verdict
from nodeprint.report import names, text
from nodeprint.report.pages.blocks import FactRows, Table, Text
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.pages.tables import agreement_numbers, without_empty
from nodeprint.settings.texts import say

#: Other values than the most frequent that are named.
_MOST_VALUES = 3
#: Longer values are cut.
_LONGEST = 90

Fingerprint = Mapping[str, object]


def _processors(fields: Fingerprint) -> str:
    processor, sockets, cores = (fields.get(key) for key in ("cpu", "sockets", "cores"))
    cores_each = f", {names.counted(int(str(cores)) // int(str(sockets)), 'core')} each" if sockets and cores else ""
    return f"{f'{sockets} x ' if sockets else ''}{processor}{cores_each}" if processor else ""


def _memory(fields: Fingerprint) -> str:
    size = f"{fields['memory_gib']} GiB" if fields.get("memory_gib") else ""
    return ", ".join(filter(None, (size, *(str(fields[key]) for key in ("dimms", "dimm_speed") if fields.get(key)))))


def _numa(fields: Fingerprint) -> str:
    each = fields.get("numa_nodes_per_socket")
    threads = {True: "SMT on", False: "SMT off"}.get(fields.get("smt") is True) if "smt" in fields else ""
    return ", ".join(filter(None, (f"{each} NUMA node{'s' if each != 1 else ''} per socket" if each else "", threads)))


#: Facts by name: a key of the fingerprint, or a function of it.
_FACTS: Mapping[str, str | Callable[[Fingerprint], str]] = {
    "processors": _processors,
    "memory": _memory,
    "NUMA, SMT": _numa,
    "product": "product",
    "BIOS": "bios",
    "microcode": "microcode",
    "Linux": "kernel",
    "system": "os",
}


def rows(campaign: Campaign) -> FactRows:
    """The machines of the nodes, and how they were measured."""
    return (*machines(campaign.verdict.nodes), *measured(campaign))


def machines(nodes: Mapping[str, NodeVerdict]) -> FactRows:
    """The state of most nodes' machines; other states have the names of their nodes."""
    shown = ((name, _values(nodes, value)) for name, value in _FACTS.items())
    facts = tuple((name, words) for name, words in shown if words)
    return facts or (("machines", "nothing is recorded of them"),)


def _values(nodes: Mapping[str, NodeVerdict], value: str | Callable[[Fingerprint], str]) -> str:
    each = {
        n: str(of.fingerprint.get(value) or "") if isinstance(value, str) else value(of.fingerprint)
        for n, of in nodes.items()
    }
    of_node = {name: words for name, words in each.items() if words}
    counted = Counter(of_node.values()).most_common()
    if not counted:
        return ""
    usual, *others = (printable(words, _LONGEST) for words, _ in counted)
    on = [names.nodes(name for name in of_node if of_node[name] == words) for words, _ in counted[1:]]
    named = [f"{words} on {names.shortened(of_them, 40)}" for words, of_them in zip(others, on, strict=True)]
    more = [f"and {names.counted(len(named) - _MOST_VALUES, 'more value')}"] if len(named) > _MOST_VALUES else []
    return "; ".join([usual, *named[:_MOST_VALUES], *more])


def _counted(counts: Sequence[int], noun: str) -> str:
    lowest = f"{counts[0]} to " if len(counts) > 1 else ""
    return lowest + names.counted(counts[-1], noun)


def tolerances_source(verdict: Verdict) -> str:
    """The source of the tolerances: `the defaults`, `acceptance.yaml of the campaign`."""
    return printable(verdict.versions.get("acceptance", "the defaults").partition(",")[0], 60)


def measured(campaign: Campaign) -> FactRows:
    """When the nodes were measured and how often, the campaign, and the versions."""
    verdict = campaign.verdict
    started = sorted(time for quantity in campaign.fleet.quantities for time in quantity.started if time)
    last = [node.measured for node in verdict.nodes.values() if node.measured]
    ends = [*started[:1], *sorted((*started[-1:], *last))[-1:]]
    jobs = sorted({len(node.jobs) for node in verdict.nodes.values() if node.jobs})
    core_to_core = {quantity.measurement for quantity in campaign.fleet.quantities if quantity.core_to_core}
    figures = [figure for node in verdict.nodes.values() for figure in node.classes]
    runs = sorted({figure.runs for figure in figures if figure.measurement in core_to_core})
    done = [name for name, node in verdict.nodes.items() if node.outcome.entry.measured]
    counts = [f"{_counted(jobs, 'job')} per node"] if jobs else []
    counts += [f"{_counted(runs, 'run')} of core-to-core latency"] if runs else []
    parties = {key: getattr(campaign.site, key) for key in ("customer", "supplier")}
    signing = {key: f" ({name})" if name else "" for key, name in parties.items()}
    utc, unknown = " UTC" * all(time.endswith(("Z", "+00:00")) for time in ends), say("not_recorded")
    facts: dict[str, str] = {
        "nodes": f"{len(done)} of {len(verdict.nodes)} measured: {names.shortened(names.nodes(done), 70)}",
        "measured": f"{times}{utc}" if (times := " to ".join(dict.fromkeys(map(names.moment, ends)))) else unknown,
        "table": printable(verdict.versions.get("table", "").partition(", SHA-256")[0], 60),
        "repeated": "; ".join(counts),
        "campaign": f"{printable(verdict.campaign, 60)}{f' ({campaign.origin})' if campaign.origin else ''}",
        "tolerances": tolerances_source(verdict),
        "judged by"
        if verdict.imported
        else "measured by": f"nodeprint {verdict.versions.get('nodeprint', __version__)}",
        "to sign": say("to_sign", campaign=campaign.folder or verdict.campaign, **signing)
        if verdict.fleet.tests
        else "",
        "contract": campaign.site.contract,
        "contact": campaign.site.contact,
    }
    return tuple((key, words) for key, words in facts.items() if words)


# --- tolerances ---


def tolerances(verdict: Verdict) -> tuple[Table, Text]:
    """The tolerances of each metric that decides an outcome, and the component that is closest to its own.

    These are the metrics that SAME is based on and those of findings. Tolerances differ by component and are a range.
    `detectable from` is the difference from which on 90% of the nodes with it are detected. Only for metrics of SAME,
    a component is the closest: in the others, a node without a finding may be any distance from its peers.
    """
    limits: dict[str, list[Limit]] = {metric: [] for metric in decided_metrics(verdict)}
    for limit in verdict.fleet.limits:
        if limit.metric in limits:
            limits[limit.metric].append(limit)
    closest = {of.metric: of for of in verdict.fleet.agreements if of.criterion}
    rows = []
    for metric, of_metric in ((metric, of_metric) for metric, of_metric in limits.items() if of_metric):
        nearest = closest.get(metric)
        on = text.of_node(text.same_node_of(nearest, verdict)) if nearest is not None else ""
        tested = (text.named("metrics", metric), names.tolerances(of_metric), names.detectable(of_metric))
        nearest_words = text.noun_phrase(nearest) + on if nearest is not None else ""
        numbers = agreement_numbers(nearest).values() if nearest is not None else ("", "")
        rows.append((*tested, nearest_words, *numbers))
    header = (
        "metric",
        "tolerance",
        "detectable from",
        "closest of the nodes that match",
        "the same within",
        "its tolerance",
    )
    table = without_empty(Table(header, tuple(rows), "lrrlrr", 3))
    return table, Text(say("tolerance_of_rates") if rows else "", quiet=True)

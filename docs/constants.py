"""The constants that decide in the judge and its statistics, as the table of docs/method/constants.md.

Names, values and meanings are read in the code; where each is from stands here, and tests/house holds that none lacks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "nodeprint"
#: Modules whose numbers decide an outcome.
MODULES = (
    "stats/disagreement", "stats/gaps", "stats/intervals", "stats/measuring_order", "stats/mixture", "stats/peers",
    "stats/rounds", "stats/runs", "stats/strata", "data/job/fabric_times",
    "data/job/whole_runs", "judge/baseline", "judge/causes", "judge/control_nodes", "judge/deviations",
    "judge/expected", "judge/figures", "judge/findings", "judge/fleet", "judge/groups", "judge/joined", "judge/judge",
    "judge/agreements", "judge/measuring_time", "judge/messages", "judge/nodes", "judge/pairs", "judge/achieved",
    "judge/reduction", "judge/standing", "judge/verdict/fleet_verdict",
)  # fmt: skip
_CHOICE, _SIZE = "a choice", "how much is in memory at once; decides nothing"
_CALIBRATION, _VERDICT = (
    f"{_CHOICE}; measured together by `python -m bench.{name}`" for name in ("calibration", "verdict")
)
_ODD = "(`python -m bench.calibration --section odd`)"
_TRIED = "fleets with half of the nodes shifted: SPLIT in 19 of 20, and no healthy fleet of 52"
#: Where a constant is from, by module and name.
SOURCES: Mapping[str, str] = {
    "stats/disagreement.LEAST": "three standard deviations of runs under load (docs/validation.md). With 1.2, two "
    f"thirds of quiet runs that are 20% off are not reported. With 1.05, no more are reported {_ODD}",
    "stats/disagreement.APART": "matrices of core-to-core-latency",
    "stats/disagreement.NEARER": "matrices of core-to-core-latency; a guest of 16 CPUs (docs/validation.md)",
    "stats/disagreement._BY_CHANCE": "among jobs with equal runs, 2 names a run in 10%, 3 in up to 1% and 4 in none "
    f"of 900 {_ODD}",
    "stats/disagreement._SHARE": _CHOICE,
    "stats/disagreement._NEAR, _FAR, _BETWEEN": f"{_CHOICE}: pairs of one class agree within the first",
    "stats/disagreement._AT_ONCE": _SIZE,
    "stats/gaps._GAP, _MOST, FEWEST": f"{_CHOICE}; the ratio is Dixon's of 1953",
    "stats/gaps._APART, _LEAST, FEWEST_OF_GROUPS": "Ashman, Bird and Zepf 1994; cuts of simulated values of one kind",
    "stats/measuring_order.FEWEST, _EACH_SIDE": f"{_CHOICE}: with fewer, no order is significant at 1%",
    "data/job/whole_runs._FEW": f"{_CHOICE}: figures have three digits and more",
    "judge/baseline.MIN_RUNS, MIN_BOOTS": f"{_CHOICE}: one boot shows nothing of the next",
    "stats/mixture.MIXED": f"{_CHOICE}, for printed medians",
    "judge/figures._LEAST_PAIRS": f"{_CHOICE}, for printed medians",
    "judge/expected._MOST_PAIRS": f"{_CHOICE}: a second of measuring",
    "judge/findings._LAST": "an arbitrary order",
    "judge/findings._CLOCK_SEEN, _HOTTER_C": f"{_CHOICE}, for remarks on a finding",
    "judge/findings._EXPLAINED": f"{_CHOICE}: a half of the effect",
    "judge/findings._AGREE": f"{_CHOICE}, the same as in judge/causes",
    "judge/control_nodes.CONTROLS": f"{_CHOICE}: t(0.95) of six degrees of freedom is 1.94, of two 2.92",
    "judge/control_nodes.FEWEST": "the same as in stats/rounds",
    "judge/fleet._NORMAL_95": "the normal distribution",
    "judge/pairs._WITNESS": f"{_CHOICE}: finds a defect of twice the tolerance",
    "judge/achieved._LITTLE": f"{_CHOICE}, for messages",
    "judge/measuring_time.ALARM": f"{_CHOICE}: as often as a healthy fleet may have any DEVIATES",
    "judge/measuring_time._LEAST_SHARE": f"{_CHOICE}, for messages",
    "data/job/fabric_times.FEWEST_LINKS": f"{_CHOICE}: of three nodes each has two links",
    "judge/messages._ROUNDS": "the iteration converges",
    "judge/messages._FEW_NODES": "a choice; tried with 4 to 16 nodes (`docs/validation.md`)",
    "judge/messages._PLANTED": "a choice: the resolution of the limit, not its value",
    "judge/messages._BOTH_WAYS": _CHOICE,
    "judge/messages._RUN_PRIOR": f"{_CHOICE}, without other runs",
    "stats/intervals.EQUIVALENCE": "Schuirmann 1987",
    "stats/peers.LEAVE_OUT_BELOW": f"{_CHOICE}, of run time",
    "stats/peers.FEWEST": f"{_CHOICE}: of four others one may be wrong",
    "stats/peers.REMAINDER": f"{_CHOICE}: clearly more than half",
    "stats/rounds.FEWEST": f"{_CHOICE}: of three one may move by itself",
    "stats/rounds._STEPS, _SETTLED": "the iteration converges",
    "stats/rounds._DAY_S": "a day",
    "stats/peers.HUBER, TEMPLATE_ERROR": "Huber 1964",
    "stats/peers._MAD, _OF_CLIPPED": "the normal distribution",
    "stats/runs.RARE": _CALIBRATION,
    "stats/runs.PRIOR_DEGREES": f"{_CHOICE}; of fleets with one run alone",
    "stats/runs.OUTLIER": "the normal distribution",
    "stats/runs._STEPS": "the iteration converges",
    "stats/runs.OWN_DEGREES": _CALIBRATION,
    "stats/runs.SURE": _CALIBRATION,
    "stats/runs.MOST_DEGREES": "practically infinite",
    "stats/runs.ENOUGH_DEGREES": "t(0.95) is within 2% of the normal",
    "stats/strata._LEAST, _LEAST_SHARE": _CHOICE,
    "stats/strata._STRAY_SHARE": _CHOICE,
    "stats/strata.BEYOND": _TRIED,
    "stats/strata.EMPTY, _TRIMMED": _TRIED,
    "judge/causes.MOST_CAUSES": f"{_CHOICE}, for pages",
    "judge/causes._AGREE_SHARE, _AGREE_ERRORS": _VERDICT,
    "judge/causes._RIVAL": _VERDICT,
    "judge/causes._OWN_SHARE": _VERDICT,
    "judge/causes._MOST": _VERDICT,
    "judge/standing.FEW_NODES": f"{_CHOICE}: of three others two may be wrong",
    "judge/deviations.AT_ONCE": _SIZE,
    "judge/deviations.USUAL": f"{_CHOICE}: a majority",
    "judge/deviations._FAR": f"{_CHOICE}: nobody overlooks twice what is accepted",
    "judge/deviations._FEWEST_WITH_MIDDLE": "a definition: the middle one has others on both sides",
    "judge/deviations._FEW": f"{_CHOICE}, of run time: of more nodes one hardly moves the center",
    "judge/groups.GAP": f"{_CHOICE}: half of the tolerance",
    "judge/groups._STEPS": f"{_CHOICE}: values that are evenly apart are no groups",
    "judge/groups.FEWEST": f"{_CHOICE}: a group has two nodes",
    "judge/verdict/fleet_verdict.CONTESTED": f"{_CHOICE}: two of ten may be a batch",
    "judge/deviations.SUSPECT": f"{_CHOICE}: it costs second jobs alone",
    "judge/joined._DAY_S, _MOST_DAYS": "a day; more than any calendar has",
    "judge/joined._SEVERAL": f"{_CHOICE}: fewer show no correlation",
    "judge/joined._MOST_ALIKE": f"{_CHOICE}: a mean of a year still says something",
    "judge/agreements.MOST_RUNS, MOST_NODES, MOST_JOBS": f"{_CHOICE}, for the means of a site",
    "judge/agreements._NOISIER": f"{_CHOICE} that affects the printed remedy alone",
    "judge/agreements._CLOSE": f"{_CHOICE} that affects the printed remedy alone",
    "judge/agreements.NINE_OF_TEN": "the normal distribution",
    "judge/agreements.FAR": _CHOICE,
    "judge/agreements.MOST_LIMIT": f"{_CHOICE}: eleven times as much is no question of precision",
    "judge/agreements._WIDE_SHARE, _WIDE_NODES": _CHOICE,
    "judge/agreements._SHARED": f"{_CHOICE}: a majority",
    "judge/reduction._CHUNK": _SIZE,
    "judge/reduction.CLIP": f"{_CHOICE}: twice the usual latency",
}


def constants() -> Iterator[tuple[str, str, str]]:
    """Each constant that is a number: its module and name, its value, and what its comment says it is."""
    for module in MODULES:
        path = PACKAGE / f"{module}.py"
        text = path.read_text()
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and _is_number(node.value):
                above = node.lineno - 1
                while above and lines[above - 1].startswith("#:"):
                    above -= 1
                words = " ".join(line.removeprefix("#:").strip() for line in lines[above : node.lineno - 1])
                name = ast.unparse(node.targets[0]).strip("()")
                yield f"{module}.{name}", ast.unparse(node.value).strip("()"), words


def _is_number(value: ast.expr) -> bool:
    try:
        number = ast.literal_eval(value)
    except ValueError:
        return False
    return all(isinstance(part, int | float) for part in (number if isinstance(number, tuple) else (number,)))


def page() -> str:
    """The page of constants."""
    rows = [f"| `{name}` | {value} | {words} | {SOURCES.get(name, '')} |" for name, value, words in constants()]
    return (
        "\n".join(
            (
                "# Constants of the verdict",
                "",
                "Made from the code by `python docs/hooks.py`. `config/README.md` lists tolerances and assumed",
                "spreads, which a site may change.",
                "",
                "| constant | value | meaning | source |",
                "|---|---|---|---|",
                *rows,
            )
        )
        + "\n"
    )

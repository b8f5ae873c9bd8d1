"""What a reader of a paper asks of a measurement, answered once a report, and how nodeprint is cited.

The questions are the rules of T. Hoefler and R. Belli, Scientific Benchmarking of Parallel Computing Systems (SC15,
doi:10.1145/2807591.2807644).
"""

from __future__ import annotations

from nodeprint import __version__
from nodeprint.report.pages import Block, FactList, Text

_ANSWERS = (
    ("speedups", "none are reported; all figures are times, rates and clocks in SI units"),
    ("subsets", "all measured places are shown; what was not measured, and why, is listed"),
    (
        "summaries",
        "times and rates are summarised by medians; ratios are of medians of one measurement",
    ),
    ("spread", "medians have 95 % intervals over runs, where these are enough; a run is a new process with new memory"),
    ("normality", "not assumed of samples: medians and low quantiles; intervals over runs are Student's"),
    (
        "comparison",
        "nodes are compared by tests with simultaneous error bounds; a difference counts beyond its bound only",
    ),
    ("conditions", "CPU, firmware, kernel, memory and settings of each node are in its fingerprint"),
    (
        "environment",
        "warnings name what disturbed a measurement; a node whose newest job has an invalid run is INVALID",
    ),
    ("figures", "one colour scale for all nodes of a report; maps and intervals show all data, not means alone"),
    (
        "data",
        "records as measured are in nodes/ (JSON Lines), arrays in node.nc; the report can be made from them again",
    ),
)


def blocks() -> tuple[Block, ...]:
    """The answers, and how to cite."""
    return (
        Text("The rules of Hoefler and Belli (SC15, doi:10.1145/2807591.2807644), answered:", True),
        FactList(_ANSWERS, 1, 26.0),
        Text(f"To cite: nodeprint {__version__}, CITATION.cff; the verdict's method is in docs/method.md.", True),
    )

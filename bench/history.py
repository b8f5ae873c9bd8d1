"""Changes over a simulated year: how many that were planted are found, and how many that are none: `python -m bench
history`, three minutes. The year is that of tests/support/simulated_year.py, of 200 nodes and 52 weeks.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import fmean

from bench import table
from bench.table import row
from tests.support.simulated_year import TIMES_BOUND, counted, source

WEEKS, NODES = 52, 200


def main() -> int:
    """Simulate, print the table, keep it; 0 whatever came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=NODES, help=f"nodes of the year (default {NODES})")
    nodes = parser.parse_args().nodes
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        of, last = source(Path(folder))
        # half of the nodes of each call are unchanged
        caught, false = counted(of, last, 2 * nodes, WEEKS, seed=1)
    rows = [
        row(f"changes of {TIMES_BOUND} bounds missed, share of {len(caught)}", 1 - fmean(caught), 0.05),
        row(f"unchanged nodes with a change in a year, of {len(false)}", fmean(false), 0.01),
    ]
    table.keep("history", rows, load)
    return 0


if __name__ == "__main__":
    sys.exit(main())

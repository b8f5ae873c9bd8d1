"""Changes over a year: how many that were planted are found, and how many that are none: `python -m bench history`, ten
minutes. The year is that of tests/support/noisy_year.py, of 25 fleets of eight nodes and 52 weeks.
"""

from __future__ import annotations

import argparse
import os
import sys
from statistics import fmean

from bench import table
from bench.table import row
from tests.support.noisy_year import TIMES_TOLERANCE, counted

WEEKS, FLEETS = 52, 25


def main() -> int:
    """Simulate, print the table, keep it; 0 whatever came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=FLEETS, help=f"fleets of eight nodes (default {FLEETS})")
    fleets = parser.parse_args().fleets
    load = os.getloadavg()[0]
    caught, false = counted(fleets, WEEKS, seed=1)
    rows = [
        row(f"changes of {TIMES_TOLERANCE} tolerances missed, share of {len(caught)}", 1 - fmean(caught), 0.05),
        row(f"unchanged nodes with a change in a year, of {len(false)}", fmean(false), 0.01),
    ]
    table.keep("history", rows, load)
    return 0


if __name__ == "__main__":
    sys.exit(main())

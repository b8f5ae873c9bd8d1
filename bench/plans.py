"""Is `--plan` right? CPU seconds of each operation against its plan.

    python -m bench.plans                       every operation, three runs each: two minutes on two CPUs
    python -m bench.plans --rounds 5 chase wake some operations

The trailer's `busy_s` counts: of each task the CPU seconds of the worker that used the most, and those of the main
thread between. Operations that end by the clock count by elapsed seconds, as lost time makes them no longer. A plan is
for a core-to-core latency of 150 ns and linear in it, so it is compared at that of this pair of CPUs. All programs run
at real-time priority, where that is allowed.
"""

from __future__ import annotations

import os

from bench import table
from bench.operations import chosen
from bench.table import Row
from tests.support.plans import OPERATIONS, calmest

#: A plan must be right within this factor.
FACTOR = 1.3


def main() -> int:
    """Compare, print and keep the table; 0 whatever came out."""
    operations, rounds = chosen("plans", __doc__, OPERATIONS)
    load, rows = os.getloadavg()[0], list[Row]()
    print(f"{'operation':25}{'planned s':>10}{'used s':>9}{'ratio':>7}{'lost':>7}  before: planned and used s")
    for operation in operations:
        run = calmest(operation, rounds)
        before = f"{run.prepare_planned_s:8.3f} {run.prepare_used_s:8.3f}"
        print(
            f"{operation.name:25}{run.planned_s:10.3f}{run.used_s:9.3f}{run.ratio:7.2f}{run.lost_share:7.1%}  {before}",
            flush=True,
        )
        rows.append(table.row(f"{operation.name}, used to planned", max(run.ratio, 1 / run.ratio), FACTOR, "x"))
    table.keep("plans", rows, load)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Real-time priority for what is compared, where it is allowed: both programs then have their CPU for themselves."""

from __future__ import annotations

import os


def real_time() -> bool:
    """Give this process, and all that it starts, real-time priority; False where that is not allowed.

    Linux takes it from who runs for 0.95 s of a second: what is compared must be shorter.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    return True

"""Guards around Snakemake's Slurm executor (snakemake-executor-plugin-slurm 2.8), for those who use profiles/slurm.

The executor takes its active jobs from a list before it asks squeue, and where squeue does not answer it puts none of
them back: it then waits for ever (check_active_jobs, `if status_of_jobs is not None` without an else). A job that Slurm
has forgotten (MinJobAge) is polled for ever, too. Both are cured from outside: jobs that were neither settled nor kept
are kept, and one whose outputs have been there for some minutes is done, whatever squeue says.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

#: status.json is written last, so the job behind it ends at once; the executor looks at most every 180 s.
DONE_S = 300.0

Check = Callable[[Any, Sequence[Any]], AsyncIterator[Any]]


def guard(executor: type, done_s: float = DONE_S) -> None:
    """Guard an executor's class; once."""
    if not hasattr(executor, "unguarded"):
        executor.unguarded = executor.check_active_jobs  # type: ignore[attr-defined]
        executor.check_active_jobs = guarded(executor.unguarded, done_s)  # type: ignore[attr-defined]


def guarded(check: Check, done_s: float) -> Check:
    """`check` (an executor's check_active_jobs), of which no job gets lost and that ends those that are done."""

    async def check_active_jobs(self: Any, active_jobs: Sequence[Any]) -> AsyncIterator[Any]:
        settled: set[int] = set()

        def noted(report: Callable[..., Any]) -> Callable[..., Any]:
            def call(job: Any, *words: Any, **more: Any) -> Any:
                settled.add(id(job))
                return report(job, *words, **more)

            return call

        names = ("report_job_success", "report_job_error")
        for name in names:
            setattr(self, name, noted(getattr(type(self), name).__get__(self)))
        try:
            async for _ in check(self, active_jobs):
                pass
        finally:
            for name in names:
                delattr(self, name)
        for job in active_jobs:
            if id(job) in settled:
                continue
            if is_done(job.job.output, done_s):
                self.report_job_success(job)
            else:
                yield job

    return check_active_jobs


def is_done(outputs: Sequence[str], done_s: float) -> bool:
    """Whether all outputs have been there for so long."""
    try:
        return time.time() - max(Path(str(path)).stat().st_mtime for path in outputs) > done_s
    except (OSError, ValueError):
        return False

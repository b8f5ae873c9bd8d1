"""Processes that work beside this one. Ctrl-C is for this one alone, which then ends them: a terminal sends it to all,
and each would write a traceback of its own."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.context import BaseContext
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

_T = TypeVar("_T")
_P = ParamSpec("_P")


class Pool(ProcessPoolExecutor):
    """Processes that are never interrupted by themselves, and are ended at once where this one leaves by an exception
    that is no error, as Ctrl-C is. What they hold for a while, such as temporary folders, is then removed."""

    def __init__(
        self,
        count: int,
        context: BaseContext | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(count, context, _begin, (initializer, initargs))

    def submit(self, task: Callable[_P, _T], /, *arguments: _P.args, **options: _P.kwargs) -> Future[_T]:
        """As of ProcessPoolExecutor, which begins its processes here: they inherit that the signal is held back."""
        former = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            return super().submit(task, *arguments, **options)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> Any:
        """Wait for what is at work, or end it."""
        if kind is not None and not issubclass(kind, Exception):
            self.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
        return super().__exit__(kind, value, trace)


def _begin(initializer: Callable[..., object] | None, arguments: tuple[Any, ...]) -> None:
    """Begin a process, which leaves its work when it is to end."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    if initializer is not None:
        initializer(*arguments)

"""Processes that work beside this one. Ctrl-C is for this one alone, which then ends them: a terminal sends it to all,
and each would write a traceback of its own. They end with this one, however it is ended."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.context import BaseContext
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

#: Seconds in which a process whose parent is gone removes what it holds.
_TO_CLEAN_UP_S = 2.0

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
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if initializer is not None:
        initializer(*arguments)


def _end_with_parent() -> None:
    """End this process when the one that began it is gone: a pool that is killed ends none of its processes. What it
    works on has some seconds to remove what it holds; the pool's loop would take the exit for an error of the task and
    wait for the next one for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_TO_CLEAN_UP_S)
        os._exit(1)

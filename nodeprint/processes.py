"""Worker processes that end with this process.

A terminal sends Ctrl-C to all processes, and each would write its own traceback. So only this process handles it, and
ends the others.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import BaseContext
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from nodeprint.errors import NodeprintError

#: Seconds in which a process whose parent is gone removes what it holds.
_TO_CLEAN_UP_S = 2.0

_T = TypeVar("_T")
_Item = TypeVar("_Item")
_P = ParamSpec("_P")


class Pool(ProcessPoolExecutor):
    """Worker processes that ignore Ctrl-C.

    If this process leaves by an exception that is not an `Exception`, such as Ctrl-C, they end at once and remove their
    temporary directories.
    """

    def __init__(
        self,
        count: int,
        context: BaseContext | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        # a fork, as Python 3.14 else begins processes from a server, which inherits nothing of this one
        super().__init__(count, context or multiprocessing.get_context("fork"), _begin, (initializer, initargs))

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
        """Wait for the running tasks, or end them."""
        if kind is not None and not issubclass(kind, Exception):
            self.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
        return super().__exit__(kind, value, trace)


def mapped(
    task: Callable[[_Item], _T],
    items: Iterable[_Item],
    count: int,
    context: BaseContext | None = None,
    initializer: Callable[..., object] | None = None,
    initargs: tuple[Any, ...] = (),
) -> Iterator[_T]:
    """The results of `task` for each item, in order, by `count` processes.

    If a process is killed, as when memory runs out, a sentence on stderr says so, and one process fewer does the rest.
    Raises NodeprintError if the last process is killed, too.
    """
    waiting, done = dict(enumerate(items)), dict[int, _T]()
    total, yielded = len(waiting), 0
    count = min(count, total)
    while waiting:
        futures = dict[int, Future[_T]]()
        try:
            with Pool(min(count, len(waiting)), context, initializer, initargs) as pool:
                for number, item in waiting.items():
                    futures[number] = pool.submit(task, item)
                while yielded < total:
                    result = done.pop(yielded) if yielded in done else futures.pop(yielded).result()
                    waiting.pop(yielded, None)
                    yielded += 1
                    yield result
        except BrokenProcessPool as error:
            for number, future in futures.items():
                if future.done() and not future.cancelled() and future.exception() is None:
                    done[number] = future.result()
            waiting = {number: item for number, item in waiting.items() if number not in done}
            count -= 1
            _say_killed(count, error)
    for number in range(yielded, total):
        yield done[number]


def _say_killed(count: int, error: BrokenProcessPool) -> None:
    """Name a process that was killed. Raises NodeprintError where none is left."""
    what = "a process that worked for this command was killed"
    if count < 1:
        advice = "free memory, as the kernel kills what needs more than there is, and call it again"
        raise NodeprintError(what, advice=advice) from error
    others = "1 other process" if count == 1 else f"{count} other processes"
    print(f"nodeprint: {NodeprintError(what, advice=f'{others} will do its part')}", file=sys.stderr, flush=True)


def end_by_signal() -> None:
    """Let SIGTERM end this process as Ctrl-C does, so that it cleans up and its processes end with it."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def _begin(initializer: Callable[..., object] | None, arguments: tuple[Any, ...]) -> None:
    """Begin a process, which leaves its work when it is to end."""
    end_by_signal()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if initializer is not None:
        initializer(*arguments)


def _end_with_parent() -> None:
    """End this process when its parent is gone: a pool that is killed ends none of its processes.

    The task has some seconds to clean up. Then the process exits, because the pool's loop would take the exit for an
    error of the task and wait for the next one.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_TO_CLEAN_UP_S)
        os._exit(1)

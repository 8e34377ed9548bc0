"""A ``map`` over workers for what is repeated with data of its own, and one over threads for rows of shared arrays.

Results come back in order and do not depend on the number of workers: each item carries its own seed.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import as_completed, Executor, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, ExitStack
from functools import cache
from typing import Any, Literal, TypeVar

from threadpoolctl import threadpool_limits

from video2pde.errors import StageError
from video2pde.machine import count_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def count_workers(workers: int | Literal["auto"]) -> int:
    """Resolve the setting ``run.workers``: as given, or one per usable core."""
    return count_cores() if workers == "auto" else workers


def parallel_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int | Literal["auto"] = 1,
    progress: Callable[[int, int], None] | None = None,
    kind: Literal["threads", "processes"] = "processes",
) -> list[Result]:
    """Apply ``function`` to every item, in this process or over ``workers`` threads or processes.

    Threads share the data and suit compiled work that runs without the interpreter's lock; for processes,
    ``function`` and the items must be picklable. Each worker computes with one thread of its own, so that two
    workers on two cores do not fight over them.
    """
    todo = list(items)
    count = min(count_workers(workers), len(todo))
    results: dict[int, Result] = {}
    if count <= 1:
        for index, item in enumerate(todo):
            results[index] = function(item)
            if progress is not None:
                progress(len(results), len(todo))
        return [results[index] for index in range(len(todo))]
    with ExitStack() as stack:
        pool: Executor
        if kind == "threads":
            stack.enter_context(threadpool_limits(1))
            pool = stack.enter_context(ThreadPoolExecutor(count))
        else:
            # spawn, not fork: the parent may hold threads of BLAS, numba or XLA
            context = multiprocessing.get_context("spawn")
            pool = stack.enter_context(ProcessPoolExecutor(count, mp_context=context, initializer=begin_worker))
        futures = {pool.submit(function, item): index for index, item in enumerate(todo)}
        try:
            for future in as_completed(futures):
                results[futures[future]] = future.result()
                if progress is not None:
                    progress(len(results), len(todo))
        except BrokenProcessPool:
            raise StageError(
                f"a worker process died after {len(results)} of {len(todo)} pieces of work (often for want of "
                "memory); run again with --set run.workers=1"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [results[index] for index in range(len(todo))]


def map_threads(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int | Literal["auto", "run"] = "run"
) -> list[Result]:
    """Apply ``function`` to rows of arrays that all share, in threads: compiled work that runs without the lock.

    ``workers``: threads at most, ``"run"`` for as many as :func:`threads_of_run` allows. What one of these threads
    shares out itself it does alone.
    """
    todo = list(items)
    most = min(_Run.threads if workers == "run" else count_workers(workers), len(todo))
    if most <= 1 or getattr(_HERE, "shared_out", False):
        return [function(item) for item in todo]
    results: list[Any] = [None] * len(todo)
    # each thread takes the next item when it is done with one: waking a thread for each takes longer than some take
    numbers = iter(range(len(todo)))

    def work() -> None:
        with _alone():
            try:
                for number in numbers:
                    results[number] = function(todo[number])
            except BaseException:
                for _ in numbers:  # what is left is not begun
                    pass
                raise

    futures = [_threads(most - 1).submit(work) for _ in range(most - 1)]
    try:
        work()
    finally:
        # nothing goes on in arrays that the caller lets go; who has not begun, because others keep it busy, need not
        begun = [future for future in futures if not future.cancel()]
        wait(begun)
    for future in begun:
        future.result()
    return results


class _Run:
    """How many threads a run may take where nobody says a number."""

    threads = 1


@contextmanager
def threads_of_run(workers: int | Literal["auto"]) -> Iterator[None]:
    """Let ``map_threads`` take so many threads within this block."""
    before, _Run.threads = _Run.threads, count_workers(workers)
    try:
        yield
    finally:
        _Run.threads = before


_HERE = threading.local()


@contextmanager
def _alone() -> Iterator[None]:
    """Let this thread do alone what it would share out."""
    _HERE.shared_out = True
    try:
        yield
    finally:
        _HERE.shared_out = False


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    """Return threads that stay: a fit shares work out a thousand times, and starting threads takes as long."""
    return ThreadPoolExecutor(count, thread_name_prefix="video2pde")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)


def begin_worker() -> None:
    """Let this process compute with one thread, and end with the one that started it, however that ends.

    A worker whose starter is killed would wait for work for ever, with all its memory.
    """
    for name in _THREAD_LIMITS:
        os.environ[name] = "1"
    starter = multiprocessing.parent_process()
    if starter is not None:
        threading.Thread(target=_end_with, args=(starter,), daemon=True).start()


def _end_with(starter: Any) -> None:
    starter.join()
    os._exit(1)

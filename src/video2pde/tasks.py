"""Tasks that stand on their own: over processes of this machine, or over a cluster; one that fails stops no other.

A task is a function of one picklable item, which carries its seed and names films by path, so that it gives the same
result wherever it is computed. A worker that dies is replaced and its task begun again; a task that fails twice ends
as :class:`Failed`, with the reason.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

from video2pde.errors import InputError, StageError, Video2pdeError
from video2pde.machine import keep_memory, return_memory
from video2pde.parallel import begin_worker, count_workers

Item = TypeVar("Item")
Result = TypeVar("Result")

TRIES = 2
TICK_SECONDS, POLL_SECONDS = 1.0, 0.05
"""How often progress is told, and a cluster's tasks are looked at."""
PATIENCE_SECONDS = 30.0
"""How long a scheduler may take to answer."""
EXTRA = "video2pde[cluster]"


@dataclass(frozen=True)
class Failed:
    """A task that could not be carried out, and why."""

    reason: str


@dataclass(eq=False)
class Workforce:
    """Who computes: so many processes here, or the workers of the scheduler at an address.

    Inside ``with workforce.stay():`` processes stay from one map to the next; a new one imports for seconds.
    """

    workers: int | Literal["auto"] = 1
    cluster: str | None = None
    _idle: list[ProcessPoolExecutor] | None = field(default=None, init=False, repr=False)

    @contextmanager
    def stay(self) -> Iterator[None]:
        """Keep processes for the maps inside, and end them afterwards."""
        if self._idle is not None:
            yield
            return
        idle = self._idle = []
        try:
            yield
        finally:
            self._idle = None
            _end(idle)

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Callable[[int, int], None] | None = None,
        told: Callable[[str], None] | None = None,
    ) -> list[Result | Failed]:
        """Apply ``function`` to every item, in their order; ``progress`` is called every second, and at the end.

        Parameters
        ----------
        function, items : picklable, unless one worker of this machine does all.
        progress : called with the numbers of tasks done and in all.
        told : given the address of the cluster's dashboard.
        """
        todo = list(items)
        report = progress or (lambda _done, _all: None)
        task = partial(_attempt, function)
        count = min(count_workers(self.workers), len(todo))
        if self.cluster is not None:
            return _over_cluster(task, todo, self.cluster, report, told)
        if count > 1:
            with self.stay():
                assert self._idle is not None
                return _over_processes(task, todo, count, report, self._idle)
        results = list[Result | Failed]()
        with _ticking(lambda: report(len(results), len(todo))):
            for item in todo:
                results.append(_try_here(task, item))
        return results


@contextmanager
def _ticking(tell: Callable[[], None]) -> Iterator[None]:
    """Tell every second how far it is while this process computes, and once more at the end."""
    over = threading.Event()

    def tick() -> None:
        while not over.wait(TICK_SECONDS):
            tell()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    tell()


def _attempt(function: Callable[[Any], Any], item: Any) -> Any:
    """Carry a task out; what is wrong with its input would be so again, and is its result."""
    try:
        return function(item)
    except Video2pdeError as error:
        return Failed(str(error))
    finally:
        return_memory()


def _explain(error: BaseException) -> str:
    return f"unexpected {type(error).__name__}: {error}"


def _try_here(task: Callable[[Any], Any], item: Any) -> Any:
    reason = ""
    for _ in range(TRIES):
        try:
            return task(item)
        except Exception as error:
            reason = _explain(error)
    return Failed(f"{reason}, twice")


# --- this machine ---------------------------------------------------------------------------------------------------


def _over_processes(
    task: Callable[[Any], Any],
    todo: list[Any],
    count: int,
    report: Callable[[int, int], None],
    idle: list[ProcessPoolExecutor],
) -> list[Any]:
    """Let ``count`` threads each feed a process of its own: one that dies takes its own task with it and no other.

    Processes are taken from ``idle`` where there are some, and left there.
    """
    lane, used, taking = threading.local(), list[ProcessPoolExecutor](), threading.Lock()

    def process(instead: bool) -> ProcessPoolExecutor:
        """Return this thread's process, or one instead of it."""
        with taking:
            if instead:
                used.remove(lane.pool)
            if instead or not hasattr(lane, "pool"):
                lane.pool = idle.pop() if idle else _start_process()
                used.append(lane.pool)
        return lane.pool  # type: ignore[no-any-return]

    def work(item: Any) -> Any:
        reason, died = "", False
        for _ in range(TRIES):
            try:
                return process(died).submit(task, item).result()
            except BrokenProcessPool:
                reason, died = "its worker process died (often for want of memory)", True
            except Exception as error:
                reason, died = _explain(error), False
        if died:
            process(instead=True)
        return Failed(f"{reason}, twice")

    with ThreadPoolExecutor(count) as threads:
        futures = [threads.submit(work, item) for item in todo]
        try:
            _watch(futures, report)
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            _end(used)
            raise
    idle += used
    return [future.result() for future in futures]


def _start_process() -> ProcessPoolExecutor:
    # spawn, not fork: this process may hold threads of BLAS, numba or XLA
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=begin_worker)


def _end(processes: list[ProcessPoolExecutor]) -> None:
    for process in processes:
        process.shutdown(wait=False, cancel_futures=True)


def _watch(futures: list[Future[Any]], report: Callable[[int, int], None]) -> None:
    """Report until all are done."""
    left: set[Future[Any]] = set(futures)
    while left:
        report(len(futures) - len(left), len(futures))
        _, left = wait(left, timeout=TICK_SECONDS)
    report(len(futures), len(futures))


# --- a cluster ------------------------------------------------------------------------------------------------------


def _over_cluster(
    task: Callable[[Any], Any],
    todo: list[Any],
    address: str,
    report: Callable[[int, int], None],
    told: Callable[[str], None] | None,
) -> list[Any]:
    """Send the tasks to a scheduler; it gives those of a worker that dies to another one."""
    with _connect(address) as client:
        if told is not None:
            told(f"cluster {address}, dashboard {client.dashboard_link}")
        futures = client.map(partial(_on_a_worker, task), todo, retries=TRIES - 1, pure=False)
        reported = -TICK_SECONDS
        while True:
            _require_scheduler(client, address, futures)
            done = sum(future.done() for future in futures)
            if time.monotonic() - reported >= TICK_SECONDS or done == len(futures):
                report(done, len(futures))
                reported = time.monotonic()
            if done == len(futures):
                return [_collect(future) for future in futures]
            time.sleep(POLL_SECONDS)


def _on_a_worker(task: Callable[[Any], Any], item: Any) -> Any:
    keep_memory()
    return task(item)


def _connect(address: str) -> Any:
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ModuleNotFoundError:
        raise InputError(f"a cluster needs dask.distributed: pip install '{EXTRA}'") from None
    try:
        get_address_host_port(address)  # a client that never had an address takes a minute to end, and complains
        return Client(address, timeout=PATIENCE_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"no scheduler answers at {address} ({str(error)[:200]}); start one, or leave --cluster out"
        ) from None


def _require_scheduler(client: Any, address: str, futures: list[Any]) -> None:
    if client.status not in ("running", "connecting") or any(future.cancelled() for future in futures):
        done = sum(future.status == "finished" for future in futures)
        raise StageError(
            f"the scheduler at {address} was lost after {done} of {len(futures)} tasks; what they finished is kept, "
            "go on with the same command"
        )


def _collect(future: Any) -> Any:
    error = future.exception()
    if error is None:
        return future.result()
    if type(error).__name__ == "KilledWorker":
        return Failed("every worker that it was given to died (often for want of memory)")
    return Failed(f"{_explain(error)}, twice")

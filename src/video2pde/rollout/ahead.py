"""Compile ahead: the kernels of the libraries, in a process of its own, while the recording is read and looked at.

On a new machine a run would stop for each law that it first rolls out, a second or more each, with a core idle beside
it. What is compiled is kept on disk (``kernels``), so that the run finds it there. Once that is done, a file says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version

from video2pde.device import cache_folder
from video2pde.files import write_text
from video2pde.parallel import count_workers
from video2pde.settings import Settings
from video2pde.terms import CATALOGUE, libraries

Laws = Sequence[Sequence[str]]


@contextmanager
def compiled_ahead(settings: Settings, code: str, further: Laws = ()) -> Iterator[None]:
    """Compile the libraries' kernels beside this block, where there is a core for it and they are not there yet.

    ``code``: a hash of the code that writes kernels; ``further``: sets of terms of the catalogue, in their order.
    """
    terms = [tuple(term.name for term in library) for library in libraries(settings).values()]
    laws = [(), *(names for names in terms if all(name in CATALOGUE for name in names)), *further]
    done = f"ahead_{_hash(code, settings.rollout.precision, version('numba'), laws)}"
    alone = count_workers(settings.run.workers) < 2 or settings.run.device == "gpu"
    if alone or not _can_keep() or (cache_folder() / done).exists():
        yield
        return
    command = [sys.executable, "-m", __name__, settings.rollout.precision, done, json.dumps(laws)]
    try:
        beside = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError:  # no process can be started: the run compiles for itself
        yield
        return
    try:
        yield
    finally:
        beside.terminate()
        beside.wait()


def _can_keep() -> bool:
    """Tell whether compiled kernels can be kept: without a folder, a process beside the run would work in vain."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return False
    return os.access(folder, os.W_OK)


def _hash(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def main(precision: str, done: str, laws: str) -> None:
    """Compile kernels one by one, and leave a file once all are there."""
    from video2pde.rollout.driver import compile_loop
    from video2pde.rollout.kernels import compile_kernel, Structure

    for names in json.loads(laws):
        compile_kernel(Structure(tuple(CATALOGUE[name] for name in names), precision=precision))
    compile_loop(precision, "float32")
    with suppress(OSError):
        write_text(cache_folder() / done, "")


if __name__ == "__main__":
    main(*sys.argv[1:])

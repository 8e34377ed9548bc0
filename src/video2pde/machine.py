"""What the machine offers, on every system: cores, memory, and the one refusal of what does not fit.

Every command asks :func:`require_memory` before it allocates what a file or an option has declared, so that a small
file that unpacks to ten gigabytes, or a grid of 20000 × 20000, ends as one line and not as a machine without memory.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from video2pde.errors import InputError

LIMIT = 0.8
"""Share of the available memory that may be planned for."""
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
"""Of glibc's ``mallopt``."""
ARENAS = 2
"""Heaps that threads share. With one for each thread, what every one of them has freed stays with the process: a film
of 1009 frames took 100 to 200 MB more."""
KEPT, LARGE = 2**28, 2**25
"""Bytes that are kept when they are freed, and from which on an array has pages of its own."""
LOGGER = logging.getLogger("video2pde.memory")
CGROUP = Path("/sys/fs/cgroup")


def count_cores() -> int:
    """Count the cores that this process may use; where the system does not say, those that there are."""
    asked = getattr(os, "process_cpu_count", None) or _affinity
    return asked() or os.cpu_count() or 1


def _affinity() -> int | None:
    """Count the cores of this process before Python 3.13; macOS has no such thing."""
    affinity = getattr(os, "sched_getaffinity", None)
    if affinity is not None:
        return len(affinity(0))
    import psutil

    allowed = getattr(psutil.Process(), "cpu_affinity", None)
    return None if allowed is None else len(allowed())


def available_memory() -> int:
    """Return the bytes that this process may still take: the machine's, or the container's if that is less."""
    import psutil

    limits = [int(psutil.virtual_memory().available)]
    allowed, used = _read_number(CGROUP / "memory.max"), _read_number(CGROUP / "memory.current")
    if allowed is not None and used is not None:
        limits.append(max(allowed - used, 0))
    return min(limits)


def require_memory(needed: float, what: str, cure: str, available: int | None = None) -> None:
    """Refuse what would need more than four fifths of the available memory, before it is allocated.

    ``what`` begins the sentence "… need about 12.0 GB of memory" (several things, or one that would), ``cure`` says
    what to do about it. An estimate that fits is told to the logger ``video2pde.memory``.
    """
    free = available_memory() if available is None else available
    if needed > LIMIT * free:
        raise InputError(
            f"{what} need about {_gigabytes(needed)} of memory, and {_gigabytes(free)} are available; {cure}"
        )
    LOGGER.debug("%s need about %.0f bytes of memory", what, needed)


def return_memory() -> bool:
    """Give memory that is free back to the system, where the C library is asked for it (glibc); tell whether it was.

    Between films of different sizes it would keep more and more: 28 runs of one small film grew from 0.7 to 1.5 GB.
    """
    import ctypes

    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (OSError, AttributeError, TypeError):
        return False


def keep_memory() -> bool:
    """Let the C library (glibc) keep what is freed for what is asked for next; tell whether it was told so.

    Dask starts workers with a threshold (``MALLOC_TRIM_THRESHOLD_``) under which every array is fetched from the system
    anew, page by page: studies took 20 to 37 % longer. What is free is given back between tasks (``return_memory``).
    """
    return _set_malloc({TRIM_THRESHOLD: KEPT, MMAP_THRESHOLD: LARGE})


def share_heaps() -> bool:
    """Let threads that begin from now on share a few heaps (glibc), so that less of what is freed is held back."""
    return _set_malloc({ARENA_MAX: ARENAS})


def _set_malloc(options: dict[int, int]) -> bool:
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
        return all(mallopt(option, value) for option, value in options.items())
    except (OSError, AttributeError, TypeError):
        return False


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size < 1e15 else f"{size / 1e9:.0e} GB"


def _read_number(path: Path) -> int | None:
    """Read a limit of the container; None where there is none ("max", or no such file)."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None

"""JAX and its device: compiled programs that are kept on disk, double precision, arrays that stay there.

Everything that may run on a GPU asks here, so that nothing else knows how JAX is set up. JAX takes a second to load:
it is imported where it is used.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np

from video2pde.errors import InputError

Device = Literal["cpu", "gpu"]

LEAST_COMPILED_S = 0.0
"""Seconds of compilation from which on a program is kept on disk: every one, since a run compiles hundreds of small
ones, 40 ms each (13 s of a run on an H200)."""

WORTH_IT = 2**14
"""Cells of a picture from which on a GPU should be faster than the cores beside it, even for a single rollout.

With 40,000 cells one of 605 frames takes an H200 65 ms, mostly for calls of kernels, and the CPU 0.16 s, which grows
with the cells (``python -m benchmarks gpu``); many rollouts together are worth it earlier.
"""

_RESIDENT: dict[int, Any] = {}


def cache_folder() -> Path:
    """Return the folder of compiled kernels: ``$VIDEO2PDE_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("VIDEO2PDE_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "video2pde" / "kernels"


@lru_cache(maxsize=1)
def load_jax() -> Any:
    """Load JAX, which keeps what it compiles in the folder of compiled kernels, unless it is told another place."""
    jax: Any = import_module("jax")
    if jax.config.jax_compilation_cache_dir is None:
        try:
            folder = cache_folder() / "jax"
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError):  # nothing can be written: compiled in memory, every time
            return jax
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_COMPILED_S)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return jax


@lru_cache(maxsize=1)
def find_gpu() -> str | None:
    """Return the name of the GPU that JAX finds; None where there is none, or no JAX."""
    try:
        return str(load_jax().devices("gpu")[0].device_kind)
    except (ImportError, RuntimeError):
        return None


def choose_device(asked: str, cells: int) -> Device:
    """Turn the setting ``run.device`` into a device, for pictures of so many cells.

    ``auto`` is a GPU where JAX finds one and pictures are large enough for it; ``gpu`` without one is refused.
    """
    if asked == "auto":
        return "gpu" if cells >= WORTH_IT and find_gpu() else "cpu"
    if asked == "gpu" and find_gpu() is None:
        raise InputError("JAX finds no gpu here; set run.device = 'cpu' or install a JAX with support for it")
    return "gpu" if asked == "gpu" else "cpu"


def explain_device(chosen: Device, cells: int) -> str:
    """Say why ``auto`` has chosen a device."""
    if chosen == "gpu":
        return f"run.device = 'auto': on {find_gpu()}, for pictures of {cells} cells ({WORTH_IT} or more)"
    why = "JAX finds no GPU" if cells >= WORTH_IT else f"pictures of {cells} cells are too small for a GPU"
    return f"run.device = 'auto': on the CPU, {why}"


@contextmanager
def double() -> Iterator[None]:
    """Let JAX compute in double precision as long as this lasts, in this thread; as a decorator, in a function."""
    with load_jax().enable_x64(True):
        yield


def namespace(values: Any) -> Any:
    """Return what computes with an array: NumPy, or JAX's counterpart of it."""
    return np if isinstance(values, np.ndarray) else load_jax().numpy


def to_host(values: Any) -> Any:
    """Return an array where NumPy has it; one that is there already is handed back."""
    return values if isinstance(values, np.ndarray) else np.asarray(values)


def resident(values: Any) -> Any:
    """Put an array on JAX's device, once as long as it lives: a recording is asked for at every step of a fit.

    One that is there already is handed back.
    """
    if not isinstance(values, np.ndarray):
        return values
    key = id(values)
    if key not in _RESIDENT:
        _RESIDENT[key] = load_jax().numpy.asarray(values)
        weakref.finalize(values, _RESIDENT.pop, key, None)
    return _RESIDENT[key]

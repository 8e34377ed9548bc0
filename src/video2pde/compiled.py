"""The one ``njit``: compiled code is kept on disk between runs, and a kept file that is damaged is mended.

A power cut leaves Numba's files empty or cut short, and a full disk takes no new ones. Neither may end a run: the
function is compiled again, which costs a second or two, and the damaged files are replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numba
from numba.core.caching import FunctionCache

LOGGER = logging.getLogger("video2pde.compiled")


def njit(*, cache: bool = True, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function without the interpreter when it is first called; options are those of ``numba.njit``."""

    def compile_later(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(**options)(function)
        if cache:
            try:
                compiled._cache = _MendingCache(function)
            except (RuntimeError, OSError) as error:  # no folder can be written: compile in memory, every time
                LOGGER.info("compiled code is not kept: %s", error)
        return compiled

    return compile_later


def remember_address(function: Any, signature: Any) -> None:
    """Let numba look up once where a compiled function lies that is given to others as an argument.

    It does so at every call, with the interpreter held: 0.3 ms for a law's two functions, as long as two frames take.
    Threads wait for each other there, and the more of them there are, the longer.
    """
    compiled = function.get_compile_result(signature)
    find = cache(compiled.library.get_pointer_to_function)
    known = SimpleNamespace(fndesc=compiled.fndesc, library=SimpleNamespace(get_pointer_to_function=find))
    function.get_compile_result = lambda _: known


class _MendingCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of a function's compiled code, in which a damaged file counts as none."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # whatever unpickling a cut-off file may raise
            LOGGER.info("%s is damaged and made anew (%s)", self._cache_file._index_path, type(error).__name__)
            self._save(self._cache_file.flush)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:
            LOGGER.info("%s cannot be written and is made anew (%s)", self._cache_file._index_path, error)
            self._save(self._cache_file.flush)
            self._save(lambda: super(_MendingCache, self).save_overload(sig, data))

    def _save(self, write: Callable[[], None]) -> None:
        try:
            write()
        except Exception as error:  # a full disk: what was compiled stays in memory
            LOGGER.info("compiled code is not kept: %s", error)

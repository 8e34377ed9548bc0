"""Names that a package loads on first use, so that importing it costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def load_on_use(package: str, homes: Mapping[str, str], namespace: dict[str, Any]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package whose names live in modules of it.

    Parameters
    ----------
    package : its ``__name__``.
    homes : the module, below the package, of each name.
    namespace : its ``globals()``, which keep what has been loaded.

    Examples
    --------
    >>> find = load_on_use("video2pde", {"Estimate": "estimate"}, {})
    >>> find("Estimate").__name__
    'Estimate'
    >>> find("estimate_all")
    Traceback (most recent call last):
        ...
    AttributeError: module 'video2pde' has no attribute 'estimate_all'
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = getattr(import_module(f"{package}.{homes[name]}"), name)
        return namespace[name]

    return find

"""The code behind a stage: a hash of the modules that compute it, so that an edited stage is computed again.

A module uses another one of this package by importing from it, anywhere in its source but for the sake of types alone.
A name that a package hands on from one of its modules leads to that module. Comments, docstrings and layout do not
count.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import video2pde
from video2pde.device import cache_folder
from video2pde.errors import StageError
from video2pde.files import write_text

PACKAGE = "video2pde"
NO_CODE = frozenset({PACKAGE, f"{PACKAGE}.settings"})
"""What needs no hash: the package itself only hands names on, and settings count by their values."""
KEPT = "code.json"
"""The file of kept hashes, in the folder of compiled kernels."""


@lru_cache(maxsize=64)
def hash_code(module: str) -> str:
    """Hash a module and all of this package that it uses, directly or through others.

    Parsing the package takes seconds: hashes are kept beside the compiled kernels for as long as no source changes.

    Parameters
    ----------
    module : full name, such as ``video2pde.stages.drift``.

    Returns
    -------
    SHA-256 over the names and the syntax trees, docstrings left out.
    """
    sources = _hash_sources()
    known = _read_kept(sources)
    if module not in known:
        digest = hashlib.sha256()
        for name in sorted(used_modules(module)):
            digest.update(f"{name}\0{_tree(name)}\0".encode())
        # read again: other processes keep theirs in the same file
        known = {**_read_kept(sources), module: digest.hexdigest()}
        _keep(sources, known)
    return known[module]


@lru_cache(maxsize=1)
def _hash_sources() -> str:
    """Hash every source of this package as it lies on the disk, and the Python that parses it."""
    digest = hashlib.sha256(sys.version.encode())
    for folder in map(Path, video2pde.__path__):
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _read_kept(sources: str) -> dict[str, str]:
    """Return the hashes that were kept for these sources, by module."""
    try:
        kept = json.loads((cache_folder() / KEPT).read_text(encoding="utf-8"))
        return {str(name): str(value) for name, value in kept["hashes"].items()} if kept["sources"] == sources else {}
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _keep(sources: str, hashes: dict[str, str]) -> None:
    """Keep hashes for the next process; without a folder that can be written they are computed each time."""
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        write_text(cache_folder() / KEPT, json.dumps({"sources": sources, "hashes": hashes}))
    except (OSError, RuntimeError):
        return


@lru_cache(maxsize=512)
def _tree(module: str) -> str:
    """Write a module's syntax tree out: most modules are used by several stages."""
    return ast.dump(_parse(module))


def used_modules(module: str) -> set[str]:
    """Name the module and every module of this package that it uses, directly or through others."""
    found: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in found and name not in NO_CODE:
            found.add(name)
            todo += _imports(name)
    return found


@lru_cache(maxsize=512)
def _imports(module: str) -> tuple[str, ...]:
    """Name the modules of this package that a module's source imports from."""
    return tuple(dict.fromkeys(_targets(_without_types(_parse(module)))))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Return a node and the statements in it, at every depth: imports and definitions are no expressions."""
    yield node
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, part, ()):
            yield from _statements(child)


def _targets(tree: ast.AST) -> Iterator[str]:
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE:
            yield from (_home(node.module, alias.name) for alias in node.names)


@lru_cache(maxsize=2048)
def _home(module: str, name: str) -> str:
    """Find the module that defines what ``from module import name`` gives."""
    if _source(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    if not _is_package(module):
        return module
    # what a package imports for types alone counts here: that is where lazily loaded names say where they live
    for node in _statements(_parse(module)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{PACKAGE}."):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _home(node.module, alias.name)
    return module


@lru_cache(maxsize=512)
def _parse(module: str) -> ast.Module:
    """Parse a module's source, without its docstrings."""
    source = _source(module)
    if source is None:
        raise StageError(f"the source of {module} is missing; install video2pde again")
    tree = ast.parse(source)
    for node in list(_statements(tree)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _without_types(tree: ast.Module) -> ast.Module:
    """Leave out what stands under ``if TYPE_CHECKING``."""
    kept = [n for n in tree.body if not (isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")]
    return ast.Module(kept, tree.type_ignores)


def _source(module: str) -> str | None:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # a name inside a module, not a module
        return None
    loader = None if spec is None else spec.loader
    return loader.get_source(module) if loader is not None and hasattr(loader, "get_source") else None


def _is_package(module: str) -> bool:
    spec = find_spec(module)
    return spec is not None and spec.submodule_search_locations is not None

"""Outputs that are whole or absent: files are prepared beside their place and moved there at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from video2pde.errors import InputError


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Return an empty folder whose files move into ``target`` only if the block succeeds.

    It is made at once, in the nearest folder above ``target`` that exists, so that a place that cannot be written
    to is refused before any work is done.
    """
    try:
        if target.exists() and not target.is_dir():
            raise InputError(f"cannot write into {target}: it is a file, not a folder")
        above = next(folder for folder in target.absolute().parents if folder.exists())
        beside = target if target.is_dir() else above
        _remove_leftovers(beside)
        folder = Path(tempfile.mkdtemp(prefix=f".video2pde-{os.getpid()}-", dir=beside))
    except OSError as error:
        raise InputError(f"cannot write into {target}: {error.strerror or error}") from None
    try:
        yield folder
        _move_into(folder, target)
    except OSError as error:
        raise InputError(f"cannot write into {target}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_leftovers(beside: Path) -> None:
    """Remove what a process that was killed has left here; the folder's name tells which process made it."""
    import psutil

    for folder in beside.glob(".video2pde-*-*"):
        process = folder.name.split("-")[1]
        if process.isdigit() and not psutil.pid_exists(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def _move_into(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.is_dir():
            _move_into(path, target / path.name)
        else:
            os.replace(path, target / path.name)

"""Files: written whole or not at all, and read only where they are files and fit into memory."""

from __future__ import annotations

import json
import math
import os
import stat
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, IO

from video2pde.errors import InputError
from video2pde.machine import require_memory

RETRIES = (0.02, 0.05, 0.1, 0.3)
"""Seconds to wait before a file is moved into its place once more."""


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Return a temporary path beside ``target`` that replaces it only if the block succeeds."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        _replace(temporary, target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _replace(source: Path, target: Path) -> None:
    """Move a file into its place; on Windows a reader that has the old one open holds that up for a moment."""
    for wait in RETRIES:
        try:
            os.replace(source, target)
            return
        except PermissionError:
            time.sleep(wait)
    os.replace(source, target)


@contextmanager
def atomic_write(target: Path) -> Iterator[IO[bytes]]:
    """Open ``target`` for binary writing so that a failure leaves what was there before."""
    with atomic_path(target) as temporary, temporary.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_text(target: Path, text: str) -> Path:
    """Write a text file in UTF-8, whole or not at all."""
    with atomic_write(target) as file:
        file.write(text.encode("utf-8"))
    return target


def json_text(value: Any) -> str:
    """Write a value as JSON for people to read; NaN and infinity, unknown to JSON, become null.

    Examples
    --------
    >>> print(json_text({"rrmse": float("nan")}), end="")
    {
      "rrmse": null
    }
    """
    return json.dumps(plain_json(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def plain_json(value: Any) -> Any:
    """Replace numbers that JSON cannot hold by null, and NumPy's by Python's."""
    if isinstance(value, Mapping):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def require_regular(path: Path) -> None:
    """Refuse what is no plain file or folder: a pipe or a device would be read without end."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{path} is not a file but a pipe or a device; copy what it gives into a file first")


def require_unpacked(path: Path) -> None:
    """Refuse an archive that unpacks to more than memory holds, by what its directory declares."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    require_memory(size, f"{path} unpacked would", "cut the recording into parts, or save fewer frames of it")

"""Files that are dropped on the page: streamed to the disk beside their place, and moved there once they are whole."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

import anyio.to_thread

from video2pde.errors import InputError
from video2pde.recording.source import KNOWN_SUFFIXES
from video2pde.studio.folder import Folder

RESERVE = 200_000_000
"""Bytes that stay free on the disk: a run needs room, too."""
STEP = 4_000_000
FORBIDDEN = re.compile(r"[\x00-\x1f\x7f/\\]")


class DiskFullError(InputError):
    """The disk has no room for what is being sent."""


def clean_name(name: str) -> str:
    """Return the name under which a dropped file is kept; refuse what is no recording."""
    clean = FORBIDDEN.sub("_", PurePosixPath(name.replace("\\", "/")).name).strip().lstrip(".")
    if not clean or len(clean.encode()) > 200:
        raise InputError("this file has no name that can be kept; rename it first")
    if PurePosixPath(clean).suffix.lower() not in KNOWN_SUFFIXES:
        known = ", ".join(suffix[1:] for suffix in KNOWN_SUFFIXES)
        raise InputError(f"'{clean}' is not a kind of recording that can be read; known are: {known}")
    return clean


async def receive(folder: Folder, name: str, declared: int | None, chunks: AsyncIterator[bytes]) -> str:
    """Write a file as it arrives; it appears in the folder when its last byte has, and not at all if it does not.

    ``declared``: the bytes that the sender announced, None where it did not.
    """
    clean = clean_name(name)
    _require_room(folder.root, declared or 0)
    handle, temporary = tempfile.mkstemp(prefix=".upload-", dir=folder.root)
    arrived = waiting = 0
    try:
        with os.fdopen(handle, "wb") as file:
            async for chunk in chunks:
                await anyio.to_thread.run_sync(file.write, chunk)
                arrived += len(chunk)
                waiting += len(chunk)
                if waiting > STEP:
                    waiting = 0
                    _require_room(folder.root, 0)
        if declared is not None and arrived != declared:
            raise InputError(f"only {arrived} of {declared} bytes of '{clean}' arrived; drop it again")
        if arrived == 0:
            raise InputError(f"'{clean}' is empty")
        target = folder.free_name(clean)
        os.link(temporary, target)  # unlike a rename it never replaces what has appeared there meanwhile
        return folder.name(target)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFullError(f"the disk is full: '{clean}' was not kept; make room and drop it again") from None
        raise InputError(f"'{clean}' cannot be written: {error.strerror or error}") from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def _require_room(root: Path, wanted: int) -> None:
    free = shutil.disk_usage(root).free
    if wanted + RESERVE > free:
        raise DiskFullError(
            f"the disk has {free / 1e9:.1f} GB free, and {wanted / 1e9:.1f} GB and some room for runs are needed; "
            "make room and drop the file again"
        )

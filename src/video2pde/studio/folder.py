"""The folder that is open in the studio: every path that a page names is relative to it and stays inside it."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from video2pde.errors import InputError

HIDDEN = "."
OWN = ".video2pde-studio"
"""Folder for what the studio itself must remember: its queue."""
NAME_BYTES = 200


class OutsideError(InputError):
    """A path leads out of the folder that is open, or to something that is no file or folder."""


class Folder:
    """Turn names from a page into paths inside one folder, and back."""

    def __init__(self, root: Path) -> None:
        try:
            self.root = root.resolve(strict=True)
        except OSError as error:
            raise InputError(f"cannot open {root}: {error.strerror or error}") from None
        if not self.root.is_dir():
            raise InputError(f"{root} is not a folder; give the folder that holds your recordings")

    @property
    def own(self) -> Path:
        """The studio's own files, made when first needed."""
        path = self.root / OWN
        path.mkdir(exist_ok=True)
        return path

    def place(self, name: str) -> Path:
        """Return the path that ``name`` means, whether or not there is something; refuse one that leaves the folder."""
        parts = PurePosixPath(name).parts
        bad = not parts or name.startswith("/") or "\\" in name or "\0" in name
        if bad or any(part in ("..", ".") or part.startswith(HIDDEN) for part in parts):
            raise OutsideError(f"'{name[:NAME_BYTES]}' does not name anything inside the folder that is open")
        path = self.root.joinpath(*parts)
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self.root):
            raise OutsideError(f"'{name[:NAME_BYTES]}' is a link that leads out of the folder that is open")
        return path

    def find(self, name: str) -> Path:
        """Return the path of a file or folder that is there."""
        path = self.place(name)
        try:
            mode = path.stat().st_mode
        except OSError:
            raise InputError(
                f"there is no '{name[:NAME_BYTES]}' in the folder any more; look at the library again"
            ) from None
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise OutsideError(f"'{name[:NAME_BYTES]}' is neither a file nor a folder")
        return path

    def name(self, path: Path) -> str:
        """Return the name by which a page knows a path."""
        return path.relative_to(self.root).as_posix()

    def version(self, path: Path) -> str:
        """Return a text that changes when the file is replaced."""
        found = path.stat()
        return f"{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ino:x}"

    def free_name(self, wanted: str) -> Path:
        """Return a path for a new file or folder beside the others: ``wanted``, or with a number before its suffix."""
        path = self.place(wanted)
        number = 2
        while path.exists() or path.is_symlink():
            path = self.place(str(PurePosixPath(wanted).with_name(_numbered(PurePosixPath(wanted), number))))
            number += 1
        return path


def _numbered(path: PurePosixPath, number: int) -> str:
    return f"{path.stem}-{number}{path.suffix}"

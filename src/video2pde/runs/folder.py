"""The run folder: each stage's artefact under the key it was made with, one process at a time, and a log.

    DIR/.lock           held by the process that works here; .lock-holder says which one
    DIR/log.txt         everything that was told, with its time; later runs add to it
    DIR/stages/NN-name.npz

What a stage gives back has always been read from its file, also when it was computed a moment ago. So a run that
was killed and continued works on exactly the same values as one that was not.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

from filelock import FileLock, Timeout

from video2pde import __version__
from video2pde.errors import InputError, Video2pdeError
from video2pde.files import json_text, write_text
from video2pde.runs.archive import load_artefact, read_meta, save_artefact
from video2pde.runs.events import Events, QuietEvents
from video2pde.runs.keys import plain, stage_key
from video2pde.settings import load_settings, Settings

__all__ = ["Keep", "RunFolder", "Stage", "stage_key"]

Artefact = TypeVar("Artefact")
Keep = Callable[[str, Callable[[], Any]], Any]
"""Keeps a part of a stage by its name: read where it is there, else computed and written."""

STAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
LOGGED = ("video2pde", "py.warnings")
STANDING = "stages/standing.json"
"""Keys by stage of what this run has loaded or computed so far: an artefact with another key is an older run's."""


FILM = "stages/film.json"
"""The film that the folder belongs to."""
RESULT, MODEL, PAGE = "result.json", "model.json", "report.html"
SETTINGS = "settings.toml"
PUBLISHED = {"": (RESULT, MODEL, PAGE), "figures": ("*.png", "*.pdf"), "tables": ("*.csv", "*.tex")}
"""What a run shows when it has ended: folders, and the files in them that are its own."""
WORKED_ON = {"": (SETTINGS,), "stages": ("*.npz", "*.json")}
"""What a run goes on from."""


class FolderInUse(InputError):
    """Another process works in the folder."""


class Stage(NamedTuple, Generic[Artefact]):
    """A stage's artefact, the seconds that it took to compute, and whether that was in an earlier run."""

    artefact: Artefact
    seconds: float
    cached: bool


class RunFolder:
    """Open the folder of a run for this process alone, and keep its stages.

    Parameters
    ----------
    path : the folder; it is made where it does not exist.
    events : who is told about an artefact that had to be given up; the log is, in any case.
    """

    def __init__(self, path: str | os.PathLike[str], events: Events | None = None) -> None:
        self.path = Path(path)
        self.stages = self.path / "stages"
        self._events = events or QuietEvents()
        self._names: list[str] = []
        self._withdrawn = False
        self._lock = _open_locked(self.path, self.stages)
        try:
            _remove_leftovers(self.path)
            self._log = _start_log(self.path / "log.txt")
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            logging.getLogger(LOGGED[0]).error("stopped by %s: %s", type(error).__name__, error, exc_info=error)
        self.close()

    def close(self) -> None:
        """Let the folder go; another process may use it from now on."""
        for name in LOGGED:
            logging.getLogger(name).removeHandler(self._log)
        self._log.close()
        (self.path / ".lock-holder").unlink(missing_ok=True)
        self._lock.release()

    def claim(self, film: Mapping[str, str], overwrite: bool = False) -> None:
        """Make this the folder of one film; a second one needs ``overwrite``, or a folder of its own.

        ``film``: its ``name``, and what tells it from others, ``sha256``.
        """
        path = self.path / FILM
        try:
            owner = json.loads(path.read_text(encoding="utf-8"))
            name, known = str(owner["name"]), owner["sha256"] == film["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            name, known = "", True  # a new folder, or one from before folders belonged to a film
        if not known and not overwrite:
            raise InputError(
                f"{self.path} holds the run of another film, {name}; give another --out, or --overwrite to begin anew"
            )
        if overwrite:
            self._clear()
        self.write_json(FILM, dict(film))

    def begin(self, settings: Settings) -> None:
        """Enter the settings; what was found with others is withdrawn first, so that it never stands beside these."""
        if not self._has(settings):
            self._withdraw()
        self.write_json(STANDING, {})
        self.write_text(SETTINGS, settings.to_toml())

    def _has(self, settings: Settings) -> bool:
        """Tell whether these settings, but for the number of workers, are those of the folder."""
        try:
            return bool(plain(load_settings(file=self.path / SETTINGS)) == plain(settings))
        except Video2pdeError:
            return False  # a new folder, or settings of another version

    def _withdraw(self) -> None:
        """Remove the result, the law and all that shows them: the run is unfinished again."""
        self._remove(PUBLISHED)
        # from here on, what is there is of this run: figures may be drawn while it goes on
        self._withdrawn = True

    def _clear(self) -> None:
        """Remove what a run leaves behind, and nothing else."""
        self._remove(PUBLISHED)
        self._remove(WORKED_ON)

    def _remove(self, names: Mapping[str, Sequence[str]]) -> None:
        for folder, patterns in names.items():
            for pattern in patterns:
                for file in (self.path / folder).glob(pattern):
                    try:
                        file.unlink()
                    except OSError as error:
                        raise _not_writable(file, error) from None

    def stage(
        self,
        name: str,
        key: str,
        compute: Callable[[], Artefact],
        *,
        accepts: Callable[[Any], bool] = lambda _: True,
        beside: bool = False,
    ) -> Stage[Artefact]:
        """Return the stage's artefact: from its file where ``key`` fits, else computed and written.

        Parameters
        ----------
        name : short name, also in the file's name.
        key : see ``keys.stage_key``.
        compute : makes the artefact.
        accepts : tells whether an artefact is one of this stage; a file with anything else in it is not used.
        beside : nothing that the run shows was made from this stage: it stays while the stage is computed.
        """
        path = self._place(name)
        self._names.append(name)
        found: Stage[Artefact] | None = self._load(path, name, key, accepts)
        if found is None:
            if not beside and not self._withdrawn:
                self._withdraw()  # it came from an artefact that is replaced now
            seconds = self._compute(path, name, key, compute)
            for part in self.stages.glob(f"{name}-part-*.npz"):
                part.unlink()
            return Stage(load_artefact(path), seconds, cached=False)
        return found

    def has(self, name: str, key: str) -> bool:
        """Tell whether the folder holds a stage's artefact under this key, wherever in the order it was made."""
        for path in self.stages.glob(f"[0-9][0-9]-{name}.npz"):
            try:
                if read_meta(path).get("key") == key:
                    return True
            except InputError:
                continue  # damaged: it is computed again
        return False

    def keep_parts(self, name: str, key: str) -> Keep:
        """Return what keeps the parts of a stage while it goes on, so that an interrupted stage repeats none of them.

        The parts go with the stage's key, and are removed once the whole is written.
        """

        def keep(part: str, compute: Callable[[], Any]) -> Any:
            path = self.stages / f"{name}-part-{part}.npz"
            found: Stage[Any] | None = self._load(path, f"{name}, {part}", f"{key} {part}", lambda _: True)
            if found is None:
                self._compute(path, name, f"{key} {part}", compute)
                return load_artefact(path)
            return found.artefact

        return keep

    def write_text(self, name: str, text: str) -> Path:
        """Write a text file of the run, whole or not at all."""
        path = self.path / name
        _make_folder(path.parent)
        return write_text(path, text)

    def write_json(self, name: str, value: Any) -> Path:
        """Write a JSON file of the run, whole or not at all; NaN and infinity, unknown to JSON, become null."""
        return self.write_text(name, json_text(value))

    def _compute(self, path: Path, name: str, key: str, compute: Callable[[], Any]) -> float:
        """Compute and write an artefact; it is let go on return, before its file is read."""
        started = time.perf_counter()
        artefact = compute()
        seconds = time.perf_counter() - started
        save_artefact(path, artefact, {"stage": name, "key": key, "seconds": seconds, "version": __version__})
        return seconds

    def _load(self, path: Path, name: str, key: str, accepts: Callable[[Any], bool]) -> Stage[Artefact] | None:
        """Read the stage's file if there is one with this key; one that cannot be used is told, and replaced later."""
        if not path.exists():
            return None
        try:
            meta = read_meta(path)
            if meta.get("key") != key:
                return None
            artefact = load_artefact(path)
            if not accepts(artefact):
                raise InputError(f"{path} holds a {type(artefact).__name__}, which is none of this stage's")
            return Stage(artefact, float(meta["seconds"]), cached=True)
        except (InputError, KeyError, TypeError, ValueError) as error:
            self._events.note(f"stage '{name}' is computed again: {error}")
            return None

    def _place(self, name: str) -> Path:
        """Return the stage's file, numbered by the order of the calls; one that has another number is moved there."""
        if not STAGE_NAME.fullmatch(name) or name in self._names:
            raise ValueError(f"'{name}' cannot name a stage, or names two")
        path = self.stages / f"{len(self._names) + 1:02d}-{name}.npz"
        pattern = re.compile(rf"\d{{2,}}-{re.escape(name)}\.npz")
        for other in sorted(self.stages.iterdir()):
            if other != path and pattern.fullmatch(other.name):
                if path.exists():
                    other.unlink()
                else:
                    other.rename(path)
        return path


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"cannot write into {path}: it is, or lies in, a file; choose another --out") from None
    except OSError as error:
        raise _not_writable(path, error) from None


def _open_locked(path: Path, stages: Path) -> FileLock:
    """Make the folder and take its lock; the lock goes with the process, however that ends."""
    _make_folder(path)
    holder = path / ".lock-holder"
    lock = FileLock(path / ".lock", timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        try:
            who = f"process {int(holder.read_text(encoding='ascii'))}"
        except (OSError, ValueError):
            who = "another process"
        raise FolderInUse(f"{path} is in use by {who}; wait for it or choose another --out") from None
    except OSError as error:
        raise _not_writable(path, error) from None
    try:
        _make_folder(stages)
        # beside the lock, which other processes cannot read on Windows
        holder.write_text(f"{os.getpid()}\n", encoding="ascii")
    except OSError as error:
        lock.release()
        raise _not_writable(path, error) from None
    except BaseException:
        lock.release()
        raise
    return lock


def _not_writable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot write into {path}: {error.strerror or error}; choose another --out")


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files of a process that was killed while it wrote: ``.NAME.XXXXXXXX.SUFFIX``."""
    for folder in (path, path / "stages", path / "figures", path / "tables"):
        for file in folder.iterdir() if folder.is_dir() else ():
            match = re.fullmatch(r"\.(.+)\.[a-z0-9_]{8}(\.\w+)", file.name)
            if match and Path(match[1]).suffix == match[2] and file.is_file():
                file.unlink(missing_ok=True)


class _LogFile(logging.FileHandler):
    """Write the log; a disk that is full is told by the artefact that does not fit, not by the log."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002
        return


def _start_log(path: Path) -> logging.Handler:
    try:
        handler = _LogFile(path, encoding="utf-8")
    except OSError as error:
        raise _not_writable(path, error) from None
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    for name in LOGGED:
        logging.getLogger(name).addHandler(handler)
    logger = logging.getLogger(LOGGED[0])
    logger.setLevel(logging.DEBUG)
    logger.info("video2pde %s, process %d", __version__, os.getpid())
    return handler

"""Other systems, as far as they can be had here: modules, calls and habits of Windows and macOS in place of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from video2pde import files, machine
from video2pde.errors import InputError
from video2pde.files import write_text
from video2pde.machine import count_cores
from video2pde.recording.source import open_recording
from video2pde.rollout.kernels import cache_folder

POSIX_ALONE = ("fcntl", "resource", "pwd", "grp", "termios")
WITHOUT_POSIX = f"""
import os, sys, psutil  # the build for Linux needs what is taken away here, the one for Windows does not
for name in {POSIX_ALONE!r}:
    sys.modules[name] = None
for name in ("fork", "sched_getaffinity", "geteuid", "process_cpu_count", "pread", "pwrite"):
    if hasattr(os, name):
        delattr(os, name)
"""


def run_without_posix(code: str, folder: Path) -> str:
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_POSIX + code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_module_can_be_imported_without_what_only_posix_has(tmp_path: Path) -> None:
    code = """
import importlib, pkgutil, video2pde
names = [m.name for m in pkgutil.walk_packages(video2pde.__path__, "video2pde.") if "__main__" not in m.name]
for name in names:
    importlib.import_module(name)
print(len(names))
"""
    assert int(run_without_posix(code, tmp_path)) > 100


def test_a_run_folder_is_locked_without_fcntl(tmp_path: Path) -> None:
    code = """
from video2pde.errors import InputError
from video2pde.machine import available_memory, count_cores
from video2pde.runs.folder import RunFolder
with RunFolder("run") as folder:
    folder.write_json("result.json", {"a": 1})
    try:
        RunFolder("run")
    except InputError as error:
        print(error)
with RunFolder("run"):
    print(count_cores() >= 1, available_memory() > 0)
"""
    lines = run_without_posix(code, tmp_path).splitlines()
    assert "is in use by process" in lines[0]
    assert lines[1] == "True True"


def test_cores_are_counted_on_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "process_cpu_count", lambda: 5, raising=False)  # Python 3.13 and later
    assert count_cores() == 5
    monkeypatch.delattr(os, "process_cpu_count")
    if hasattr(os, "sched_getaffinity"):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})  # Linux
        assert count_cores() == 3
        monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _: [0, 3], raising=False)  # Windows
    assert count_cores() == 2
    monkeypatch.delattr(psutil.Process, "cpu_affinity")  # macOS
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert count_cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert count_cores() == 1


def test_memory_is_known_without_proc_and_cgroups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "CGROUP", tmp_path / "none")
    assert machine.available_memory() > 1e7


@pytest.mark.parametrize(
    ("system", "variable", "end"),
    [
        ("win32", "LOCALAPPDATA", ("video2pde", "kernels")),
        ("linux", "XDG_CACHE_HOME", ("video2pde", "kernels")),
        ("darwin", None, ("Library", "Caches", "video2pde", "kernels")),
    ],
)
def test_compiled_kernels_lie_where_the_system_keeps_caches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: str, variable: str | None, end: tuple[str, ...]
) -> None:
    monkeypatch.delenv("VIDEO2PDE_CACHE", raising=False)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path))
    assert cache_folder() == tmp_path.joinpath(*end)


def test_a_file_that_a_reader_holds_open_is_replaced_a_moment_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "result.json").write_text("old")
    held = [PermissionError(13, "used by another process")] * 2
    replace = os.replace

    def refuse_twice(source: object, target: object) -> None:
        if held:
            raise held.pop()
        replace(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(files.os, "replace", refuse_twice)
    monkeypatch.setattr(files, "RETRIES", (0.0, 0.0, 0.0))
    write_text(tmp_path / "result.json", "new")
    assert (tmp_path / "result.json").read_text() == "new"
    held = [PermissionError(13, "used by another process")] * 9
    with pytest.raises(InputError, match="used by another process"):
        write_text(tmp_path / "result.json", "newer")
    assert (tmp_path / "result.json").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_text_has_the_same_newlines_everywhere(tmp_path: Path) -> None:
    assert write_text(tmp_path / "a.toml", "a = 1\nb = 2\n").read_bytes() == b"a = 1\nb = 2\n"


def test_names_in_capitals_are_the_same_kinds(tmp_path: Path) -> None:
    for name, kind in {"A.NPY": "ArrayFile", "B.Tif": "Stack", "C.MP4": "Film", "D.GIF": "Gif"}.items():
        (tmp_path / name).write_bytes(b"x")
        assert type(open_recording(tmp_path / name)).__name__ == kind


def test_workers_are_spawned_from_a_script_and_from_python_m(tmp_path: Path) -> None:
    """On Windows and macOS every worker is a new process that imports the main module again."""
    (tmp_path / "script.py").write_text(
        "from math import sqrt\nfrom video2pde.parallel import parallel_map\n"
        "if __name__ == '__main__':\n    print(parallel_map(sqrt, [1.0, 4.0, 9.0], 2))\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1.0, 2.0, 3.0]"
    # what a worker of `python -m video2pde` imports: the command must not start again in it
    for module in ("video2pde.__main__", "video2pde.cli.__main__"):
        code = f"import runpy; runpy.run_module({module!r}, run_name='__mp_main__'); print('quiet')"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.strip() == "quiet"


@pytest.mark.parametrize("module", ["jax", "av", "matplotlib", "tifffile", "PIL"])
def test_a_package_that_is_missing_is_named_in_one_line(module: str, tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules[{module!r}] = None
import importlib.util
known = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == {module!r} else known(name, *more)
from video2pde.cli import main
import numpy as np
np.save("film.npy", np.random.default_rng(0).random((20, 16, 16)))
sys.exit(main(["run", "film.npy", "--out", "out", "--fps", "5", "--quiet"]))
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=600, check=False)
    package = {"PIL": "pillow"}.get(module, module)
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert f"needs the package {package}" in line
    assert f"pip install {package}" in line
    assert "Traceback" not in done.stderr


def test_ctrl_c_while_the_program_is_being_loaded_is_no_traceback(tmp_path: Path) -> None:
    code = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "cyclopts":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from video2pde.cli import main
sys.exit(main(["--help"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 130
    assert done.stderr == "interrupted\n"

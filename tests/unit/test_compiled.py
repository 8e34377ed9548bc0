"""Compiled code that is kept on disk: a file that a power cut left empty, or a full disk, ends no run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
from video2pde.compiled import njit

@njit(nogil=True)
def twice(x):
    return 2 * x

print(twice(21), sum(twice.stats.cache_hits.values()))
"""


def run(folder: Path, code: str = MODULE) -> list[str]:
    module = folder / "compiled_here.py"
    if not module.exists() or module.read_text(encoding="utf-8") != code:  # older Numba goes by the file's time
        module.write_text(code, encoding="utf-8")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", "import compiled_here"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def kept(folder: Path, suffix: str) -> list[Path]:
    return sorted((folder / "cache").rglob(f"*.{suffix}"))


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_file_cut_short_is_compiled_again_and_mended(tmp_path: Path, suffix: str, share: float) -> None:
    assert run(tmp_path) == ["42", "0"]
    assert run(tmp_path) == ["42", "1"]
    for file in kept(tmp_path, suffix):
        content = file.read_bytes()
        file.write_bytes(content[: int(share * len(content))])
    assert run(tmp_path) == ["42", "0"]
    assert run(tmp_path) == ["42", "1"]


def test_numba_alone_ends_with_an_error(tmp_path: Path) -> None:
    """What the module is for; once Numba mends its files itself, it can go."""
    plain = MODULE.replace("video2pde.compiled", "numba").replace("nogil=True", "cache=True")
    run(tmp_path, plain)
    for file in kept(tmp_path, "nbi"):
        file.write_bytes(b"")
    with pytest.raises(subprocess.CalledProcessError):
        run(tmp_path, plain)


def test_a_disk_that_takes_nothing_costs_the_cache_alone(tmp_path: Path) -> None:
    full = MODULE.replace(
        "@njit",
        "from numba.core.caching import IndexDataCacheFile\n"
        "def refuse(*_):\n    raise OSError(28, 'No space left on device')\n"
        "IndexDataCacheFile._save_index = IndexDataCacheFile._save_data = refuse\n\n@njit",
    )
    assert run(tmp_path, full) == ["42", "0"]
    assert run(tmp_path, full) == ["42", "0"]


def test_nothing_else_keeps_compiled_code() -> None:
    source = Path(__file__).resolve().parents[2] / "src"
    users = [path.name for path in source.rglob("*.py") if "import njit" in path.read_text(encoding="utf-8")]
    assert len(users) > 3
    for path in source.rglob("*.py"):
        assert path.name == "compiled.py" or "from numba import njit" not in path.read_text(encoding="utf-8"), path

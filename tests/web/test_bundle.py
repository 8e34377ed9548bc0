"""The committed bundle is what its sources give, and the sources pass their own checks."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
STATIC = ROOT / "src" / "video2pde" / "report" / "static"
STUDIO = ROOT / "src" / "video2pde" / "studio" / "static"
BUILT = ("report.js", "report.css")
BUNDLES = {"report": STATIC, "studio": STUDIO}
OFFLINE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "ENOTCACHED")


def hash_sources(bundle: str) -> str:
    """Hash a bundle's sources as ``vite.config.ts`` does: every file's path and bytes, each closed by a zero."""
    names = [path.relative_to(WEB).as_posix() for path in (WEB / "src").rglob("*") if path.is_file()]
    names = [name for name in names if bundle == "studio" or not name.startswith("src/studio/")]
    names += ["package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(name.encode() + b"\0" + (WEB / name).read_bytes() + b"\0")
    return digest.hexdigest()


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy ``web/`` beside an empty package and install what its lock file names."""
    if shutil.which("npm") is None:
        pytest.skip("no npm on this machine: install Node.js 20.19 or later to rebuild the bundle")
    folder = tmp_path_factory.mktemp("workshop") / "web"
    shutil.copytree(WEB, folder, ignore=shutil.ignore_patterns("node_modules", "build-test"))
    installed = run("npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", folder=folder)
    if installed.returncode != 0 and any(sign in installed.stderr for sign in OFFLINE):
        pytest.skip("npm cannot reach its registry, so the bundle cannot be rebuilt here")
    assert installed.returncode == 0, installed.stderr
    return folder


@pytest.mark.parametrize("bundle", BUNDLES)
def test_the_bundle_names_its_sources(bundle: str) -> None:
    script = (BUNDLES[bundle] / f"{bundle}.js").read_text()
    (named,) = re.findall(r"/\* sources ([0-9a-f]{64}) \*/", script)
    assert named == hash_sources(bundle), "web/ changed after the last build: run `npm ci && npm run build` in web/"


@pytest.mark.parametrize("bundle", BUNDLES)
def test_a_rebuild_gives_the_same_bytes(bundle: str, workshop: Path, tmp_path: Path) -> None:
    built = run("npm", "run", f"build:{bundle}", "--", "--outDir", str(tmp_path), folder=workshop)
    assert built.returncode == 0, built.stdout + built.stderr
    for name in (f"{bundle}.js", f"{bundle}.css"):
        committed = (BUNDLES[bundle] / name).read_bytes()
        assert (tmp_path / name).read_bytes() == committed, f"{name} is not what web/ builds"


def test_types_and_functions_hold(workshop: Path) -> None:
    for command in ("check", "test"):
        done = run("npm", "run", command, folder=workshop)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_bundle_is_small_and_asks_for_nothing() -> None:
    assert sum((STATIC / name).stat().st_size for name in BUILT) < 300_000
    script = (STATIC / "report.js").read_text()
    addresses = set(re.findall(r"https?://[\w./-]+", script))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}
    assert not re.search(r"\b(?:fetch|XMLHttpRequest|WebSocket|EventSource|eval|innerHTML|sendBeacon)\b", script)
    assert "url(" not in (STATIC / "report.css").read_text()


def test_the_studio_asks_nobody_else() -> None:
    """Its requests are relative to its own address, and it never reads text as markup or code."""
    script = (STUDIO / "studio.js").read_text()
    addresses = set(re.findall(r"https?://[\w./-]+", script))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}
    assert not re.search(
        r"\b(?:WebSocket|eval|innerHTML|outerHTML|insertAdjacentHTML|sendBeacon|document\.write)\b", script
    )
    assert set(re.findall(r"`\./[a-z]*/", script)) == {"`./api/"}
    assert "url(" not in (STUDIO / "studio.css").read_text()
    page = (STUDIO / "index.html").read_text()
    assert re.findall(r'(?:src|href)="(?!data:)([^"]+)"', page) == ["./studio.css", "./studio.js"]

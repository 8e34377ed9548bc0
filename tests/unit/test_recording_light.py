"""Calibrated light, the bleach that starts a recording, and the droplet in which a law holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from recording_files import levels, write_film

from video2pde.errors import InputError
from video2pde.recording import read_recording
from video2pde.recording.jumps import find_jumps
from video2pde.recording.light import calibrate_light
from video2pde.recording.mask import droplet_mask
from video2pde.settings import RecordingSettings

Y, X = np.mgrid[:48, :56]


def dome(radius: float = 17.0) -> np.ndarray:
    """A droplet seen from above: thick in the middle, dark around."""
    r = np.hypot(Y - 23.5, X - 28)
    return 200 + 8000 * np.sqrt(np.clip(1 - (r / radius) ** 2, 0, None))


def bleached(frames: int = 30, before: int = 5, noise: float = 30.0) -> np.ndarray:
    """A spot bleached before frame ``before``, which fills again, under light that dims everything at 0.5 % a frame."""
    rng = np.random.default_rng(1)
    spot = np.exp(-((Y - 20) ** 2 + (X - 30) ** 2) / 30)
    stack = []
    for k in range(frames):
        depth = 0.0 if k < before else 0.7 * np.exp(-(k - before) / 10)
        stack.append((dome() - 200) * (1 - depth * spot) * np.exp(-0.005 * k) + 200 + rng.normal(0, noise, Y.shape))
    return np.round(np.clip(stack, 0, 65535)).astype(np.uint16)


def test_a_bleach_is_found_and_nothing_else() -> None:
    stack = bleached().astype(np.float32)
    assert [jump.first for jump in find_jumps(stack)] == [5]
    assert find_jumps(stack[5:]) == ()
    assert find_jumps(stack[:3]) == ()
    assert find_jumps(np.full((20, 8, 8), 3, np.float32)) == ()


def test_frames_before_the_bleach_are_the_reference(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "d.tif", bleached())
    settings = RecordingSettings(
        observable="bright", border=0, start="auto", reference="before", dark="outside", mask="droplet", fps=1.0
    )
    result = read_recording(tmp_path / "d.tif", settings)
    field = result.field
    assert len(field) == 25
    assert field.times[0] == 5.0
    assert field.mask is not None
    far = field.mask & (np.hypot(Y - 20, X - 30) > 14)
    # the dome is gone: u is flat inside, and falls as the light dims
    assert field.values[0][far].std() < 0.02
    rate = np.polyfit(field.times, np.log(field.values[:, far].mean(axis=1)), 1)[0]
    assert rate == pytest.approx(-0.005, rel=0.05)
    assert any("bleach" in note for note in field.provenance.notes)


def test_without_a_start_the_jump_is_a_warning(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "d.tif", bleached())
    result = read_recording(tmp_path / "d.tif", RecordingSettings(observable="bright", border=0, fps=1.0))
    assert any("--start 5" in text for text in result.warnings)
    later = read_recording(tmp_path / "d.tif", RecordingSettings(observable="bright", border=0, fps=1.0, start=2))
    assert any("--start 5" in text for text in later.warnings)


def test_no_bleach_no_reference(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "d.tif", bleached()[5:])
    with pytest.raises(InputError, match="no bleach was found"):
        read_recording(
            tmp_path / "d.tif", RecordingSettings(observable="bright", fps=1.0, start="auto", reference="before")
        )


def test_an_open_iris_in_the_dark_picture_is_seen() -> None:
    reference = np.full((20, 20), 1500.0)
    dark = np.full((20, 20), 200.0)
    dark[8:12, 8:12] = 1200.0
    light = calibrate_light(reference, dark, "a picture")
    assert light.span == pytest.approx(1300.0)
    assert "not dark" in light.warnings[0]
    assert calibrate_light(reference, np.full((20, 20), 200.0), "a picture").warnings == ()
    with pytest.raises(InputError, match="nowhere brighter"):
        calibrate_light(reference, 2000.0, "a picture")


def test_a_droplet_is_found_less_its_edge() -> None:
    region = droplet_mask(dome())
    r = np.hypot(Y - 23.5, X - 28)
    assert region[r < 10].all()
    assert not region[r > 16].any()
    with pytest.raises(InputError, match="no droplet"):
        droplet_mask(np.random.default_rng(0).normal(1000, 10, (40, 40)) * (1 + 0.001 * np.arange(40)))


def test_regions_of_fiji_are_a_mask(tmp_path: Path) -> None:
    """The roifile package writes what Fiji would; a polygon and two regions in an archive."""
    roifile = pytest.importorskip("roifile")
    corners = np.array([[10, 5], [40, 5], [40, 30], [10, 30]], float)
    roifile.ImagejRoi.frompoints(corners).tofile(tmp_path / "a.roi")
    more = roifile.ImagejRoi.frompoints(corners + np.array([10, 15]))
    roifile.roiwrite(tmp_path / "set.zip", [roifile.ImagejRoi.frompoints(corners), more], name=["a", "b"])
    tifffile.imwrite(tmp_path / "d.tif", bleached())
    settings = RecordingSettings(observable="bright", border=0, fps=1.0, mask=str(tmp_path / "a.roi"))
    mask = read_recording(tmp_path / "d.tif", settings).field.mask
    assert mask is not None
    inside = (X + 0.5 > 10) & (X + 0.5 < 40) & (Y + 0.5 > 5) & (Y + 0.5 < 30)
    assert np.mean(mask == inside) > 0.99
    both = read_recording(
        tmp_path / "d.tif", settings.model_copy(update={"mask": str(tmp_path / "set.zip")})
    ).field.mask
    assert both is not None
    assert both.sum() > 1.4 * mask.sum()


def test_the_luma_of_a_film_is_divided_as_intensity(tmp_path: Path) -> None:
    """Limited-range luma begins at 16; a flat-field picture of 8 bits at 0."""
    dome = 1 - 0.4 * ((Y - 24) ** 2 + (X - 30) ** 2) / 900
    u = np.array([0.3, 0.5, 0.7, 0.8])
    write_film(tmp_path / "film.mp4", levels(u[:, None, None] * dome, 16, 235))
    Image.fromarray(np.round(255 * dome).astype(np.uint8)).save(tmp_path / "flat.png")
    settings = RecordingSettings(observable="bright", border=0, reference=str(tmp_path / "flat.png"))
    field = read_recording(tmp_path / "film.mp4", settings).field
    assert field.values.mean(axis=(1, 2)) == pytest.approx(u, abs=0.01)
    assert field.values.std(axis=(1, 2)).max() < 0.02

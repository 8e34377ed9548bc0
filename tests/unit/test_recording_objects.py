"""What is in the picture and never moves: specks are divided out, walls and letters cut off, the rest is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.field import Grid
from video2pde.recording import objects, read_recording
from video2pde.recording.layout import Layout
from video2pde.recording.objects import bridge, fill, largest_rectangle, look_for_objects
from video2pde.report.content.camera import _left_out
from video2pde.report.document import Note
from video2pde.settings import load_settings, RecordingSettings

SIDE, FRAMES = 96, 36


def spreading(seed: int = 1) -> NDArray[np.float64]:
    """Light through a drop of ink that spreads, with a little noise."""
    y, x = np.mgrid[:SIDE, :SIDE] - SIDE / 2
    width = np.linspace(40.0, 110.0, FRAMES)[:, None, None]
    light = 1 - 0.7 * 40 / width * np.exp(-((x - 3) ** 2 + y**2) / (2 * width))
    return np.asarray(light + 0.003 * np.random.default_rng(seed).standard_normal(light.shape))


def specks() -> NDArray[np.float64]:
    """The share of light that three specks let through: where the ink gets to, beside it, and at the edge."""
    y, x = np.mgrid[:SIDE, :SIDE]
    shade = np.ones((SIDE, SIDE))
    for row, column, dark in ((46, 70, 0.5), (12, 12, 0.7), (SIDE - 1, 40, 0.4)):
        shade *= 1 - dark * np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * 0.9**2))
    return shade


def grey(light: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.asarray(16 + 219 * light, np.float32)


def save(path: Path, light: NDArray[np.float64]) -> Path:
    np.save(path, np.clip(255 * light, 0, 255).round().astype(np.uint8))
    return path


def read(path: Path, **settings: Any) -> Any:
    plain = {"fps": 10.0, "white": 255.0, "illumination": "none", "unclip": False}
    return read_recording(path, RecordingSettings(**{**plain, **settings}))


def test_nothing_is_found_where_there_is_nothing() -> None:
    assert look_for_objects(grey(spreading()), 16.0) is None


def test_specks_are_divided_out() -> None:
    plain = spreading()
    frames = grey(plain * specks())
    found = look_for_objects(frames, 16.0)
    assert found is not None
    assert (found.specks, found.larger) == (3, 0)
    before = np.abs(frames - grey(plain)).max()
    found.divide_out(frames, 16.0)
    error = np.abs(frames.mean(axis=0) - grey(plain).mean(axis=0))
    assert before > 80
    assert error.max() < 2.0  # of 219 levels
    np.testing.assert_allclose(found.shade, specks(), atol=0.01)
    assert "3 specks" in found.note


def test_walls_and_letters_at_the_side_are_outside_the_box() -> None:
    light = spreading()
    light[:, :, :7] *= 0.6
    light[:, 88:92, 40:70:2] *= 0.3
    found = look_for_objects(grey(light), 16.0)
    assert found is not None
    assert found.box is not None
    row, column, height, width = found.box
    assert column >= 7
    assert row + height <= 88
    assert height * width > 0.6 * SIDE**2


def disc(row: float, column: float, radius: float) -> NDArray[np.float64]:
    """1 inside a disc, 0 outside, over a cell."""
    y, x = np.mgrid[:SIDE, :SIDE]
    return np.asarray(0.5 * (1 + np.tanh(2 * (radius - np.hypot(y - row, x - column)))))


def test_a_wall_through_what_spreads_is_masked() -> None:
    light = spreading()
    light[:, :, 47:49] *= 0.5
    found = look_for_objects(grey(light), 16.0)
    assert found is not None
    assert (found.larger, found.box) == (1, None)
    assert found.hidden[:, 46:50].all()
    assert found.hidden.mean() < 0.16  # what spreads on either side of it is kept
    assert "masked" in found.mask_note
    assert found.doubt == ""


@pytest.mark.parametrize("kind", ["rod", "reflection"])
def test_what_stands_in_the_plume_is_masked(kind: str) -> None:
    """An opaque thing, or light that is added: neither takes one share of the light, and neither moves."""
    plain, where = spreading(), disc(40, 58, 5)
    light = plain * (1 - 0.95 * where) if kind == "rod" else plain + 0.15 * where
    found = look_for_objects(grey(light), 16.0)
    assert found is not None
    assert (found.specks, found.box) == (0, None)
    assert found.hidden[where > 0.1].all()
    assert found.hidden.mean() < 0.06
    assert np.abs(grey(light) - grey(plain)).mean(axis=0)[~found.hidden].max() < 2.0  # of 219 levels


@pytest.mark.parametrize(("radius", "slope"), [(4.0, 8.0), (5.0, 2.0)])
def test_an_edge_narrower_than_a_cell_shows_things_as_wide_as_a_plume(
    radius: float, slope: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between filters as wide as the thing itself more is seen than at its edge, which no plume has."""
    y, x = np.mgrid[:SIDE, :SIDE]
    where = 0.5 * (1 + np.tanh(slope * (radius - np.hypot(y - 38, x - 62))))
    frames = grey(spreading() + 0.1 * where)
    found = look_for_objects(frames, 16.0)
    assert found is not None
    assert (found.specks, found.larger + found.others) == (0, 1)
    assert found.hidden[where > 0.1].all()
    assert found.hidden.mean() < 0.03
    monkeypatch.setattr(objects, "CRISP", np.inf)
    assert look_for_objects(frames, 16.0) is None


def test_a_speck_that_goes_out_of_focus_is_masked_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dot of its rim stays the same while the rest fades: the dot is not all that there is."""
    y, x = np.mgrid[:SIDE, :SIDE]
    squared, width = (y - 20) ** 2 + (x - 20) ** 2, np.linspace(1.2, 2.0, FRAMES)[:, None, None]
    frames = grey(spreading() * (1 - 0.6 * (1.2 / width) ** 2 * np.exp(-squared / (2 * width**2))))
    found = look_for_objects(frames, 16.0)
    assert found is not None
    assert (found.specks, found.others) == (0, 1)
    assert found.hidden[squared < 9].all()
    monkeypatch.setattr(objects, "KNOWN", 1e-9)
    partly = look_for_objects(frames, 16.0)
    assert partly is not None
    assert not partly.masked


def test_a_brighter_place_is_no_speck() -> None:
    """Dust takes light. What is brighter than its surroundings is masked; the same, darker, is divided out."""
    y, x = np.mgrid[:SIDE, :SIDE]
    spot = np.exp(-((y - 46) ** 2 + (x - 70) ** 2) / (2 * 0.9**2))
    found = {sign: look_for_objects(grey(0.6 * spreading() * (1 + sign * 0.5 * spot)), 16.0) for sign in (-1, 1)}
    dark, bright = found[-1], found[1]
    assert dark is not None
    assert bright is not None
    assert (dark.specks, dark.masked) == (1, False)
    assert dark.shade.min() < 0.6
    assert (bright.specks, bright.others) == (0, 1)
    assert bright.hidden[spot > 0.1].all()
    assert bright.hidden.mean() < 0.02
    assert (bright.shade == 1).all()


def test_too_much_is_not_masked_but_warned_of() -> None:
    light = spreading()
    light[:, ::12] *= 0.5
    light[:, 1::12] *= 0.5
    found = look_for_objects(grey(light), 16.0)
    assert found is not None
    assert not found.masked
    assert found.mask_note == ""
    assert "--mask" in found.doubt


def test_a_rod_is_left_out_of_the_field_unless_refused(tmp_path: Path) -> None:
    film = save(tmp_path / "rod.npy", spreading() * (1 - 0.95 * disc(40, 58, 5)))
    found = read(film)
    assert found.field.mask is not None
    assert not found.field.mask[40, 58]
    assert found.field.mask[10, 10]
    assert any("masked" in note for note in found.field.provenance.notes)
    plain = spreading()  # u is continued under the rod, which is 0.95 darker
    assert np.abs(found.field.values - (1 - plain)).mean(axis=0).max() < 0.1
    assert read(film, objects="none").field.mask is None
    mask = read(film, mask="u>-1@0").field.mask  # said where the law holds: left as it is
    assert mask is not None
    assert mask.all()
    assert read(film, edges="no_flux").field.mask is None


def test_hidden_cells_are_filled_from_around() -> None:
    y, x = np.mgrid[:30, :40].astype(np.float32)
    plane = np.stack([1 + 0.2 * x - 0.1 * y, 5 - 0.3 * y])
    hidden = np.zeros((30, 40), bool)
    hidden[8:14, 10:19] = hidden[:, 30:32] = hidden[25:, :6] = True
    found = np.where(hidden, np.float32(99), plane)
    fill(found, hidden)
    inner = np.zeros_like(hidden)
    inner[8:14, 10:19] = True
    np.testing.assert_allclose(found[:, inner], plane[:, inner], rtol=1e-5)  # Δ of a plane is 0
    np.testing.assert_array_equal(found[:, ~hidden], plane[:, ~hidden])
    assert found.min() >= plane.min()  # between its surroundings everywhere, at the picture's edge too
    assert found.max() <= plane.max()


def test_dust_is_found_beside_a_wall_that_is_cut_off(tmp_path: Path) -> None:
    """What is left of a fine grid may have fewer cells than are searched; its cells are as small as before."""
    light = spreading() * specks()
    light[:, :, :7] *= 0.6
    found = read(save(tmp_path / "both.npy", light))
    assert found.field.grid.nx < SIDE
    assert found.objects is not None
    assert found.objects.specks >= 2


def test_the_largest_rectangle_is_the_largest() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        free = rng.random((7, 9)) > 0.25
        row, column, height, width = largest_rectangle(free)
        assert free[row : row + height, column : column + width].all()
        largest = max(
            (b - a) * (d - c)
            for a in range(7)
            for b in range(a + 1, 8)
            for c in range(9)
            for d in range(c + 1, 10)
            if free[a:b, c:d].all()
        )
        assert height * width == largest
    assert largest_rectangle(np.zeros((3, 3), bool)) == (0, 0, 0, 0)


def test_a_hole_is_bridged_as_its_surroundings_are_bent() -> None:
    y, x = np.mgrid[:40, :40] / 40
    picture = 1 + x - 2 * y + 0.5 * x * y
    holes = np.zeros((40, 40), bool)
    holes[10:15, 20:26] = holes[37:, 3:8] = True
    found = bridge(np.where(holes, -5.0, picture), holes)
    assert found[10:15, 20:26] == pytest.approx(picture[10:15, 20:26], abs=1e-6)
    assert found[37:, 3:8] == pytest.approx(picture[37:, 3:8], abs=0.05)  # the edge is a mirror
    assert found[~holes] == pytest.approx(picture[~holes])


def test_a_part_of_a_layout_keeps_units_and_pitch() -> None:
    whole = Layout((10, 20, 210, 116), 8, Grid(50, 97, 100.0, 194.0, "mm"))
    part = whole.within((5, 10, 40, 80))
    assert part.grid.shape == (40, 80)
    assert part.grid.dx == pytest.approx(whole.grid.dx, rel=0.02)
    assert part.grid.dy == pytest.approx(whole.grid.dy, rel=0.02)
    assert part.grid.unit == "mm"
    assert part.inner == (38, 38, 160, 80)


def test_a_film_is_read_without_its_dust(tmp_path: Path) -> None:
    plain = read(save(tmp_path / "plain.npy", spreading()))
    dusty = save(tmp_path / "dusty.npy", spreading() * specks())
    found, left = read(dusty), read(dusty, objects="none")
    assert np.abs(left.field.values - plain.field.values).max() > 0.3
    assert np.abs(found.field.values.mean(axis=0) - plain.field.values.mean(axis=0)).max() < 0.02
    assert any("divided out" in note for note in found.field.provenance.notes)
    assert plain.objects is None


def test_a_wall_is_cut_off_unless_a_crop_was_given(tmp_path: Path) -> None:
    light = spreading()
    light[:, :, :7] *= 0.6
    film = save(tmp_path / "wall.npy", light)
    found, whole = read(film), read(film, objects="none")
    assert found.field.grid.nx < SIDE == whole.field.grid.nx
    assert found.field.grid.dx == pytest.approx(whole.field.grid.dx)
    x0, y0, width, height = found.layout.crop
    assert (width, height) == (found.field.grid.nx, SIDE)
    assert x0 >= 7
    assert y0 == 0
    np.testing.assert_allclose(found.field.values, whole.field.values[:, :, x0:], atol=1e-6)
    assert any(f"--crop {x0},0,{width},{height}" in note for note in found.field.provenance.notes)
    insisted = read(film, crop=(0, 0, SIDE, SIDE))
    assert insisted.field.grid.nx == SIDE


def test_a_coarse_grid_is_not_searched() -> None:
    """On few cells the middle of a plume is as sharp as a speck, and stays where it is."""
    frames = grey(spreading()[:, ::2, ::2])
    assert look_for_objects(frames * 0.5, 16.0) is None
    assert look_for_objects(grey((spreading() * specks())[:, ::2, ::2]), 16.0) is None


def test_other_observables_and_the_paper_are_left_alone(tmp_path: Path) -> None:
    film = save(tmp_path / "dusty.npy", spreading() * specks())
    assert read(film, observable="bright").objects is None
    assert load_settings("paper").recording.objects == "none"


def test_the_report_names_what_was_left_out(tmp_path: Path) -> None:
    light = spreading() * (1 - 0.95 * disc(40, 58, 5))
    (masked,) = _left_out(read(save(tmp_path / "rod.npy", light)))
    assert isinstance(masked, Note)
    assert str(masked.text).startswith("1 object that never moves")
    light = spreading()
    light[:, :, :7] *= 0.6
    (cut,) = _left_out(read(save(tmp_path / "wall.npy", light)))
    assert isinstance(cut, Note)
    assert "is cut off: --crop" in str(cut.text)
    assert _left_out(read(save(tmp_path / "plain.npy", spreading()))) == []

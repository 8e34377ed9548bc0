"""What cameras do to a film: response and colour, undone before u is formed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image
from recording_files import blot, levels

from video2pde.errors import InputError
from video2pde.recording import read_recording
from video2pde.recording.base import Header
from video2pde.recording.channel import best_channel
from video2pde.recording.film import Film
from video2pde.recording.response import choose_response, CURVES, Response
from video2pde.recording.synth import Camera, make_case, Optics, render_film
from video2pde.settings import load_settings, RecordingSettings

SMALL = Camera(size=(64, 64), frames=24, noise=0.005, crf=1)
YELLOW = np.array([0.1, 0.2, 1.0])  # share of the ink's darkness in red, green and blue


def read(path: Path, **settings: Any) -> Any:
    return read_recording(path, RecordingSettings(**{"fps": 10.0, "illumination": "none", **settings}))


# ----------------------------------------------------------------------------- response


@pytest.mark.parametrize("name", CURVES)
def test_curves_run_from_black_to_white(name: str) -> None:
    pixel = np.linspace(0, 1, 101)
    light = Response(name)(pixel)
    assert light[0] == 0
    assert light[-1] == pytest.approx(1, abs=1e-6)
    assert (np.diff(light) > 0).all() or name == "pq"  # pq has a flat foot
    np.testing.assert_allclose(Response(name)(-pixel), -light)


def test_curves_undo_what_the_standards_do() -> None:
    assert Response("srgb")(np.array([0.5]))[0] == pytest.approx(0.21404, abs=1e-5)
    assert Response("bt709")(np.array([1.099 * 0.5**0.45 - 0.099]))[0] == pytest.approx(0.5)
    assert Response("hlg")(np.array([0.5]))[0] == pytest.approx(1 / 12, abs=1e-6)
    assert Response("gamma", 1.8)(np.array([0.5]))[0] == pytest.approx(0.5**1.8)


def test_a_gamma_is_undone_before_u_is_formed(tmp_path: Path) -> None:
    light = blot()
    np.save(tmp_path / "light.npy", levels(light))
    np.save(tmp_path / "gamma.npy", levels(light ** (1 / 1.8)))
    plain = read(tmp_path / "light.npy").field.values
    undone = read(tmp_path / "gamma.npy", response=1.8)
    left = read(tmp_path / "gamma.npy")
    assert np.abs(undone.field.values - plain).max() < 0.01
    assert np.abs(left.field.values - plain).max() > 0.1
    assert any("a gamma of 1.8" in note for note in undone.field.provenance.notes)
    table = tmp_path / "curve.csv"
    table.write_text("pixel,light\n" + "\n".join(f"{v},{v**1.8}" for v in np.linspace(0, 1, 400)))
    again = read(tmp_path / "gamma.npy", response=str(table)).field.values
    assert np.abs(again - undone.field.values).max() < 1e-3


def test_a_reference_picture_has_the_same_response(tmp_path: Path) -> None:
    light = blot()
    np.save(tmp_path / "gamma.npy", levels(light ** (1 / 2.2)))
    Image.fromarray(levels(np.full(light.shape[1:], 0.85 ** (1 / 2.2)))).save(tmp_path / "clear.png")
    u = read(tmp_path / "gamma.npy", response=2.2, reference=str(tmp_path / "clear.png")).field.values
    assert np.abs(u[-1].min()) < 0.02
    assert u.max() == pytest.approx((1 - light / 0.85).max(), abs=0.02)


def test_what_the_file_names_counts_where_a_camera_wrote_it() -> None:
    header = Header("film", 48, 64, 10, True, limit=255.0)
    assert choose_response("auto", header) == (None, "")
    named = replace(header, transfer="bt709")
    response, note = choose_response("auto", named)
    assert response is None
    assert 'recording.response = "bt709"' in note
    response, note = choose_response("auto", replace(named, camera="Pixel 9"))
    assert response == Response("bt709")
    assert "Pixel 9" in note
    assert choose_response("auto", replace(header, transfer="gamma22"))[0] == Response("gamma22")
    assert choose_response("linear", replace(header, transfer="gamma22"))[0] is None
    assert load_settings("paper").recording.response == "linear"
    assert load_settings("paper").recording.channel == "luma"


def test_a_film_that_names_its_gamma_is_read_as_light(tmp_path: Path) -> None:
    case = make_case("A")
    plain = read_recording(render_film(case, tmp_path / "plain", SMALL)).field.values
    film = render_film(case, tmp_path / "gamma", replace(SMALL, optics=Optics(gamma=2.2)))
    assert Film(film).header.transfer == "gamma22"
    assert np.abs(read_recording(film).field.values - plain).mean() < 0.005
    assert np.abs(read_recording(film, RecordingSettings(response="linear")).field.values - plain).mean() > 0.05


def test_a_response_that_cannot_be(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", blot())
    for response, said in ((2.2, "recording.white"), ("sgrb", "none of auto")):
        with pytest.raises(InputError, match=said):
            read(tmp_path / "a.npy", response=response)
    (tmp_path / "falls.csv").write_text("0,0\n1,1\n0.5,2\n")
    with pytest.raises(InputError, match="both rising"):
        read(tmp_path / "a.npy", response=str(tmp_path / "falls.csv"), white=1.0)


# ----------------------------------------------------------------------------- channel


def coloured(path: Path, darkness: np.ndarray) -> Path:
    noise = np.random.default_rng(0).normal(0, 0.01, (*blot().shape, 3))
    np.save(path, levels(np.clip(1 - (0.85 - blot())[..., None] * darkness - 0.1 + noise, 0, 1)))
    return path


def test_yellow_ink_is_read_in_blue(tmp_path: Path) -> None:
    film = coloured(tmp_path / "yellow.npy", YELLOW)
    result = read(film)
    assert result.channel.name == "b"
    assert np.ptp(result.field.values) > 3 * np.ptp(read(film, channel="luma").field.values[:, 20:30, 20:30])
    np.testing.assert_array_equal(result.field.values, read(film, channel="b").field.values)
    np.testing.assert_allclose(result.field.values, read(film, channel=(0, 0, 2.0)).field.values, atol=1e-6)
    assert any("read in the channel b" in note for note in result.field.provenance.notes)


def test_grey_is_read_in_luma(tmp_path: Path) -> None:
    film = coloured(tmp_path / "grey.npy", np.ones(3))
    result = read(film)
    assert result.channel.name == "luma"
    np.testing.assert_array_equal(result.field.values, read(film, channel="luma").field.values)


def test_a_film_of_yellow_ink(tmp_path: Path) -> None:
    case = make_case("A")
    plain = read_recording(render_film(case, tmp_path / "plain", SMALL))
    assert plain.channel is not None
    assert plain.channel.name == "luma"
    film = render_film(case, tmp_path / "yellow", replace(SMALL, optics=Optics(yellow=0.9)))
    found = read_recording(film)
    assert found.channel is not None
    assert found.channel.name == "b"
    assert np.sqrt(np.mean((found.field.values - plain.field.values) ** 2)) < 0.01


def test_light_of_a_coloured_film_is_measured_where_the_ink_hardly_shows(tmp_path: Path) -> None:
    """A background of dye that grows in yellow, under light that dims: blue alone shows the sum of both."""
    case = make_case("B", background=0.12, coefficients={"u": 0.01, "laplacian": 1.0})
    camera = Camera(size=(160, 160), frames=80, noise=0.01, crf=20, optics=Optics(yellow=0.9, dimming=0.04))
    film = render_film(case, tmp_path / "dims", camera)
    found = read_recording(film)
    assert found.channel is not None
    assert found.channel.name == "b"  # what dims in all colours is no contrast of one
    assert found.illumination is not None
    assert found.illumination.slow_is == "light"
    true = np.array(json.loads((tmp_path / "dims" / "truth.json").read_text())["gain"])
    assert np.std(found.illumination.gain / true) < 2.5e-3
    assert any("the light was measured in the channel" in note for note in found.field.provenance.notes)
    steady = read_recording(render_film(case, tmp_path / "steady", replace(camera, optics=Optics(yellow=0.9))))
    assert steady.illumination is not None
    assert steady.illumination.slow_is == "law"
    assert np.all(steady.illumination.gain == 1)


def test_a_colour_that_an_encoder_saves_on_is_said_with_its_cure(tmp_path: Path) -> None:
    yellow = replace(SMALL, optics=Optics(yellow=0.9))

    def said(path: Path, **settings: Any) -> list[str]:
        return [line for line in read_recording(path, RecordingSettings(**settings)).warnings if "channel b" in line]

    film = render_film(make_case("A"), tmp_path / "h264", yellow)
    lines = said(film)
    assert len(lines) == 1
    assert lines[0].startswith("compression counts 1.9 times in the channel b")
    assert "4:4:4" in lines[0]
    # not of a channel that was asked for, of grey ink, or where nothing is lost
    assert said(film, channel="b") == []
    assert said(render_film(make_case("A"), tmp_path / "grey", SMALL)) == []
    lossless = replace(yellow, codec="ffv1", container="mkv")
    assert said(render_film(make_case("A"), tmp_path / "ffv1", lossless)) == []


def test_stacks_with_channels_offer_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    signal = 1000 * blot() + rng.normal(0, 5, blot().shape)
    stack = np.stack([np.full_like(signal, 300) + rng.normal(0, 5, signal.shape), signal], axis=1).astype(np.uint16)
    for name, options in (("ij.tif", {"imagej": True}), ("ome.ome.tif", {"ome": True})):
        tifffile.imwrite(tmp_path / name, stack, metadata={"axes": "TCYX"}, **options)
        result = read(tmp_path / name)
        assert result.channel.name == "channel 2"
        assert len(result.field) == len(stack)
        np.testing.assert_array_equal(read(tmp_path / name, channel=2).field.values, result.field.values)
        with pytest.raises(InputError, match="it has channel 1, channel 2"):
            read(tmp_path / name, channel=3)


def test_ink_is_read_in_the_colour_that_it_takes_away() -> None:
    """Also where that is hardly clearer than luma, because its noise is larger, too: u would be a third of itself."""
    rng = np.random.default_rng(5)
    share, noise = np.array([0.15, 0.25, 1.0]), np.array([1.0, 1.0, 2.4])
    shape = (3, *blot()[0].shape)

    def frame(k: int) -> np.ndarray:
        return 200 - 100 * blot()[k] * share[:, None, None] + noise[:, None, None] * rng.normal(0, 1, shape)

    pairs = [(frame(k), frame(k + 1)) for k in range(0, len(blot()) - 1, 4)]
    chosen = best_channel(pairs, ("r", "g", "b"), (0.3, 0.6, 0.1), 1.0)
    ratio = {view.name: view.ratio for view in chosen.views}
    assert ratio["luma"] < ratio["b"] < 1.5 * ratio["luma"]
    assert chosen.name == "b"


@pytest.mark.parametrize("writer", ["ome", "imagej"])
def test_plane_and_channel_of_a_stack_of_all_axes(tmp_path: Path, writer: str) -> None:
    """Times, planes and channels in one file, as tifffile writes it for OME and for ImageJ."""
    values = np.zeros((12, 3, 2, 16, 20), np.uint16)
    values += (1000 * np.arange(1, 13)).astype(np.uint16)[:, None, None, None, None]
    values += (100 * np.arange(3)).astype(np.uint16)[:, None, None, None]
    values += (10 * np.arange(2)).astype(np.uint16)[:, None, None] + np.arange(20, dtype=np.uint16)
    meta: dict[str, Any] = {"axes": "TZCYX"}
    file = tmp_path / ("a.ome.tif" if writer == "ome" else "a.tif")
    if writer == "ome":
        meta |= {"Channel": {"Name": ["DAPI", "GFP"]}, "TimeIncrement": 2.0, "TimeIncrementUnit": "s"}
        tifffile.imwrite(file, values, metadata=meta)
    else:
        tifffile.imwrite(file, values, imagej=True, metadata={**meta, "finterval": 2.0})
    chosen = {"observable": "bright", "white": 65535.0, "illumination": "none", "border": 0, "unclip": False}
    for plane, channel, named in ((1, 1, "DAPI"), (3, 2, "GFP"), (2, 2, "GFP")):
        given = RecordingSettings(**chosen, z=plane, channel=named if writer == "ome" else channel, frames="all")
        field = read_recording(file, given).field
        np.testing.assert_allclose(field.values * 65535, values[:, plane - 1, channel - 1], rtol=1e-4)
        assert field.times[-1] == 22.0
        assert any(f"plane {plane} of 3" in note for note in field.provenance.notes)
    with pytest.raises(InputError, match="no channel 'RFP'"):
        read_recording(file, RecordingSettings(**chosen, z=1, channel="RFP"))


def test_channels_that_are_not_there(tmp_path: Path) -> None:
    np.save(tmp_path / "grey.npy", levels(blot()))
    film = coloured(tmp_path / "colour.npy", YELLOW)
    for path, channel, said in (
        (tmp_path / "grey.npy", "r", "it is grey"),
        (film, (1.0, -1.0, 0.0), "positive sum"),
        (film, (1.0, 1.0), "positive sum"),
    ):
        with pytest.raises(InputError, match=said):
            read(path, channel=channel)

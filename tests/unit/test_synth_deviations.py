"""Deviations: each film shows what was broken, says so in ``truth.json``, and nothing else changes."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from video2pde.cli import main
from video2pde.errors import InputError
from video2pde.recording.synth import (
    Camera,
    describe_deviations,
    deviate,
    DEVIATIONS,
    make_case,
    Optics,
    parse_deviations,
    PRESETS,
    render_film,
)
from video2pde.recording.synth.render import ENCODERS

SMALL = Camera(size=(64, 64), frames=8, crf=0)
SLOW = {"shear", "strain", "rotation", "fractional"}  # solved on large squares


def watch(folder: Path, name: str, strength: float, camera: Camera = SMALL, base: str = "A") -> tuple:
    """Return luma as light from 0 to 1, shape (t, y, x), and the truth."""
    case, eye = deviate(make_case(base, duration=8.0, drift=(0.0, 0.0)), camera, name, strength)
    film = render_film(case, folder, eye, extra=describe_deviations([(name, strength)]))
    with av.open(str(film)) as container:
        luma = np.array([frame.to_ndarray(format="gray") for frame in container.decode(video=0)])
    return luma / 255.0, json.loads((folder / "truth.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(set(DEVIATIONS) - SLOW))
def test_every_deviation_changes_the_film_and_is_told(name: str, tmp_path: Path) -> None:
    deviation = DEVIATIONS[name]
    base = "C" if deviation.only == ("C",) or name == "exposure" else "A"  # the plume of C grows in the meter's window
    plain = make_case(base, duration=8.0, drift=(0.0, 0.0))
    render_film(plain, tmp_path / "plain", SMALL)
    with av.open(str(tmp_path / "plain" / "film.mp4")) as container:
        undisturbed = np.array([frame.to_ndarray(format="gray") for frame in container.decode(video=0)]) / 255.0
    light, truth = watch(tmp_path, name, deviation.strengths[2], base=base)
    assert light.shape == undisturbed.shape
    assert np.abs(light - undisturbed).max() > 0.015
    assert truth["deviations"][0] == {
        "name": name,
        "kind": deviation.kind,
        "strength": deviation.strengths[2],
        "words": deviation.words,
        "law": deviation.law,
    }
    assert (
        truth["medium"]
        or truth["camera"]
        or truth["flicker"]
        or truth["vignetting"]
        or deviation.law == "other"
        or name == "saturation"
    )


def test_light_follows_the_told_gain(tmp_path: Path) -> None:
    for name, strength in (("dimming", 0.1), ("steps", 0.05), ("flicker", 0.02)):
        light, truth = watch(tmp_path / name, name, strength)
        corner = light[:, :6, :6].mean(axis=(1, 2))
        assert corner / corner[0] == pytest.approx(np.array(truth["gain"]) / truth["gain"][0], abs=0.006), name
    assert np.ptp(truth["gain"]) > 0.02


def test_automatic_exposure_keeps_the_metered_brightness(tmp_path: Path) -> None:
    full, truth = watch(tmp_path, "exposure", 1.0, base="C")
    y = (np.arange(64) + 0.5) / 64 - 0.5
    window = np.exp(-0.5 * (y[:, None] ** 2 + y[None, :] ** 2) / 0.25**2)
    metered = (full * window).sum(axis=(1, 2)) / window.sum()
    assert np.ptp(metered) < 0.004
    assert truth["gain"][-1] > 1.01  # the plume of C grows, and the camera opens


def test_shake_moves_the_picture_as_told(tmp_path: Path) -> None:
    light, truth = watch(tmp_path, "shake", 1.5, camera=Camera(size=(64, 64), frames=12, crf=0))
    dark = np.maximum(0.9 - light, 0)
    axis = np.arange(64)
    for k, sums in ((0, dark.sum(axis=2)), (1, dark.sum(axis=1))):
        centre = (sums * axis).sum(axis=1) / sums.sum(axis=1)
        told = np.array(truth["shifts"])[:, k]
        assert centre - centre[0] == pytest.approx(told - told[0], abs=0.08)
    assert np.std(truth["shifts"]) > 0.5


def test_yellow_ink_is_pale_in_luma_and_dark_in_blue(tmp_path: Path) -> None:
    case, camera = deviate(make_case("A", duration=8.0), SMALL, "yellow", 0.95)
    film = render_film(case, tmp_path, camera)
    with av.open(str(film)) as container:
        first = next(container.decode(video=0)).to_ndarray(format="rgb24").astype(float) / 255
    contrast = first.max(axis=(0, 1)) - first.min(axis=(0, 1))
    assert contrast[2] > 0.5
    assert contrast[0] < 0.2


def test_black_and_repeated_frames_and_a_cut(tmp_path: Path) -> None:
    camera = Camera(size=(64, 64), frames=20, crf=0)
    black, _ = watch(tmp_path / "black", "black", 3, camera)
    assert (black.mean(axis=(1, 2)) < 0.01).sum() == 3
    repeats, _ = watch(tmp_path / "repeats", "repeats", 0.4, camera)
    same = [bool((a == b).all()) for a, b in pairwise(repeats)]
    assert 3 <= sum(same) <= 14
    cut, _ = watch(tmp_path / "cut", "cut", 0.25, camera)
    jump = np.abs(np.diff(cut.mean(axis=(1, 2))))
    assert jump.argmax() == 14
    assert jump.max() > 0.2


def test_noise_of_photons_grows_with_the_light(tmp_path: Path) -> None:
    camera = Camera(size=(64, 64), frames=30, crf=0, noise=0.03, optics=Optics(photons=True))
    for background, expected in ((0.1, 0.9), (0.6, 0.4)):
        case = make_case("noise", background=background)
        film = render_film(case, tmp_path / f"{background}", camera)
        with av.open(str(film)) as container:
            light = np.array([frame.to_ndarray(format="gray") for frame in container.decode(video=0)]) / 255
        assert light.std() == pytest.approx(0.03 * expected**0.5, rel=0.08)


@pytest.mark.parametrize("codec", ENCODERS)
def test_every_encoder_writes_what_can_be_read(codec: str, tmp_path: Path) -> None:
    container = ENCODERS[codec].containers[0]
    film = render_film(
        PRESETS["A"], tmp_path, Camera(size=(64, 96), frames=6, codec=codec, container=container, crf=12)
    )
    with av.open(str(film)) as opened:
        frames = [frame.to_ndarray(format="gray") for frame in opened.decode(video=0)]
    assert len(frames) == 6
    assert frames[0].min() < 0.5 * frames[0].max()


def test_names_and_strengths_are_read_and_refused() -> None:
    assert parse_deviations("rotation=0.03, Flicker") == [("rotation", 0.03), ("flicker", None)]
    with pytest.raises(InputError, match="no deviation is called 'wobble'; deviations: rotation"):
        parse_deviations("wobble=1")
    with pytest.raises(InputError, match="'much' of the deviation 'shake' is not a number"):
        parse_deviations("shake=much")
    with pytest.raises(InputError, match="steep needs case C, not A"):
        deviate(make_case("A"), SMALL, "steep")
    with pytest.raises(InputError, match="does not hold ffv1; give mkv"):
        Camera(codec="ffv1")
    with pytest.raises(InputError, match="gamma = 9"):
        Optics(gamma=9.0)


def test_command_breaks_several_assumptions(tmp_path: Path, capsys) -> None:
    out = tmp_path / "film"
    arguments = ["synth", "A", "--out", str(out), "--size", "64x64", "--frames", "6", "--duration", "5"]
    assert main([*arguments, "--deviation", "dimming=0.2,vortex", "--quiet"]) == 0
    truth = json.loads((out / "truth.json").read_text(encoding="utf-8"))
    assert [entry["name"] for entry in truth["deviations"]] == ["dimming", "vortex"]
    assert truth["medium"]["flow"]["vortex"] == DEVIATIONS["vortex"].usual
    assert truth["gain"][-1] == pytest.approx(0.8)
    capsys.readouterr()
    assert main(["synth", "--list"]) == 0
    assert "rotation" in capsys.readouterr().out
    assert main(["synth", "demo", "--out", str(out), "--deviation", "shake"]) == 2
    assert "--deviation cannot be given" in capsys.readouterr().err

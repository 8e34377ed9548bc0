"""Light that changes or is uneven: found on the background, divided out, and not confused with a law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from video2pde.field import Grid
from video2pde.recording.illumination import measure_illumination
from video2pde.recording.othercolour import OtherColour
from video2pde.recording.surface import fit_surface
from video2pde.recording.synth import Case, exact_field, make_case, Plume

GRID, TIMES = Grid(80, 80, 200.0, 200.0), np.linspace(0, 34, 120)
Y, X = np.meshgrid(np.linspace(-1, 1, 80), np.linspace(-1, 1, 80), indexing="ij")
C = make_case("C", coefficients={"grad_squared": 9.0, "laplacian": 0.7})


def film(case: Case, gain=None, flat=None, noise: float = 0.004, seed: int = 1) -> np.ndarray:
    """Return intensities of a film, 255 being white."""
    light = (1 - exact_field(case, GRID, TIMES).values) * (1.0 if flat is None else flat)
    light = light * (np.ones(len(TIMES)) if gain is None else gain)[:, None, None]
    rough = light + noise * np.random.default_rng(seed).standard_normal(light.shape)
    return (255 * np.clip(rough, 0, 1)).astype(np.float32)


def find(*arguments, mode: str = "auto", **options):
    found = measure_illumination(film(*arguments, **options), mode, bright=False, white=255.0)
    assert found is not None
    return found


def error(found, gain) -> float:
    """Return the rms error of the gain's course, and hold its mean level to 0.8 %."""
    ratio = found.gain / gain
    assert ratio.mean() == pytest.approx(1.0, abs=8e-3)
    return float(np.std(ratio))


ALONG = np.linspace(0, 1, len(TIMES))
FLICKER = 1 + 0.02 * np.random.default_rng(5).standard_normal(len(TIMES))
STEPS = 1 - 0.05 * ((ALONG > 0.3) & (ALONG < 0.6))


@pytest.mark.parametrize("case", [make_case("A"), C, make_case("C-alt"), make_case("Fisher")], ids=lambda c: c.name)
@pytest.mark.parametrize("gain", [1 - 0.1 * ALONG, 1 - 0.03 * ALONG], ids=["10 %", "3 %"])
def test_dimming_is_light_under_every_law_whose_background_stays(case: Case, gain) -> None:
    found = find(case, gain)
    assert found.slow_is == "light"
    assert error(found, gain) < 5e-4
    assert "dims by" in found.notes[0]


def test_flicker_jumps_and_both_are_divided_out() -> None:
    for gain in (FLICKER, STEPS):
        found = find(C, gain)
        assert error(found, gain) < 1e-3
    assert find(C, STEPS).jumps == (36, 72)
    assert find(C, FLICKER).flicker == pytest.approx(0.02, rel=0.2)


STEADY = {
    "A": make_case("A"),
    "C": C,
    "C-alt": make_case("C-alt"),
    "Fisher": make_case("Fisher"),
    "B": make_case("B"),
    "B 0.25": make_case("B", background=0.25, peak=0.7),
    "Fisher 0.1": make_case("Fisher", background=0.1),
    "fading": make_case("A", coefficients={"u": -0.02, "constant": 0.0016}),
}


@pytest.mark.parametrize("case", STEADY.values(), ids=STEADY)
def test_steady_light_is_left_alone_even_where_the_background_decays_or_grows(case: Case) -> None:
    found = find(case)
    assert not found.corrected
    assert found.doubts == ()
    assert found.slow_is == ("law" if case.name in ("B",) or (case.name == "Fisher" and case.background) else "none")


EVEN = FLICKER / np.exp(np.log(FLICKER).mean())  # what flicker does to the mean of all frames is not to be known


@pytest.mark.parametrize("gain", [EVEN, STEPS], ids=["flicker", "jumps"])
@pytest.mark.parametrize("name", ["B", "B 0.25", "fading"])
def test_what_is_quick_is_light_where_dye_decays_slowly(name: str, gain) -> None:
    """Flicker flickers slowly, too: the plume, which is divided by its own background, tells how fast that decays."""
    found = find(STEADY[name], gain)
    assert found.slow_is == "law" or STEADY[name].background == STEADY["fading"].background
    assert found.doubts == ()
    assert error(found, gain) < 1.5e-3
    assert np.mean(found.gain / gain) == pytest.approx(1.0, abs=1e-3)


def test_decay_that_hardly_shows_beside_flicker_is_left_in_where_it_is_told() -> None:
    """Its course may be as small as what smoothing leaves of flicker: what is the law's is not divided out for that."""
    fading = make_case("B", coefficients={"u": -0.02, "laplacian": 1.0}, background=0.08)
    trends = []
    for seed in (1, 5, 8, 10):
        gain = np.exp(0.02 * np.random.default_rng(seed).standard_normal(len(TIMES)))
        found = find(fading, gain)
        if found.slow_is == "law":
            assert found.level == pytest.approx(0.02 / len(TIMES) ** 0.5, rel=0.3)
            assert found.unknown >= found.level
            trends.append(np.polyfit(ALONG, found.gain / gain, 1)[0])
    assert len(trends) == 4
    assert np.abs(trends).max() < 0.004


def test_a_ramp_of_jumps_next_to_each_other_is_taken_as_it_is() -> None:
    for first in (12, 60, 100):
        ramp = np.exp(-0.02 * sum(np.arange(len(TIMES)) >= first + k for k in range(4)))
        found = find(C, ramp)
        assert found.jumps == tuple(first + k for k in range(4))
        assert error(found, ramp) < 5e-4


def test_what_does_not_flicker_is_not_said_to() -> None:
    found = find(C, STEPS, noise=0.1)
    assert not found.level
    assert "flicker" not in " ".join(found.notes)


@pytest.mark.parametrize("frames", [3, 5, 8, 12])
def test_a_few_frames_are_divided_by_their_background_where_that_is_asked_for(frames: int) -> None:
    found = measure_illumination(film(C, FLICKER)[:frames], "gain", bright=False, white=255.0)
    assert found is None or np.std(found.gain / FLICKER[:frames]) < 1e-2


def test_a_jump_is_found_while_a_background_grows_fast() -> None:
    found = find(STEADY["Fisher 0.1"], STEPS)
    assert found.jumps == (36, 72)
    assert found.slow_is == "law"
    assert error(found, STEPS) < 2e-3


@pytest.mark.parametrize(("background", "threshold"), [(0.22, 0.3), (0.2, 0.35), (0.34, 0.3)])
def test_a_background_that_reacts_not_linearly_is_not_taken_for_a_lamp(background: float, threshold: float) -> None:
    """u(u − α)(1.05 − u) everywhere: below the threshold the ground fades, above it grows, as under changing light."""
    u = background + (0.8 - background) * np.exp(-((X / 0.35) ** 2) - (Y / 0.3) ** 2)
    frames = [u]
    for step in np.diff(TIMES):
        for _ in range(4):
            u = u + step / 4 * 0.2 * u * (u - threshold) * (1.05 - u)
        frames.append(u)
    rough = 1 - np.stack(frames) + 0.004 * np.random.default_rng(2).standard_normal((len(TIMES), *u.shape))
    found = measure_illumination((255 * rough).astype(np.float32), "auto", bright=False, white=255.0)
    assert found is not None
    assert found.slow > 0.03
    assert found.slow_is == "law"
    assert not found.corrected


@pytest.mark.parametrize("background", [0.03, 0.05])
def test_a_background_that_loses_most_of_its_brightness_is_not_taken_for_a_lamp(background: float) -> None:
    """Half of a lamp is not lost, and growth that saturates explains background and plume together."""
    growth = {"u": 0.1134, "u_squared": -0.1238, "laplacian": 0.99}
    found = find(make_case("Fisher", coefficients=growth, background=background))
    assert found.slow > 0.7
    assert not found.corrected
    assert found.slow_is == "law"
    assert found.doubts == ()


def test_what_cannot_be_told_apart_is_said_and_not_done() -> None:
    found = find(make_case("B"), 1 - 0.1 * ALONG)
    assert not found.corrected
    assert "set recording.illumination to gain if it is the light" in found.doubts[0]
    asked = find(make_case("B"), 1 - 0.1 * ALONG, mode="gain")
    assert asked.corrected
    dim = film(make_case("B", drift=(0.0, 0.0)), 1 - 0.1 * ALONG)
    bright = measure_illumination(dim, "auto", bright=True, white=None)
    assert bright is not None
    assert bright.slow_is == "unknown"


@pytest.mark.parametrize(
    "flat", [1 - 0.1 * (Y**2 + X**2), 1 - 0.1 * (Y - 0.3) ** 2 - 0.15 * (X + 0.2) ** 2 + 0.02 * X**3]
)
def test_uneven_light_is_continued_under_the_plume(flat) -> None:
    found = find(C, flat=flat)
    assert found.flat is not None
    assert np.abs(found.flat / (flat / flat.max()) - 1).max() < 4e-3
    everything = find(C, gain=(1 - 0.1 * ALONG) * FLICKER, flat=flat)
    assert everything.flat is not None
    assert np.abs(everything.flat / (flat / flat.max()) - 1).max() < 4e-3
    assert error(everything, (1 - 0.1 * ALONG) * FLICKER) < 2e-3


def test_a_tail_too_faint_to_tell_from_light_does_not_bend_the_surface() -> None:
    """Diffusion from many spots: beside the plume a background that is dimmed by less than shows."""
    spots = Plume(0.7, 41, 7, 1.0, "spots")
    flat = 1 - 0.15 * (Y**2 + X**2)
    frames = film(replace(make_case("A", coefficients={"laplacian": 2.0}), plume=spots), flat=flat)
    found = measure_illumination(frames, "auto", bright=False, white=255.0)
    assert found is not None
    assert found.flat is not None
    assert np.abs(found.flat / (flat / flat.max()) - 1).max() < 5e-4
    near, _ = fit_surface(frames, found.gain, found.background)  # up to the plume
    assert near is not None
    assert np.abs(near / (flat / flat.max()) - 1).max() > 1e-3


def test_a_picture_without_background_tells_nothing() -> None:
    blobs = [1 - 0.8 * np.exp(-((X - 0.8 * t) ** 2 + (Y + 0.5 * t) ** 2) / 0.8) for t in ALONG]
    light = (255 * np.array(blobs) * (1 - 0.1 * ALONG)[:, None, None]).astype(np.float32)
    assert measure_illumination(light, "auto", bright=False, white=255.0) is None


def test_a_wrong_gain_would_be_seen() -> None:
    gain = 1 - 0.1 * ALONG
    assert error(find(C, gain), 1 - 0.11 * ALONG) > 2e-3


def test_a_background_that_climbs_the_levels_of_8_bits_is_no_jump() -> None:
    steps = np.floor(film(make_case("B", background=0.25, peak=0.7), noise=0.0)).astype(np.float32)
    found = measure_illumination(steps, "auto", bright=False, white=255.0, level=1.0)
    assert found is not None
    assert not found.corrected


def in_colours(case: Case, gain: np.ndarray, share: float, flat=None) -> tuple[np.ndarray, OtherColour]:
    """Return a film in the colour that dye takes away, and in one that it takes away by a ``share`` of that."""
    u = exact_field(case, GRID, TIMES).values
    light = gain[:, None, None] * (1.0 if flat is None else flat)
    noise = np.random.default_rng(3).normal(0, 0.004, (2, *u.shape))
    own, other = (255 * (light * (1 - k * u) + n) for k, n in zip((1.0, share), noise, strict=True))
    return own.astype(np.float32), OtherColour("r", other.astype(np.float32), 0.0)


GROWING = make_case("B", background=0.12, coefficients={"u": 0.01, "laplacian": 1.0}, peak=0.5)
FADING = make_case("B", background=0.2, coefficients={"u": -0.012, "laplacian": 1.0}, peak=0.6)


@pytest.mark.parametrize("case", [GROWING, FADING], ids=["grows", "fades"])
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_colour_in_which_dye_hardly_shows_tells_light_from_a_background_of_dye(case: Case, share: float) -> None:
    steady = np.ones(len(TIMES))
    own, other = in_colours(case, steady, share)
    found = measure_illumination(own, "auto", bright=False, white=255.0, other=lambda: other)
    assert found is not None
    assert found.slow_is == "law"
    assert not found.corrected
    assert found.doubts == ()
    for gain in (1 - 0.04 * ALONG, (1 - 0.05 * ALONG**2) * FLICKER**0.2):  # what of the change is light, is divided out
        own, other = in_colours(case, gain, share)
        found = measure_illumination(own, "auto", bright=False, white=255.0, other=lambda other=other: other)
        assert found is not None
        assert found.slow_is == "light"
        assert error(found, gain) < 1e-3 + 8e-3 * share  # of a background that fades or grows by a third
        assert "channel r" in found.notes[-1]


def test_light_alone_changes_all_colours_alike() -> None:
    gain = 1 - 0.06 * ALONG
    own, other = in_colours(C, gain, 0.1)
    found = measure_illumination(own, "auto", bright=False, white=None, other=lambda: other)
    assert found is not None  # without white, this colour alone does not tell
    assert measure_illumination(own, "auto", bright=False, white=None).slow_is == "unknown"  # type: ignore[union-attr]
    assert found.slow_is == "light"
    assert error(found, gain) < 5e-4
    assert not any("channel" in note for note in found.notes)  # measured where the film is read


def test_where_an_encoder_blurs_the_background_another_colour_shows_the_light() -> None:
    gain, flat = 1 - 0.04 * ALONG, 1 - 0.1 * (Y**2 + X**2)
    own, other = in_colours(C, gain, 0.1, flat)
    rng = np.random.default_rng(6)
    held = np.cumsum(rng.normal(0, 0.002, (len(TIMES), 20, 20)), axis=0)
    own *= 1 + np.repeat(np.repeat(held - held.mean(axis=0), 4, axis=1), 4, axis=2).clip(-0.012, 0.012)
    assert measure_illumination(own, "auto", bright=False, white=255.0) is None
    found = measure_illumination(own, "auto", bright=False, white=255.0, other=lambda: other)
    assert found is not None
    assert found.slow_is == "light"
    assert error(found, gain) < 1.5e-3
    assert found.flat is not None
    assert np.abs(found.flat / (flat / flat.max()) - 1).max() < 6e-3


def test_a_colour_in_which_dye_shows_as_well_is_not_asked() -> None:
    own, other = in_colours(GROWING, np.ones(len(TIMES)), 0.8)
    alone = measure_illumination(own, "auto", bright=False, white=255.0)
    found = measure_illumination(own, "auto", bright=False, white=255.0, other=lambda: other)
    assert alone is not None
    assert found is not None
    assert found.slow_is == alone.slow_is
    np.testing.assert_array_equal(found.gain, alone.gain)


def test_no_other_colour_is_read_where_it_was_said_what_to_correct() -> None:
    def never() -> OtherColour:
        raise AssertionError("the film was read once more")

    own, _ = in_colours(C, 1 - 0.06 * ALONG, 0.1)
    for mode in ("gain", "flat", "gain+flat"):
        assert measure_illumination(own, mode, bright=False, white=255.0, other=never) is not None

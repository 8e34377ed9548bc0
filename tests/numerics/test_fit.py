"""The test of fit: right laws pass, broken assumptions are noticed and named, noise is what it is said to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from known_fields import known_field, LAWS

from video2pde.calibration import Calibration
from video2pde.discovery.weighted import Profiles
from video2pde.drift import estimate_drift
from video2pde.field import Field, Grid, Light, Windows
from video2pde.fit import judge as fit_judge
from video2pde.fit.blocks import BlockScale
from video2pde.fit.effects import Context, contrasts, immobile, memory
from video2pde.fit.explain import ask_suspects, Asked, name_cause, undecided
from video2pde.fit.faults import recording_faults
from video2pde.fit.judge import _limit, _weak_scale
from video2pde.fit.law import fit_law, LawFit
from video2pde.fit.noise import film_memory, fourth_difference, Memory, relative_noise, repeated
from video2pde.fit.observation import light_columns, response_columns
from video2pde.fit.result import FitTest, Scale, Suspicion
from video2pde.fit.rules import ask_edges, ask_front, NARROW, rounding_length, unresolved_share
from video2pde.fit.suspects import answered_by, out_of_place, SUSPECTS
from video2pde.fit.view import build_view, View
from video2pde.recording.synth import Camera, deviate, exact_field, find_preset
from video2pde.rollout.model import Model
from video2pde.settings import load_settings
from video2pde.terms import CATALOGUE, LIBRARIES, Term
from video2pde.terms.parse import U

SETTINGS = load_settings(overrides={"run.workers": 1})
SIDE, FRAMES, NOISE = 72, 130, 0.002
TERMS = ("constant", "u", "u_squared", "grad_squared", "u_grad_squared", "laplacian", "porous", "biharmonic")


def filmed(law: str, change: str = "", noise: float = NOISE, seed: int = 1) -> Field:
    """Take an exact field, let something go wrong in its filming, and add white noise."""
    name, _, strength = change.partition("=")
    field = in_medium(law, name, float(strength)) if strength else known_field(law, SIDE, FRAMES)
    u = field.values.astype(float)
    t = np.linspace(0.0, 1.0, len(u))[:, None, None]
    across = np.linspace(-1.0, 1.0, SIDE)
    if change == "gain":
        u = 1 - (1 - u) * (1 - 0.05 * t)
    elif change == "faint gain":
        u = 1 - (1 - u) * (1 - 0.003 * t)
    elif change == "uneven light":
        u = 1 - (1 - u) * (1 - 0.1 * (across[:, None] ** 2 + across[None, :] ** 2))
    elif change == "response":
        u = u + 0.15 * u * (1 - u)
    elif change == "flicker":
        u = 1 - (1 - u) * (1 + 0.01 * np.random.default_rng(9).standard_normal(t.shape))
    u = u + noise * np.random.default_rng(seed).standard_normal(u.shape)
    return Field(u.astype(np.float32), field.times, field.grid)


@lru_cache(maxsize=8)
def in_medium(law: str, deviation: str, strength: float) -> Field:
    """Take the exact field of a law whose medium breaks an assumption."""
    case, _ = deviate(find_preset(law), Camera(), deviation, strength)
    field = known_field(law, SIDE, FRAMES)
    return exact_field(case, field.grid, field.times)


def look(field: Field, library: str, law: str = "") -> tuple[View, LawFit]:
    """Fit a library in weak form on the lattice of the training window; ``law``: with the true drift of a case."""
    windows = Windows.split(len(field))
    train = field.frames(windows.train)
    drift = estimate_drift(field.frames(slice(0, windows.validation_end)), SETTINGS.drift).frames(windows.train)
    terms = [CATALOGUE[name] for name in TERMS]
    velocity = np.stack(find_preset(law).drift.velocity(train.times), axis=1) if law else drift.velocity
    view = build_view(train, velocity, terms, SETTINGS, len(field), moments={}, memory=film_memory(train.values))
    return view, fit_law(view, LIBRARIES[library], recording_faults(train))


@lru_cache(maxsize=16)
def judged(law: str, change: str = "") -> tuple[Scale, tuple[Suspicion, ...], Suspicion | None]:
    library = LAWS[law]
    view, fit = look(filmed(law, change), library)
    widths = {name: 0.005 * abs(value) for name, value in fit.coefficients.items()}
    asked = Asked(view, fit, library, widths, "dark", _limit(fit.freedom))
    suspects = ask_suspects(asked)
    faults = recording_faults(view.film)
    cause = name_cause(asked, LIBRARIES, lambda terms: fit_law(view, terms, faults))
    return _weak_scale(view, fit), suspects, cause


@pytest.mark.parametrize("law", ["A", "C", "Fisher"])
def test_a_right_law_leaves_what_noise_leaves(law: str) -> None:
    scale, suspects, cause = judged(law)
    assert 0.6 < scale.ratio < 1.4
    assert scale.passes
    assert cause is None
    assert not any(suspect.material for suspect in suspects)


@pytest.mark.parametrize(("law", "wrong"), [("C", "C-alt"), ("B", "A")])
def test_a_wrong_law_leaves_more(law: str, wrong: str) -> None:
    view, fit = look(filmed(law), wrong)
    assert not _weak_scale(view, fit).passes
    assert fit.unexplained > 3 * fit.expected


def test_light_that_may_have_changed_is_no_lack_of_fit() -> None:
    """A change of 0.2 % speaks against diffusion alone, unless so much is known to be possible."""
    field = filmed("A", "faint gain")
    ratios = []
    for light in (None, Light(0.002, "dark")):
        view, fit = look(replace(field, light=light), "A")
        ratios.append(_weak_scale(view, fit))
    assert not ratios[0].passes
    assert ratios[1].passes
    view, fit = look(replace(filmed("A", "gain"), light=Light(0.002, "dark")), "A")
    assert not _weak_scale(view, fit).passes


@pytest.mark.parametrize("law", ["A", "C"])
@pytest.mark.parametrize("change", ["gain", "uneven light", "flicker"])
def test_a_broken_assumption_is_noticed_and_named(law: str, change: str) -> None:
    scale, _, cause = judged(law, change)
    assert not scale.passes
    assert cause is not None
    # steady dimming of a law with |∇u|² is hardly told from a constant and u, which is what it adds
    alike = ("missing constant and u",) if (law, change) == ("C", "gain") else ()
    assert cause.name in (change, *alike)
    assert cause.law == LAWS[law]
    for name, true in find_preset(law).law.coefficients.items():
        # how bright the picture is as a whole is part of a nonlinear law's coefficient
        assert cause.coefficients[name] == pytest.approx(true, rel=0.03 if law == "A" else 0.12)


@pytest.mark.parametrize(
    ("law", "change", "name"),
    [
        ("C", "divergence=0.006", "divergence"),
        ("A", "source=0.03", "source"),
        ("C", "source=0.03", "source"),
        ("A", "immobile=0.2", "immobile part"),
        ("C", "immobile=0.2", "immobile part"),
        ("C", "halves=0.4", "coefficients in space"),
        ("A", "pulse=1.2", "flow"),
        ("C", "anisotropy=0.4", "anisotropy"),
    ],
)
def test_a_medium_that_breaks_an_assumption_is_noticed_and_named(law: str, change: str, name: str) -> None:
    scale, _, cause = judged(law, change)
    assert not scale.passes
    assert cause is not None
    assert cause.name == name


def test_what_stays_is_taken_from_the_law_and_from_the_drift() -> None:
    """u = (1 − m) w + m s obeys u_t = L(u) − v·∇u + m × the column, to first order in m."""
    share = 0.04
    for law in ("A", "C"):
        view, fit = look(in_medium(law, "immobile", share), LAWS[law], law)
        true = find_preset(law).law.coefficients
        known = np.array([*(true[name] for name in fit.names), 1.0, 1.0])
        left = view.system.b - view.columns([*fit.names, "drift_x", "drift_y"]) @ known
        column = immobile(Context(view, replace(fit, coefficients=true)))[:, 0]
        assert left @ column / (column @ column) == pytest.approx(share, rel=0.25)
        assert np.linalg.norm(left - share * column) < 0.35 * np.linalg.norm(left)


@pytest.mark.parametrize("law", ["A", "C"])
def test_memory_leaves_a_law_its_mean_rate(law: str) -> None:
    """What was before is most of what is: beside it, a law would be left with hardly any rate of its own."""
    view, fit = look(filmed(law, ""), LAWS[law], law)
    rate = view.columns([*fit.names]) @ np.array([fit.coefficients[name] for name in fit.names])
    columns = memory(Context(view, fit))
    share = rate @ columns / (rate @ rate)
    assert np.abs(share).max() < 0.15
    assert np.linalg.norm(columns, axis=0).max() > 0.1 * np.linalg.norm(rate)


def test_a_response_curve_is_named_or_taken_for_the_term_that_it_makes() -> None:
    """For diffusion the two are one to first order: h″|∇u|²."""
    scale, _, cause = judged("A", "response")
    assert not scale.passes
    assert cause is not None
    assert cause.name in ("response", "missing grad_squared", "missing u_grad_squared")


def test_the_light_is_told_in_numbers() -> None:
    _, _, cause = judged("A", "gain")
    assert cause is not None
    # 5 % in the 34 s of the film
    assert "dims by about 0.15 % a second" in cause.words


def test_what_is_left_has_the_covariance_that_is_expected() -> None:
    """Over seeds, the mean square of each residual is its expected variance: neither noise nor overlap is off."""
    ratios = [look(filmed("A", seed=seed), "A")[1] for seed in range(2, 8)]
    squares = np.mean([fit.residual**2 for fit in ratios], axis=0)
    expected = np.mean([np.diag(fit.left_spread) for fit in ratios], axis=0)
    assert squares.sum() / expected.sum() == pytest.approx(1.0, abs=0.25)
    # and with half the noise a quarter of it is expected, as it is measured and not assumed
    quiet = look(filmed("A", noise=NOISE / 2), "A")[1]
    assert quiet.expected / ratios[0].expected == pytest.approx(0.25, rel=0.2)


@pytest.mark.parametrize("law", ["A", "C", "Fisher"])
def test_columns_of_the_camera_are_the_derivative_of_the_system(law: str) -> None:
    """A film through a response, or in uneven light, changes b − Θξ by the column times the size of the change."""
    exact = known_field(law, SIDE, FRAMES)
    library = LAWS[law]
    view, fit = look(exact, library, law)
    size = 1e-3
    across = (exact.grid.x - exact.grid.width / 2) / exact.grid.width
    bent = exact.values + size * exact.values * (1 - exact.values)
    lit = exact.values - size * across[None, None, :] * (1 - exact.values)
    along_x = Profiles.powers(exact.grid.x, 1, exact.grid.width / 2).take(1)
    light = light_columns(view, fit.coefficients, Profiles.powers(exact.grid.y, 0), along_x, "dark") / exact.grid.width
    for values, column in (
        (bent, response_columns(view, fit.coefficients, (U * (1 - U),))[:, 0]),
        (lit, light[:, 0]),
    ):
        again, _ = look(Field(values.astype(np.float32), exact.times, exact.grid), library, law)
        names = [*fit.names, "drift_x", "drift_y"]
        known = np.array([*fit.coefficients.values(), 1.0, 1.0])
        change = (again.system.b - again.columns(names) @ known) - (view.system.b - view.columns(names) @ known)
        off = fit.without(change / size - column)
        # averages over cells are bent, not values at points
        assert np.linalg.norm(off) < 0.12 * np.linalg.norm(fit.without(column))


def test_noise_that_goes_on_is_told_from_white_noise() -> None:
    rng = np.random.default_rng(3)
    white = rng.standard_normal((400, 300))
    lasting = np.empty_like(white)
    lasting[:, 0] = white[:, 0]
    for k in range(1, white.shape[1]):
        lasting[:, k] = 0.6 * lasting[:, k - 1] + 0.8 * white[:, k]
    for series, rho in ((white, 0.0), (lasting, 0.6)):
        near, far = (float(np.mean(fourth_difference(series, apart) ** 2)) for apart in (1, 3))
        assert repeated(near, far, 0.01) == pytest.approx(rho, abs=0.05)
    weights = np.full(24, 1 / 24)
    averaged = lasting[:, 40:64] @ weights
    memory = Memory(np.zeros(1), np.array([0.6]))
    assert np.var(averaged) == pytest.approx(float(memory.variance_of(weights, np.zeros(1))[0]), rel=0.25)
    # as white noise it would be taken for a fourth of that
    plain = Memory(np.zeros(1), np.zeros(1))
    assert np.var(averaged) > 3 * float(plain.variance_of(weights, np.zeros(1))[0])


def test_noise_of_held_out_frames_as_a_relative_error() -> None:
    field = filmed("A")
    size = np.sqrt(np.mean(field.values.astype(float) ** 2))
    assert relative_noise(field.values) == pytest.approx(NOISE / size, rel=0.05)
    assert relative_noise(field.values[:4]) is None
    # outside a mask there may be anything: errors are not counted there, and neither is noise
    mask = np.zeros(field.grid.shape, bool)
    mask[20:50, 20:50] = True
    wild = np.where(mask, field.values, 50 * np.random.default_rng(5).standard_normal(field.values.shape))
    inside = np.sqrt(np.mean(field.values[:, mask].astype(float) ** 2))
    assert relative_noise(wild.astype(np.float32), mask) == pytest.approx(NOISE / inside, rel=0.1)


def test_contrasts_leave_out_what_is_the_same_everywhere() -> None:
    found = contrasts(5)
    assert found.shape == (5, 4)
    assert np.allclose(np.ones(5) @ found, 0.0)


def test_every_suspect_has_columns_words_and_a_cure() -> None:
    view, fit = look(filmed("A"), "A")
    asked = Asked(view, fit, "A", {"laplacian": 0.01}, "dark", 2.0)
    for index, suspect in enumerate(SUSPECTS):
        columns = asked.columns(index, suspect, fit)
        assert columns.shape[0] == len(view.centres)
        assert np.isfinite(columns).all()
        assert suspect.meaning
        assert suspect.cure


def test_a_flow_that_changes_is_asked_about_only_where_a_law_fails() -> None:
    late = [suspect for suspect in SUSPECTS if suspect.late]
    assert [suspect.name for suspect in late] == ["flow"]
    view, fit = look(filmed("A"), "A")
    asked = Asked(view, fit, "A", {"laplacian": 0.01}, "dark", 2.0)
    assert not {id(suspect) for suspect, _ in asked.answers} & {id(suspect) for suspect in late}


def test_light_and_decay_that_say_the_same_leave_the_law_its_coefficient() -> None:
    """Of light that is signal, flicker at will holds u itself: with both, the decay would be any number."""
    view, fit = look(filmed("B"), "B")
    answers = {found.name: found for found in ask_suspects(Asked(view, fit, "B", {"u": 1e-4}, "bright", 2.0))}
    for name in ("flicker", "gain"):
        assert answers[name].coefficients["u"] == pytest.approx(fit.coefficients["u"], rel=0.05)
    # what is not the law's own still moves it
    assert answers["missing u_squared"].coefficients["u"] != pytest.approx(fit.coefficients["u"], rel=1e-3)


def test_what_the_settings_have_answered_is_no_suspect() -> None:
    given = load_settings(overrides={"recording.reference": "flat.tif", "recording.response": "linear"}).recording
    bleached = load_settings(preset="frap")
    assert answered_by(given) == {"uneven light", "response"}
    assert not answered_by(SETTINGS.recording, ("dxx", "dyy"))
    assert answered_by(SETTINGS.recording, ("u", "dxx", "dyy", "dxy")) == {"anisotropy"}
    assert answered_by(bleached.recording) == {"response"}
    assert out_of_place(bleached.frap) == {"source"}
    assert not out_of_place(SETTINGS.frap)
    view, fit = look(filmed("A"), "A")
    asked = Asked(view, fit, "A", {"laplacian": 0.01}, "dark", 2.0)
    silent = replace(asked, answered=answered_by(given))
    names = [{found.name for found in ask_suspects(question)} for question in (asked, silent)]
    assert names[0] - names[1] == {"uneven light", "response"}


def test_explanations_that_are_beaten_widen_no_interval() -> None:
    """Where nothing explains all, forty columns that leave a little less than one does are no better than that one."""
    asked = Asked(None, SimpleNamespace(freedom=100.0), "A", {}, "dark", 2.0)  # type: ignore[arg-type]

    def told(name: str, after: float, unknowns: int) -> Suspicion:
        found = Suspicion.of_recording(name, "A", "", "", material=True)
        return replace(found, criterion=asked.criterion(after, unknowns), after=after)

    def left(*suspects: Suspicion) -> list[str]:
        return [suspicion.name for suspicion in undecided(asked, suspects)]

    right, worse = told("right", 1.0, 2), told("worse", 1.2, 2)
    assert left(right, worse) == ["right"]
    assert left(right, told("as good", 1.05, 2)) == ["right", "as good"]
    assert left(told("one", 10.0, 2), told("forty", 9.0, 42)) == ["one"]
    assert left(worse) == ["worse"]
    assert left() == []


def test_an_interval_reaches_to_the_value_with_a_cause_beyond_noise() -> None:
    law = SimpleNamespace(names=("laplacian",), coefficients={"laplacian": 2.0}, coefficient_errors=[1.0])
    named = SimpleNamespace(library="A", terms=(), estimates={"laplacian": SimpleNamespace(value=2.0)})
    told = Suspicion.of_recording("flow", "A", "", "", material=True)

    def reach(shift: float) -> float:
        suspects = [replace(told, coefficients={"laplacian": 9.0}, shifts={"laplacian": shift})]
        return fit_judge._lack(law, suspects, None, (), named, 0.0)["laplacian"]  # type: ignore[arg-type]

    assert [reach(0.0), reach(0.3), reach(7.0)] == [0.0, 0.3, 2.0]
    # an effect beside another law: as far as that one's coefficient lies from this one's
    other = replace(told, law="B", coefficients={"laplacian": 2.5, "u": 1.0})
    assert fit_judge._lack(law, (), other, (), named, 0.0)["laplacian"] == 0.5  # type: ignore[arg-type]


def test_a_deviation_counts_as_far_as_it_lasts() -> None:
    standard = np.zeros((6, 2, 2))
    standard[2, 0, 0] = 9.0
    standard[3, 0, 0] = -7.0
    assert BlockScale((1, 1), standard, standard, standard).worst == 0.0
    standard[4:, 1, 1] = 6.0, 5.0
    assert BlockScale((1, 1), standard, standard, standard).worst == 5.0
    assert BlockScale((1, 1), standard[:1], standard[:1], standard[2:3]).worst == 9.0


def calibrated(law: dict[str, float], own: Mapping[str, Term] | None = None) -> Calibration:
    """Stand in for a calibration: the rules ask for its law alone."""
    return SimpleNamespace(library="C", model=Model.of(law, own=own))  # type: ignore[return-value]


def test_a_front_narrower_than_a_cell_is_suspected() -> None:
    """D/(a|∇u|) of the film's own law is about a cell; with a tenth of the diffusion no grid of this pitch shows it."""
    film = filmed("C")
    usual = rounding_length(film, calibrated({"grad_squared": 9.0, "laplacian": 0.7}))
    assert usual > 0.2
    assert rounding_length(film, calibrated({"grad_squared": 9.0, "laplacian": 0.07})) == pytest.approx(usual / 10)
    mine = {"mine": Term.of("mine", ("xx", "2*u"), ("yy", "2*u"))}
    assert rounding_length(film, calibrated({"grad_squared": 9.0, "mine": 0.35}, mine)) == pytest.approx(usual)
    found = ask_front(film, calibrated({"grad_squared": 9.0, "laplacian": 0.02 / usual}))
    assert found is not None
    assert found.material
    assert ask_front(film, calibrated({"laplacian": 0.001})) is None


def test_a_front_of_a_few_tenths_of_a_cell_leaves_diffusion_uncertain() -> None:
    film = filmed("C")
    usual = rounding_length(film, calibrated({"grad_squared": 9.0, "laplacian": 0.7}))
    just = 0.7 * NARROW / usual
    shares = [unresolved_share(film, calibrated({"grad_squared": 9.0, "laplacian": d})) for d in (just, 2 * just, 0.7)]
    assert shares[:2] == pytest.approx([1.0, 1 / 16])
    assert shares[2] < 0.03
    assert unresolved_share(film, calibrated({"laplacian": 1.5})) == 0.0


def test_what_passes_the_edge_is_suspected_and_a_fading_background_is_not() -> None:
    film = filmed("A")
    assert ask_edges(film, calibrated({"laplacian": 1.0})) is None
    faded = replace(film, values=film.values + np.linspace(0, -0.2, len(film), dtype=np.float32)[:, None, None])
    assert ask_edges(faded, calibrated({"laplacian": 1.0})) is None
    middle = SIDE // 2
    cut = Field(film.values[:, :, middle:], film.times, Grid(SIDE, middle, 200.0, 100.0))
    found = ask_edges(cut, calibrated({"laplacian": 1.0}))
    assert found is not None
    assert "measured" in found.words


def test_what_explains_the_closest_law_is_the_cause_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law that is chosen by its forecasts need not be the one that leaves least."""
    guilty = SimpleNamespace(name="flow")
    blank = FitTest("", False, "", 0.1, 0.01, (), (), (), {}, None, "", np.zeros(0))

    def judge(look: SimpleNamespace, asked: bool) -> FitTest:
        found: Any = {"suspects": (guilty,), "cause": guilty} if asked else {}
        return replace(blank, library=look.name, passes=not look.failing, **found)

    def looks(name: str, calibration: SimpleNamespace) -> SimpleNamespace:
        return SimpleNamespace(name=name, failing=calibration.excess > 1, excess=calibration.excess)

    def law(excess: float, converged: bool = True) -> SimpleNamespace:
        return SimpleNamespace(excess=excess, fit=SimpleNamespace(converged=converged))

    bench = SimpleNamespace(look=looks, judge=judge)
    monkeypatch.setattr(fit_judge, "_Bench", SimpleNamespace(of=lambda *_: bench))
    monkeypatch.setattr(fit_judge, "_ask_rollouts", lambda test, *_: test)

    def causes(calibrations: Any) -> list[str | None]:
        nothing: Any = None
        tests = fit_judge.test_laws(nothing, nothing, {}, calibrations, SETTINGS, 10)
        return [None if test.cause is None else test.cause.name for test in tests.values()]

    assert causes({"A": law(3.0), "B": law(2.0)}) == ["flow", "flow"]
    assert causes({"A": law(3.0), "B": law(0.5)}) == [None, "flow"]
    assert causes({"A": law(3.0), "B": law(0.5, converged=False)}) == ["flow", "flow"]

"""What each peer is asked to do; libraries are imported by the task that needs them, in its own process.

A task prepares (imports, converts the field, compiles) and returns the function that is timed. That function gives its
:class:`Finding`: the intrinsic coefficients that it found and the true ones, both in the peer's own vocabulary.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.support.scores import largest_error, same_structure
from video2pde.field import Field, Grid, Windows
from video2pde.recording.synth import Case, exact_field


@dataclass(frozen=True)
class Finding:
    """Coefficients found and true, a remark, and the time where the peer's own clock leaves its compilation out."""

    found: dict[str, float]
    truth: dict[str, float]
    remark: str = ""
    seconds: float | None = None


Fit = Callable[[], Finding]


@dataclass(frozen=True, eq=False)
class Given:
    """What a task works on: the recording, the exact field below its noise, and the truth."""

    recording: Field
    exact: Field
    case: Case

    @property
    def train(self) -> Field:
        """The frames that everyone fits."""
        return self.recording.frames(Windows.split(len(self.recording)).train)

    @property
    def law(self) -> dict[str, float]:
        """The true intrinsic coefficients."""
        return self.case.law.coefficients

    @property
    def is_noisy(self) -> bool:
        return not np.array_equal(self.recording.values, self.exact.values)

    @property
    def drift(self) -> tuple[float, float]:
        """The true drift (v_x, v_y), which is constant."""
        v_x, v_y = self.case.drift.velocity(0.0)
        return float(v_x), float(v_y)


@dataclass(frozen=True)
class Task:
    """A peer's task: its preparation, the modules that it needs, and what it is given beside the field."""

    name: str
    title: str
    prepare: Callable[[Given], Fit]
    needs: tuple[str, ...] = ()
    given: str = ""
    structure_given: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


def small_field(case: Case) -> Field:
    """Make a field that is just large enough to compile on."""
    return exact_field(case, Grid(48, 48, 200.0, 200.0), np.linspace(0, case.duration, 80))


# ------------------------------------------------------------------------------------------------ video2pde


def prepare_weak(given: Given) -> Fit:
    """Drift, weak system, diagnosis of all libraries: the contender that explains most."""
    from video2pde.settings import load_settings
    from video2pde.stages import discover_structure, measure_drift

    settings = load_settings(overrides={"run.workers": 1})

    def fit(chosen: Field = given.recording) -> Finding:
        windows = Windows.split(len(chosen))
        known = chosen.frames(slice(0, windows.validation_end))
        drift = measure_drift(known, settings)
        best = discover_structure(known, drift, windows, settings).contenders[0]
        return Finding({term.name: best.coefficients[term.name] for term in best.terms}, given.law)

    fit(small_field(given.case))
    return fit


def prepare_calibrated(given: Given) -> Fit:
    """The same, then rollout calibration of every contender with 50 bootstrap replicates, validation, selection."""
    from video2pde.selection import select
    from video2pde.settings import load_settings
    from video2pde.stages import calibrate_contender, discover_structure, final_models, measure_drift, validate_models

    settings = load_settings(overrides={"run.workers": 1})

    def fit(chosen: Field = given.recording) -> Finding:
        windows = Windows.split(len(chosen))
        known = chosen.frames(slice(0, windows.validation_end))
        train = known.frames(windows.train)
        drift = measure_drift(known, settings)
        found = discover_structure(known, drift, windows, settings)
        calibrations = {
            contender.library: calibrate_contender(contender, train, drift.frames(windows.train), found, None, settings)
            for contender in found.contenders
        }
        models = final_models(calibrations, {})
        scores = validate_models(known, windows.validation, drift, models, found.diffusion, settings)
        selection = select(calibrations, scores, settings.selection, min(train.grid.dx, train.grid.dy), "")
        if selection.chosen is None:
            return Finding({}, given.law, selection.verdict)
        estimates = calibrations[selection.chosen].estimates
        listed = ", ".join((selection.chosen, *selection.alternatives))
        remark = "" if selection.verdict == "law" else f"{selection.verdict}: {listed}"
        return Finding({name: estimate.value for name, estimate in estimates.items()}, given.law, remark)

    fit(small_field(given.case))
    return fit


def prepare_calibrated_terms(given: Given) -> Fit:
    """Rollout calibration of the right library alone, with 50 bootstrap replicates."""
    from video2pde.settings import load_settings
    from video2pde.stages import calibrate_contender, discover_structure, measure_drift

    settings = load_settings(overrides={"run.workers": 1})

    def fit(chosen: Field = given.recording) -> Finding:
        windows = Windows.split(len(chosen))
        known = chosen.frames(slice(0, windows.validation_end))
        drift = measure_drift(known, settings)
        found = discover_structure(known, drift, windows, settings)
        right = next(c for c in found.contenders if {term.name for term in c.terms} == set(given.law))
        part = known.frames(windows.train), drift.frames(windows.train)
        estimates = calibrate_contender(right, *part, found, None, settings).estimates
        return Finding({name: estimate.value for name, estimate in estimates.items()}, given.law)

    fit(small_field(given.case))
    return fit


# ------------------------------------------------------------------------------------------------ the paper's text


def make_film(recording: Field) -> Any:
    """Convert a field, with the paper's pitch L/(n − 1)."""
    from benchmarks.support.plain import Film

    return Film(recording.values.astype(float), recording.grid.width / (recording.grid.nx - 1), recording.dt)


def prepare_plain(given: Given) -> Fit:
    """The weak fit of the paper's full library."""
    from benchmarks.support import plain

    train = given.train

    def fit() -> Finding:
        film = plain.smooth(make_film(train))
        velocity = plain.measure_drift(film)
        found = plain.fit_sparse(*plain.weak_columns(film, velocity, len(given.recording)), plain.FULL)
        return Finding({name: value for name, value in found.items() if "drift" not in name}, given.law)

    return fit


def prepare_plain_calibrated(given: Given) -> Fit:
    """The weak fit of the right library, then Nelder–Mead on its rollout."""
    from benchmarks.support import plain

    train = given.train

    def fit() -> Finding:
        film = plain.smooth(make_film(train))
        velocity = plain.measure_drift(film)
        weak = plain.fit_sparse(*plain.weak_columns(film, velocity, len(given.recording)), list(given.law))
        start = {name: weak.get(name, 0.0) for name in given.law}
        return Finding(plain.calibrate(film, velocity, start), given.law)

    return fit


# ------------------------------------------------------------------------------------------------ PySINDy

SHARES = (0.003, 0.01, 0.02, 0.04, 0.08, 0.15)
SUBDOMAINS = 400
EVERY = 5
"""Of the strong form's samples, every fifth is used."""


def two_states(train: Field, smoothing: float) -> tuple[Any, Any]:
    """Return PySINDy's array (y, x, t, state) with states u and |∇u|² (which its libraries lack), and its grid."""
    from pysindy.utils import AxesArray  # type: ignore[import-untyped]
    from scipy.ndimage import gaussian_filter

    u = np.moveaxis(train.values, 0, -1).astype(float)
    u_y, u_x = np.gradient(gaussian_filter(u, (smoothing, smoothing, 0)), train.grid.dy, train.grid.dx, axis=(0, 1))
    states = np.stack([u, u_x**2 + u_y**2], axis=-1)
    grid = np.stack(np.meshgrid(train.grid.y, train.grid.x, train.times, indexing="ij"), axis=-1)
    return AxesArray(states, {"ax_spatial": [0, 1], "ax_time": 2, "ax_coord": 3}), grid


def choose_threshold(theta: Any, target: Any, names: list[str], truth: dict[str, float]) -> dict[str, float]:
    """Fit STLSQ over thresholds and keep the fit most in its favour: the right structure first, then the error."""
    import pysindy  # type: ignore[import-untyped]

    fits = []
    for share in SHARES:
        optimizer = pysindy.STLSQ(threshold=share * np.linalg.norm(target), alpha=1e-6, normalize_columns=True)
        optimizer.fit(theta, target)
        found = dict(zip(names, map(float, optimizer.coef_[0]), strict=True))
        fits.append({name: value for name, value in found.items() if name not in ("u_1", "u_2")})
    return min(fits, key=lambda found: (not same_structure(found, truth), largest_error(found, truth)))


def pysindy_truth(law: dict[str, float]) -> dict[str, float]:
    """Write the law in PySINDy's names: state u, state w = |∇u|², 1 along y, 2 along x."""
    truth = {"u_11": law["laplacian"], "u_22": law["laplacian"]}
    return {**truth, "w": law["grad_squared"]} if "grad_squared" in law else truth


def prepare_pysindy_weak(given: Given) -> Fit:
    """PySINDy's WeakPDELibrary up to second order."""
    import pysindy

    train = given.train
    states, grid = two_states(train, 1.0 if given.is_noisy else 0.0)

    def fit() -> Finding:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.random.seed(0)  # noqa: NPY002 - the library draws its subdomains from the global generator
            library = pysindy.WeakPDELibrary(
                function_library=pysindy.PolynomialLibrary(degree=1, include_bias=False),
                derivative_order=2,
                spatiotemporal_grid=grid,
                K=SUBDOMAINS,
                p=4,
                include_interaction=False,
                H_xt=[24.0, 24.0, 3.4],
            )
            library.fit([states])
            theta, target = np.asarray(library.transform([states])[0]), library.convert_u_dot_integral(states)
            names = library.get_feature_names(["u", "w"])
            truth = pysindy_truth(given.law)
            return Finding(choose_threshold(theta, np.asarray(target)[:, :1], names, truth), truth)

    return fit


def prepare_pysindy_strong(given: Given) -> Fit:
    """PySINDy's PDELibrary up to second order; with noise, its smoothed finite differences."""
    import pysindy

    train = given.train
    states, grid = two_states(train, 1.0 if given.is_noisy else 0.0)
    differences = pysindy.SmoothedFiniteDifference if given.is_noisy else pysindy.FiniteDifference

    def fit() -> Finding:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library = pysindy.PDELibrary(
                function_library=pysindy.PolynomialLibrary(degree=1, include_bias=False),
                derivative_order=2,
                spatial_grid=grid[:, :, 0, :2],
                include_interaction=False,
                differentiation_method=differences,
            )
            library.fit([states])
            theta = np.asarray(library.transform([states])[0])
            target = np.asarray(differences(axis=2)._differentiate(np.asarray(states)[..., :1], train.times))
            theta, target = theta.reshape(-1, theta.shape[-1])[::EVERY], target.reshape(-1, 1)[::EVERY]
            truth = pysindy_truth(given.law)
            return Finding(choose_threshold(theta, target, library.get_feature_names(["u", "w"]), truth), truth)

    return fit


# ------------------------------------------------------------------------------------------------ DeepXDE

TRAINING_SECONDS = 30.0


def prepare_deepxde(given: Given) -> Fit:
    """DeepXDE's inverse problem: a tanh network, Adam, coefficients as trainable variables, until the time is up."""
    import deepxde  # type: ignore[import-untyped]

    train, law = given.train, given.law
    length, span = train.grid.width / 2, train.duration / 2
    rng = np.random.default_rng(0)
    k, j, i = (rng.integers(n, size=2000) for n in train.values.shape)
    points = np.stack(
        [train.grid.x[i] / length - 1, train.grid.y[j] / length - 1, (train.times[k] - train.times[0]) / span - 1],
        axis=1,
    ).astype(np.float32)
    v_x, v_y = given.drift
    halves = {name: value / 2 for name, value in law.items()}
    factors = [deepxde.Variable(1.0) for _ in law]

    def residual(x: Any, y: Any, unknowns: Any = factors) -> Any:
        first = [deepxde.grad.jacobian(y, x, i=0, j=axis)[0] for axis in range(3)]
        second = [deepxde.grad.hessian(y, x, i=axis, j=axis)[0] for axis in range(2)]
        values = {
            "grad_squared": (first[0] ** 2 + first[1] ** 2) * span / length**2,
            "laplacian": (second[0] + second[1]) * span / length**2,
        }
        drift = (v_x * first[0] + v_y * first[1]) * span / length
        return first[2] + drift - sum(f * halves[name] * values[name] for f, name in zip(unknowns, law, strict=True))

    domain = deepxde.geometry.GeometryXTime(
        deepxde.geometry.Rectangle([-1, -1], [1, 1]), deepxde.geometry.TimeDomain(-1, 1)
    )
    observed = deepxde.icbc.PointSetBC(points, train.values[k, j, i, None].astype(np.float32))
    data = deepxde.data.TimePDE(domain, residual, [observed], num_domain=1000)
    model = deepxde.Model(data, deepxde.nn.FNN([3, 48, 48, 48, 1], "tanh", "Glorot normal"))
    model.compile("adam", lr=2e-3, loss_weights=[1.0, 10.0], external_trainable_variables=factors, verbose=0)

    class Clock(deepxde.callbacks.Callback):  # type: ignore[misc]
        def on_train_begin(self) -> None:
            self.end = time.perf_counter() + TRAINING_SECONDS

        def on_epoch_end(self) -> None:
            if time.perf_counter() > self.end:
                self.model.stop_training = True

    def fit() -> Finding:
        model.train(iterations=100_000, display_every=100_000, callbacks=[Clock()], verbose=0)
        learned = [float(value) for value in model.params[1]]
        steps = f"{model.train_state.step} steps"
        return Finding({name: f * halves[name] for f, name in zip(learned, law, strict=True)}, law, steps)

    return fit


RECOVERY = (
    Task("weak", "video2pde, weak stage", prepare_weak),
    Task("calibrated", "video2pde, calibrated and selected, B = 50", prepare_calibrated),
    Task(
        "calibrated-terms",
        "video2pde, calibrated, B = 50",
        prepare_calibrated_terms,
        given="the terms",
        structure_given=True,
    ),
    Task("plain", "the paper's text in SciPy, weak fit", prepare_plain),
    Task(
        "plain-calibrated",
        "the paper's text in SciPy, Nelder–Mead",
        prepare_plain_calibrated,
        given="the terms",
        structure_given=True,
    ),
    Task(
        "pysindy-weak",
        f"PySINDy, WeakPDELibrary, K = {SUBDOMAINS}",
        prepare_pysindy_weak,
        ("pysindy",),
        "|∇u|² as a second field, the best threshold",
    ),
    Task(
        "pysindy-strong",
        "PySINDy, PDELibrary",
        prepare_pysindy_strong,
        ("pysindy",),
        "|∇u|² as a second field, the best threshold",
    ),
    Task(
        "deepxde",
        f"DeepXDE, inverse problem, {TRAINING_SECONDS:.0f} s of training",
        prepare_deepxde,
        ("deepxde", "flax"),
        "the terms, the true drift, half the true coefficients as start",
        True,
        {"DDE_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
    ),
)

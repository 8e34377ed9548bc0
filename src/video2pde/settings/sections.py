"""Settings by stage: one frozen section for each, every key with its meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from video2pde.settings.base import Bytes, Count, count_bytes, NotNegative, Positive, Section, Seed, Share


class SplitSettings(Section):
    """Chronological windows."""

    train: Share = Field(0.6, description="share of the frames that everything is fitted on")
    validation: Share = Field(0.2, description="share of the frames that models are chosen on; the rest is the test")
    by: Literal["frames", "time", "change"] = Field(
        "frames", description="what the shares are of: frames, time, or the change of the picture"
    )

    @model_validator(mode="after")
    def _leave_a_test_window(self) -> SplitSettings:
        if self.train + self.validation >= 1:
            raise ValueError(
                f"train + validation = {self.train + self.validation:g} leaves no test window; keep it below 1"
            )
        return self


class DriftSettings(Section):
    """Centroid drift."""

    background: Literal["auto", "border", "percentile", "none"] = Field(
        "auto", description="what is subtracted before the centroid; none: the paper's raw centroid"
    )
    percentile: Annotated[float, Field(ge=0, le=50)] = Field(
        10.0, description="percentile that estimates the background where the plume touches the border"
    )
    window: Share = Field(0.08, description="Savitzky–Golay window as a share of the frames")
    order: Annotated[int, Field(ge=1, le=6)] = Field(3, description="Savitzky–Golay polynomial order")
    law_correction: bool = Field(
        True, description="take off the drift what the law itself does to the centroid of an asymmetric plume"
    )
    flow: Literal["auto", "none", "uniform", "affine", "stream"] = Field(
        "uniform",
        description="flow beside the law: none; uniform: v(t) alone; affine: rotation and strain, too; stream: a "
        "stream function; auto: the simplest that explains the film",
    )
    through_edges: bool = Field(
        True,
        description="take no drift where the centroid moves because something spreads into the picture through an edge",
    )
    flow_splines: Annotated[int, Field(ge=4, le=20)] = Field(
        14, description="splines of the stream function along the longer side; two thirds of them where it changes"
    )
    flow_times: Annotated[int, Field(ge=1, le=20)] = Field(
        5, description="splines in time of a flow that changes; 1: steady flows alone"
    )
    velocity: str | None = Field(
        None, description="file (.npz, .nc) with the velocity u, v on any grid, in place of the measured drift"
    )
    potential: str | None = Field(
        None,
        description="file (.npz, .tif) with a field g(x, y) along whose gradient u is carried, χ ∇g·∇u with χ "
        "estimated, in place of the measured drift",
    )
    divergence: bool = Field(
        False, description="let the flow diverge, too; one film hardly tells that from a law that spreads"
    )


class WeakSettings(Section):
    """Weak system."""

    test_functions: Count = Field(2000, description="number M of random centres")
    sigma_space: Share = Field(0.06, description="width of a test function as a share of the grid")
    sigma_time: Share = Field(0.025, description="width of a test function as a share of the recording's frames")
    support: Annotated[float, Field(ge=2)] = Field(4.0, description="truncation k_σ of the test functions")
    shrink: bool = Field(True, description="reduce the widths automatically where a small recording needs it")
    gradient_sigma: NotNegative | None = Field(
        None, description="σ in grid pixels of the Gaussian derivative for |∇u|²; none: from the film's noise"
    )
    noise_correction: bool = Field(True, description="remove what pixel noise adds to |∇u|² and to powers of u")


class RegressionSettings(Section):
    """Sparse regression."""

    threshold_on: Literal["share", "coefficient"] = Field(
        "share", description="share: ‖ξΘ_l‖/‖b‖ of a term; coefficient: the paper's |ξ|"
    )
    threshold: NotNegative = Field(0.02, description="terms below it are dropped")
    ridge: NotNegative = Field(1e-6, description="ridge parameter α on normalised columns")
    max_iterations: Count = Field(100, description="iterations of thresholding at most")
    drift: Literal["axes", "scale", "fixed"] = Field(
        "axes", description="coefficients of the drift: one per axis, one for both, or fixed at 1"
    )
    law: str | None = Field(
        None,
        description="the law to fit, without discovery: a library, a named law such as 'bistable', or terms such as "
        "'laplacian,u'; none: all libraries",
    )
    diffusion: Literal["isotropic", "tensor"] = Field(
        "isotropic",
        description="tensor: in every law Δu gives way to u_xx, u_yy and u_xy, for what spreads faster in one "
        "direction",
    )
    shapes: dict[str, float] = Field(
        default_factory=dict,
        description="parameters of terms that are not linear in them, held fixed: porous_power = m, uptake = K; one "
        "that is not given is estimated",
    )
    signs: dict[str, Literal["positive", "negative"]] = Field(
        default_factory=dict,
        description="sign constraints by term, of the weak fits alone; [constraints] holds them in every fit",
    )


class ConstraintSettings(Section):
    """What is known of the law beforehand; it holds in every fit."""

    conserve: bool = Field(False, description="nothing is made or lost: terms in divergence form alone are candidates")
    symmetry: Literal["none", "mirror_x", "mirror_y", "rotation"] = Field(
        "none", description="candidates stay the same where x or y is mirrored, or the picture is turned by a quarter"
    )
    positive: tuple[str, ...] = Field(
        (), description="terms whose coefficient is not negative; diffusion: all diffusion, tensor: in every direction"
    )
    negative: tuple[str, ...] = Field((), description="terms whose coefficient is not positive")
    fixed: dict[str, float] = Field(
        default_factory=dict, description="coefficients that are known, by term: in every law, and not fitted"
    )
    equal: tuple[tuple[str, ...], ...] = Field(
        (), description="groups of terms with one coefficient, such as [['dxx', 'dyy']]"
    )

    @property
    def any(self) -> bool:
        """Whether anything is known beforehand."""
        return self != ConstraintSettings()

    def equal_names(self, joined: str) -> tuple[str, ...]:
        """Return the terms that a joined term was made of; none for others."""
        return next((group for group in self.equal if "_and_".join(group)[:40] == joined), ())


class MapSettings(Section):
    """Coefficients that vary."""

    vary: dict[str, Literal["space", "time"]] = Field(
        default_factory=dict,
        description="coefficients that vary, by term, such as laplacian = 'space': D(x, y), or 'time': D(t); every law "
        "that is tried then has these terms",
    )
    splines: Annotated[int, Field(ge=4, le=24)] = Field(
        16,
        description="splines of a coefficient over space along the longer side of what the recording shows, in "
        "proportion along the other",
    )
    times: Annotated[int, Field(ge=4, le=24)] = Field(6, description="splines of a coefficient over time")


class IdentifiabilitySettings(Section):
    """Which terms the recording can tell apart."""

    sweep_points: Count = Field(21, description="thresholds in the sweep")
    sweep_low: Positive = Field(1e-5, description="smallest threshold")
    sweep_high: Positive = Field(1.0, description="largest threshold")
    stability_runs: Count = Field(100, description="random-centre runs")
    stability_centres: Count = Field(1000, description="centres in each run")
    robust_frequency: Share = Field(0.9, description="selection frequency from which a term counts as robust")
    correlation_limit: Share = Field(0.95, description="column correlation from which two terms cannot be told apart")
    explained_share: Annotated[float, Field(ge=0, le=1)] = Field(
        0.8, description="share of the best library's explained signal below which a library is out"
    )
    unexplained_ratio: Annotated[float, Field(gt=1)] = Field(
        200.0, description="how many times more than a library of its size a library may leave unexplained"
    )
    condition_limit: Positive = Field(1e3, description="condition number above which a library is out")


class SearchSettings(Section):
    """Which laws are tried."""

    over: Literal["libraries", "subsets"] = Field(
        "libraries",
        description="libraries: those that are named; subsets: all sets of the terms below, of which the few on the "
        "front of error against number of terms go on",
    )
    terms: Annotated[tuple[str, ...], Field(min_length=1, max_length=20)] = Field(
        (
            "laplacian",
            "u",
            "constant",
            "u_squared",
            "grad_squared",
            "u_grad_squared",
            "porous",
            "u_cubed",
            "porous_squared",
            "u_laplacian",
            "biharmonic",
            "dxx+dyy+dxy",
        ),
        description="terms whose sets are tried, and the user's own with them; 'a+b': terms that enter together; of "
        "two sets that say the same, the one whose terms come first is taken",
    )
    most_terms: Annotated[int, Field(ge=1, le=20)] = Field(6, description="terms of a law at most")
    laws: Count = Field(6, description="laws that go on to rollouts at most")
    within: Annotated[float, Field(ge=1)] = Field(
        20.0, description="how many times more than the best of all sets a law that goes on may leave unexplained"
    )


class RolloutSettings(Section):
    """Simulator."""

    safety: Share = Field(0.5, description="share of the stability limit that a substep may take")
    max_substeps: Count = Field(2000, description="substeps per frame interval at most")
    viscosity: NotNegative = Field(0.0, description="added numerical diffusion ε_visc")
    boundary: Literal["replicate", "periodic", "open"] = Field(
        "replicate",
        description="how the picture goes on beyond its edges: mirrored (no flux), wrapped around, or straight on",
    )
    clip: Literal["auto", "on", "off"] = Field(
        "auto", description="clip to [0, 1]; auto: where the data are normalised"
    )
    precision: Literal["float64", "float32"] = Field("float64", description="number type of the simulation")
    levels: tuple[Share, ...] = Field((0.05, 0.10, 0.15, 0.20, 0.25), description="front levels")
    start_frames: Count = Field(
        9, description="frames, up to a held-out window's first, that estimate the start of its rollouts; 1: that frame"
    )


class RefinementSettings(Section):
    """Inverse PINN."""

    enabled: bool = Field(True, description="run the inverse-PINN stage")
    first: bool = Field(
        False,
        description="train it before the calibration, which then starts from its coefficients, too, and so does the "
        "front-aware fit; off: once result and page are there, as a second opinion",
    )
    contenders: Count = Field(2, description="how many contenders are refined, the best explained first")
    network: Literal["radial", "perceptron"] = Field(
        "radial",
        description="radial: Gaussian neurons on a lattice, trained by Gauss–Newton on all pixels; perceptron: layers "
        "of neurons, trained by descent on points, as in the paper, which takes several times longer; a film with a "
        "mask takes the perceptron in any case",
    )
    width: Count = Field(64, description="perceptron: neurons per layer")
    depth: Count = Field(4, description="perceptron: hidden layers")
    pretrain_steps: Annotated[int, Field(ge=0)] = Field(1000, description="perceptron: steps on the data alone")
    joint_steps: Count = Field(10000, description="perceptron: steps on data and residual")
    data_samples: Count = Field(512, description="perceptron: data points per step")
    residual_samples: Count = Field(512, description="perceptron: residual points per step")
    optimizer: Literal["soap", "adam"] = Field("soap", description="perceptron: optimiser")
    pretrain_rate: Positive = Field(5e-3, description="perceptron: learning rate of the pretraining")
    joint_rate: Positive = Field(5e-3, description="perceptron: learning rate of the joint phase, decayed by a cosine")
    final_rate: NotNegative = Field(
        2e-5, description="perceptron: learning rate at the end; equal to joint_rate: constant"
    )
    residual_weight: Positive = Field(0.01, description="weight of the residual in the loss")
    scaled_loss: bool = Field(True, description="perceptron: nondimensional loss; off: the paper's raw one")
    coefficients: Literal["projection", "trained"] = Field(
        "projection",
        description="perceptron: projection: least squares at each step; trained: parameters of their own",
    )
    frame: Literal["moving", "fixed"] = Field(
        "moving", description="moving: coordinates follow the drift; fixed: the drift is a term with coefficient 1"
    )
    average: bool = Field(True, description="average neighbouring frames and pixels first, down to about 100 of each")
    cell_average: bool = Field(True, description="compare averages over pixel cells with the data; off: point values")
    concentration: Annotated[float, Field(ge=0, le=1)] = Field(
        0.75, description="share of the points, or of their weight, that goes where the plume is; the rest evenly"
    )
    output: Literal["data", "unit"] = Field(
        "data", description="perceptron: range of its sigmoid: the data's with some room, or [0, 1]"
    )
    seeds: tuple[int, ...] = Field(
        (2026,),
        description="seeds; several give a spread, which for the radial network is that of the held-out pixels alone",
    )


class CalibrationSettings(Section):
    """Rollout calibration and its bootstrap."""

    optimizer: Literal["lm", "nelder-mead"] = Field("lm", description="Levenberg–Marquardt or Nelder–Mead")
    max_iterations: Count = Field(300, description="iterations at most")
    tolerance: Positive = Field(1e-6, description="relative tolerance of objective and coefficients")
    drift: Literal["fixed", "scale", "spline"] = Field(
        "spline", description="what is refined of the drift along the way"
    )
    drift_knots: Annotated[int, Field(ge=2)] = Field(6, description="knots of the drift's correction spline")
    max_points: Count | None = Field(None, description="space-time points in the objective at most; none: all")
    positive: tuple[str, ...] = Field((), description="terms whose coefficient is fitted in log-space")
    undo_coding: bool = Field(
        True, description="correct frames that an encoder made from others (B frames), where they are late"
    )
    replicates: Annotated[int, Field(ge=0)] = Field(50, description="bootstrap replicates B")
    bootstrap: Literal["residual", "restart"] = Field("residual", description="form of the block bootstrap")
    block_length: Count | Literal["sqrt", "automatic"] = Field("sqrt", description="frames in a block")
    seed: Seed = Field(42, description="seed of the bootstrap")


class FrontSettings(Section):
    """Front-aware recalibration."""

    enabled: bool = Field(True, description="run the front-aware recalibration")
    contenders: Count = Field(2, description="how many contenders are recalibrated, the best fitted first")
    radius_weight: NotNegative = Field(5.0, description="weight w_f of the front radius")
    growth_weight: NotNegative = Field(0.05, description="weight w_g of the front's growth")
    softness: Positive = Field(0.02, description="width of the soft front")
    times: Count = Field(40, description="times in the window at which fronts are compared")


class SelectionSettings(Section):
    """Choice of the law."""

    tie: NotNegative = Field(0.05, description="relative error within which the smaller model wins")


class SteadinessSettings(Section):
    """Coefficients of a named law in parts of the training window."""

    parts: Annotated[int, Field(ge=0)] = Field(
        4, description="with a named law: parts that are fitted by themselves, at most; 0 or 1: none"
    )


class FrapSettings(Section):
    """Recovery after a bleach."""

    enabled: bool = Field(False, description="measure D, mobile fraction, half time and bleaching rate of a recovery")
    populations: bool = Field(
        False,
        description="compare one D, a mobile and an immobile part, two D's, and exchange with a bound part, by what "
        "they leave in held-out frames",
    )
    edges: Literal["auto", "measured", "no_flux"] = Field(
        "auto",
        description="measured: the rim of picture or mask as it is seen; no_flux: nothing passes it; auto: no_flux "
        "where recording.edges says so of a mask, else measured",
    )


class RunSettings(Section):
    """How the run is carried out."""

    seed: Seed = Field(0, description="seed of everything that is random")
    workers: Annotated[int, Field(ge=1)] | Literal["auto"] = Field("auto", description="processes; auto: one per core")
    memory: Bytes | None = Field(
        None,
        description="memory that large arrays may take, such as '4GB'; what goes beyond is kept in files in the run's "
        "folder, and nothing in the result changes; none: half of what is available when the run begins",
    )
    device: Literal["cpu", "gpu", "auto"] = Field(
        "cpu",
        description="where rollouts, fits and the network run; gpu: through JAX, with numbers that agree with those of "
        "the CPU to 1e-6; auto: on a GPU where JAX finds one and the pictures are large enough for it",
    )
    cluster: str | None = Field(
        None,
        description="address of a dask.distributed scheduler that carries out the tasks of a study; none: this machine",
    )

    @property
    def memory_bytes(self) -> int | None:
        """The memory for large arrays in bytes; None: half of what is available."""
        return None if self.memory is None else count_bytes(self.memory)


class TermSettings(Section):
    """A term of the user's own: the sum of derivatives of densities over u, u_x, u_y."""

    density: str = Field(description="expression over u, u_x, u_y")
    derivative: str = Field("", pattern="^[xy]{0,4}$", description="derivative that acts on it, such as 'xx'; '': none")

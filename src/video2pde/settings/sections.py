"""Settings by stage: one frozen section for each, every key with its meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[float, Field(gt=0, lt=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=1e-12, le=1e12)]
LibraryName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.+-]{0,39}$")]
"""It names files too: letters, digits, spaces and _ . + - alone, 40 at most."""


class Section(BaseModel):
    """Hold one stage's settings: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)


class RecordingSettings(Section):
    """Film to field."""

    crop: tuple[int, int, int, int] | None = Field(
        None, description="rectangle x0, y0, width, height in camera pixels; none: the whole picture"
    )
    border: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        "auto", description="pixels cut off on each side of the crop; auto: 8 where the crop is 256 pixels or more"
    )
    grid: tuple[Annotated[int, Field(ge=4)], Annotated[int, Field(ge=4)]] | None = Field(
        None, description="rows, columns of the field; none: 200 on the longer side, never more than the pixels"
    )
    smooth: Annotated[float, Field(ge=0, le=1000)] = Field(
        0.0, description="σ in grid pixels of the Gaussian filter on the field; 0: none"
    )
    observable: Literal["dark", "bright", "absorbance"] = Field(
        "dark", description="dark: 1 − I/Imax (ink); bright: I/Imax (fluorescence); absorbance: −log10(I/I0)"
    )
    white: Positive | None = Field(
        None,
        description="Imax; none: full white for 8 bits and for films; for deeper pictures the empty scene's level "
        "(dark) or the brightest value (bright)",
    )
    reference: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] | str | None = Field(
        None,
        description="the picture that counts as 1 (flat field, before the bleach, empty scene): first and last frame "
        "whose mean it is, a picture's file or name in the folder, or before: the frames before the bleach; none: one "
        "white for all pixels, for absorbance the bright percentile picture",
    )
    dark: NotNegative | str | None = Field(
        None,
        description="what the camera reads without light: a level, a picture's file or name in the folder, or outside: "
        "the dark surroundings of what is seen",
    )
    times: str | None = Field(
        None, description="CSV file with the times of the frames: columns file,time for a folder, else time"
    )
    illumination: Literal["auto", "none", "gain", "flat", "gain+flat"] = Field(
        "auto",
        description="light that changes or is uneven, divided out as the background shows it: gain: over time; "
        "flat: over the picture; auto: what is needed and certain",
    )
    response: Annotated[float, Field(ge=0.2, le=5)] | str = Field(
        "auto",
        description="how grey values follow light, undone before u is formed: linear; srgb, bt709, hlg or pq; a gamma; "
        "a CSV file of pixel value and light; auto: what the file names, bt709 and srgb where it names a camera too",
    )
    channel: Count | Annotated[str, Field(min_length=1, max_length=80)] | tuple[float, ...] = Field(
        "auto",
        description="the colour that is read: luma, r, g, b, a channel's name in the file or its number (from 1), or "
        "weights of the channels; auto: luma, or the channel with clearly more contrast to noise",
    )
    z: Count | None = Field(
        None, description="which plane is read of a stack in depth that was taken again and again, counted from 1"
    )
    series: Count | Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None,
        description="which recording is read of several in a microscope's file (series, position, scene): its name, or "
        "its number from 1",
    )
    frames: Literal["auto", "all"] = Field(
        "auto",
        description="auto: the longest run of frames that show one scene, without black frames, a hand in the picture "
        "or what follows a cut; all: every frame between start and stop",
    )
    objects: Literal["auto", "none"] = Field(
        "auto",
        description="auto: of what is in the picture and never moves, specks of dust are divided out, and walls, a rim "
        "or letters at the side are cut off (dark observable alone); none: all is left",
    )
    stabilise: Literal["auto", "none", "shift", "affine"] = Field(
        "auto",
        description="put the frames of a camera that shakes back in place, as they are reduced to the grid: shift; "
        "affine: turned and zoomed, too; auto: what is needed and certain",
    )
    extent: tuple[Positive, Positive] | None = Field(
        None, description="height, width of the field in image units; none: 200 on the longer side"
    )
    scale: str | None = Field(
        None, description="size of a camera pixel with its unit, such as 0.05mm; none: image units"
    )
    pitch: Literal["cells", "nodes"] = Field(
        "cells", description="cells: Δx = L/n; nodes: the paper's L/(n − 1), 1/n too large"
    )
    unclip: bool = Field(
        True,
        description="undo what the camera does to an empty background: noise that it clips, edges that it rounds away",
    )
    start: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        0, description="first frame used, counted from 0; auto: the first after the scene jumps (a bleach)"
    )
    stop: Annotated[int, Field(ge=1)] | None = Field(None, description="first frame no longer used")
    every: Count = Field(1, description="use every n-th frame")
    fps: Rate | None = Field(
        None, description="frames per second; needed where frames carry no times, overrides the recording's times"
    )
    mask: str | None = Field(
        None,
        description="region that obeys the law: a picture file, a threshold such as 'u>0.3@0' on frame 0, droplet "
        "(found and eroded), or regions of Fiji (.roi, .zip)",
    )
    edges: Literal["auto", "no_flux", "measured", "open"] = Field(
        "auto",
        description="no_flux: nothing passes the edges of picture or mask; measured: the rim of picture or mask as "
        "it is seen drives the rollouts, for what enters or leaves; open: the picture goes straight on; auto: no_flux "
        "for a picture, measured for a mask",
    )
    colours: str | None = Field(
        None,
        description="pictures in false colours, turned back into values from 0 to 1: a colour map of Matplotlib, such "
        "as viridis or jet, or the legend's place in the picture, legend:x,y,width,height",
    )
    overlays: Literal["auto", "none"] = Field(
        "auto", description="what is drawn over false colours (text, a scale bar, a legend): auto: left out of the law"
    )
    kymograph: Literal["rows", "columns", "across"] | None = Field(
        None,
        description="one dimension: rows or columns: of a single picture, they are the times of a line; across: a "
        "narrow channel, averaged across its width; none: pictures",
    )
    allow_truncated: bool = Field(False, description="go on with the readable frames of a damaged file")

    @property
    def first(self) -> int:
        """The first frame that is read: 0 where the start is still to be found."""
        return 0 if self.start == "auto" else self.start


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
        description="the law to fit, without discovery: a library, or terms such as 'laplacian,u'; none: all libraries",
    )
    signs: dict[str, Literal["positive", "negative"]] = Field(
        default_factory=dict, description="sign constraints by term, such as laplacian = 'positive'"
    )


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


class RolloutSettings(Section):
    """Simulator."""

    safety: Share = Field(0.25, description="share of the stability limit that a substep may take")
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
    width: Count = Field(64, description="neurons per layer")
    depth: Count = Field(4, description="hidden layers")
    pretrain_steps: Annotated[int, Field(ge=0)] = Field(1000, description="steps on the data alone")
    joint_steps: Count = Field(10000, description="steps on data and residual")
    data_samples: Count = Field(512, description="data points per step")
    residual_samples: Count = Field(512, description="residual points per step")
    optimizer: Literal["soap", "adam"] = Field("soap", description="optimiser")
    pretrain_rate: Positive = Field(5e-3, description="learning rate of the pretraining")
    joint_rate: Positive = Field(5e-3, description="learning rate of the joint phase, decayed by a cosine")
    final_rate: NotNegative = Field(2e-5, description="learning rate at the end; equal to joint_rate: constant")
    residual_weight: Positive = Field(0.01, description="weight of the residual in the loss")
    scaled_loss: bool = Field(True, description="nondimensional loss; off: the paper's raw one")
    coefficients: Literal["projection", "trained"] = Field(
        "projection", description="projection: least squares at each step; trained: parameters of their own"
    )
    frame: Literal["moving", "fixed"] = Field(
        "moving", description="moving: coordinates follow the drift; fixed: the drift is a term with coefficient 1"
    )
    average: bool = Field(True, description="average neighbouring frames and pixels first, down to about 100 of each")
    cell_average: bool = Field(True, description="compare averages over pixel cells with the data; off: point values")
    concentration: Annotated[float, Field(ge=0, le=1)] = Field(
        0.75, description="share of the points drawn where the plume is; the rest is spread evenly"
    )
    output: Literal["data", "unit"] = Field(
        "data", description="range of the network's sigmoid: the data's with some room, or [0, 1]"
    )
    seeds: tuple[int, ...] = Field((2026,), description="seeds; several give a spread")


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
    edges: Literal["auto", "measured", "no_flux"] = Field(
        "auto",
        description="measured: the rim of picture or mask as it is seen; no_flux: nothing passes it; auto: no_flux "
        "where recording.edges says so of a mask, else measured",
    )


class RunSettings(Section):
    """How the run is carried out."""

    seed: Seed = Field(0, description="seed of everything that is random")
    workers: Annotated[int, Field(ge=1)] | Literal["auto"] = Field("auto", description="processes; auto: one per core")
    device: Literal["cpu", "gpu"] = Field("cpu", description="where rollouts and the network run")
    cluster: str | None = Field(
        None,
        description="address of a dask.distributed scheduler that carries out the tasks of a study; none: this machine",
    )


class TermSettings(Section):
    """A term of the user's own: the sum of derivatives of densities over u, u_x, u_y."""

    density: str = Field(description="expression over u, u_x, u_y")
    derivative: str = Field("", pattern="^[xy]{0,4}$", description="derivative that acts on it, such as 'xx'; '': none")

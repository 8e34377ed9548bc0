"""The commands on recordings: preview, field, synth."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, TYPE_CHECKING

from cyclopts import Group, Parameter

from video2pde.cli.console import tell
from video2pde.cli.options import (
    DEFAULT_RECORDING,
    DEFAULT_SETTINGS,
    flag,
    RecordingOptions,
    SettingsOptions,
    split_numbers,
)
from video2pde.cli.output import staged_folder
from video2pde.cli.progress import Display
from video2pde.errors import InputError
from video2pde.files import write_text

if TYPE_CHECKING:
    from video2pde.recording import RecordingResult
    from video2pde.recording.synth import Camera, Case

LAW = Group("Law and plume", sort_key=1)
CAMERA = Group("Camera", sort_key=2)
DEMO = "demo"
KINDS = "mp4, mov, avi, mkv, webm, GIF, TIFF stack, folder of pictures, or .npy/.npz array."
Film = Annotated[Path, Parameter(help=KINDS)]
MEMORY = 10**9
"""Bytes of a field that ``field`` holds in memory, where the settings do not say; a larger one goes through a file."""


def preview(
    film: Film,
    /,
    *,
    out: Annotated[Path | None, Parameter(help="The picture; default: FILM-preview.png in this folder.")] = None,
    recording: RecordingOptions = DEFAULT_RECORDING,
    settings: SettingsOptions = DEFAULT_SETTINGS,
) -> None:
    """Draw the first, middle and last frame with the crop box, and suggest a crop if none is given.

    The crop is printed as an option, ready to be pasted:

        video2pde preview film.mp4
        video2pde preview film.mp4 --crop 400,0,900,900 --out look.png
        video2pde field film.mp4 --out prepared $(video2pde preview film.mp4)
    """
    from video2pde.recording import preview as look

    display = Display(settings.quiet)
    chosen = settings.load(recording)
    picture = out or _preview_name(film)
    with display.task(f"looking at {film.name}") as report:
        seen = look(film, chosen, picture, report)
    for note in seen.notes:
        display.say(f"note: {note}")
    size = f"{seen.count} frames of {seen.header.width}×{seen.header.height}"
    display.say(f"{size}; wrote {picture}; {'suggested' if seen.suggested else 'given'} crop:")
    tell(f"--crop {','.join(map(str, seen.crop))}")


def _preview_name(film: Path) -> Path:
    """Name the picture after the film, in this folder; not among the frames, where this folder is the recording."""
    picture = Path(f"{film.resolve().stem}-preview.png")
    return film.resolve().parent / picture if film.is_dir() and film.resolve() == Path.cwd() else picture


def field(
    film: Film,
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for the field and its checks, or FILE.npz for the field alone.")],
    netcdf: Annotated[bool, flag("Write the field as NetCDF too.")] = False,
    figures: Annotated[bool, Parameter(help="Draw the checks (into a folder only).")] = True,
    recording: RecordingOptions = DEFAULT_RECORDING,
    settings: SettingsOptions = DEFAULT_SETTINGS,
) -> None:
    """Reduce a recording to the field u(t, y, x), and check it.

    Writes field.npz, checks.json, settings.toml and figures/, and prints what each step did:

        video2pde field film.mp4 --out prepared --crop 450,0,1080,1080
        video2pde field pictures/ --out prepared --fps 12 --scale 0.05mm
        video2pde field cells.tif --out cells.npz --observable bright
        video2pde field film.mp4 --out prepared --set recording.smooth=0.5
    """
    from video2pde.recording import read_recording
    from video2pde.room import limited

    display = Display(settings.quiet)
    chosen = settings.load(recording)
    alone = out.suffix == ".npz"
    with staged_folder(out.parent if alone else out) as folder, limited(chosen.run.memory_bytes or MEMORY, folder):
        with display.task(f"reading {film.name}") as report:
            result = read_recording(film, chosen, report)
        saved = result.field.save(folder / (out.name if alone else "field.npz"))
        if netcdf:
            result.field.to_netcdf(saved.with_suffix(".nc"))
        if not alone:
            write_text(folder / "settings.toml", chosen.to_toml())
            _write_checks(result, folder, figures, display)
    for note in result.field.provenance.notes:
        display.say(f"note: {note}")
    for line in result.warnings:
        display.warn(line)
    tell(_describe(result))
    tell(f"written: {out if alone else out / 'field.npz'}")


def _write_checks(result: RecordingResult, folder: Path, figures: bool, display: Display) -> None:
    if result.checks is None:  # a saved field carries no camera frames to check
        return
    content = {"warnings": result.warnings, "notes": result.field.provenance.notes, **result.checks.summary()}
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / "checks.json", text + "\n")
    if figures:
        from video2pde.report.recording_figures import write_recording_figures

        with display.task("drawing"):
            write_recording_figures(result, folder / "figures")


def _describe(result: RecordingResult) -> str:
    """Write the field and its stage table as text."""
    lines = [str(result.field)]
    if result.checks is not None:
        lines.append(f"{'step':34} {'frames':>6} {'rows':>5} {'cols':>5} {'min':>9} {'mean':>9} {'max':>9}")
        for row in result.checks.stages:
            numbers = " ".join(_number(value) for value in (row.minimum, row.mean, row.maximum))
            lines.append(f"{row.name:34} {row.shape[0]:6} {row.shape[1]:5} {row.shape[2]:5} {numbers}")
        kept = result.checks.retention
        lines.append(f"kept by the crop: {kept.signal:.1%} of the signal, {kept.change:.1%} of its change")
        lines.append(f"change of a frame's mean by the resize: {result.checks.resize_mean_change:.1e} at most")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return f"{'–' if value is None else format(value, '.4f'):>9}"


def _law(text: str) -> Parameter:
    return Parameter(help=text, group=LAW, allow_leading_hyphen=True)


def _camera(text: str) -> Parameter:
    return Parameter(help=text, group=CAMERA)


@Parameter(name="*")
@dataclass(frozen=True)
class LawOptions:
    """What the film shows; None: as the case has it."""

    constant: Annotated[float | None, _law("Coefficient of 1.")] = None
    u: Annotated[float | None, _law("Coefficient of u.")] = None
    u_squared: Annotated[float | None, _law("Coefficient of u².")] = None
    grad_squared: Annotated[float | None, _law("Coefficient of |∇u|².")] = None
    u_grad_squared: Annotated[float | None, _law("Coefficient of u|∇u|².")] = None
    laplacian: Annotated[float | None, _law("Coefficient of Δu.")] = None
    drift: Annotated[str | None, _law("Mean drift vx,vy in image units per second.")] = None
    swing: Annotated[float | None, _law("Share by which the drift swings around its mean; 0 is constant.")] = None
    background: Annotated[float | None, _law("u far from the plume at the start.")] = None
    peak: Annotated[float | None, _law("Height of the plume above the background.")] = None
    duration: Annotated[float | None, _law("Length of the film in seconds.")] = None
    seed: Annotated[int | None, _law("Seed of the plume's shape and of the camera's noise.")] = None

    def make(self, name: str) -> Case:
        """Change the case called ``name`` by what is given."""
        from video2pde.recording.synth import make_case

        given = {key: value for key, value in asdict(self).items() if value is not None}
        if "drift" in given:
            given["drift"] = split_numbers("--drift", given["drift"], 2)
        own = ("drift", "swing", "background", "peak", "duration", "seed")
        coefficients = {key: value for key, value in given.items() if key not in own}
        return make_case(name, coefficients=coefficients, **{key: given[key] for key in own if key in given})


@Parameter(name="*")
@dataclass(frozen=True)
class CameraOptions:
    """How it is filmed; None: the camera's default."""

    size: Annotated[str | None, _camera("Width,height of the picture in pixels, or 1280x720; default 1920x1080.")] = (
        None
    )
    crop: Annotated[str | None, _camera("Part x0,y0,width,height of the picture that shows the field.")] = None
    border: Annotated[int | None, _camera("Pixels inside the crop's edges that do not belong to the field.")] = None
    frames: Annotated[int | None, _camera("Number of frames; default 305.")] = None
    fps: Annotated[float | None, _camera("Frames per second, instead of their number.")] = None
    noise: Annotated[float | None, _camera("Standard deviation of the pixel noise, as a share of full scale.")] = None
    flicker: Annotated[float | None, _camera("Standard deviation of the light from frame to frame.")] = None
    vignetting: Annotated[float | None, _camera("Share of the light that the corners lose.")] = None
    crf: Annotated[int | None, _camera("H.264 quality: 0 lossless, 18 good (default), 51 worst.")] = None
    camera_seed: Annotated[int | None, _camera("Seed of noise and flicker alone.")] = None
    container: Annotated[str | None, _camera("mp4, mkv or mov; tif: a 16-bit stack (two fields alone).")] = None
    colours: Annotated[str | None, _camera("Colours of a film of two fields: 4:2:0 (default) or 4:4:4.")] = None

    def make(self, seed: int | None) -> Camera:
        """Build the camera; ``seed`` is used for its noise unless it has its own."""
        from video2pde.recording.synth import Camera

        given: dict[str, Any] = {key: value for key, value in asdict(self).items() if value is not None}
        if given.pop("colours", None) is not None:
            raise InputError("--colours is for films of two fields; a film of one is grey")
        noise_seed = given.pop("camera_seed", seed)
        if noise_seed is not None:
            given["seed"] = noise_seed
        if "size" in given:
            width, height = split_numbers("--size", given["size"], 2)
            given["size"] = (int(height), int(width))
        if "crop" in given:
            given["crop"] = tuple(int(x) for x in split_numbers("--crop", given["crop"], 4))
        return Camera(**given)


NO_LAW, NO_CAMERA = LawOptions(), CameraOptions()


def synth(
    case: Annotated[
        str | None,
        Parameter(
            help="A, B, C, C-alt, Fisher, drift, noise, static, demo, a laboratory recording, two fields (--list)."
        ),
    ] = None,
    /,
    *,
    out: Annotated[Path | None, Parameter(help="Folder for the film and truth.json.")] = None,
    deviation: Annotated[
        str | None,
        Parameter(help="Assumptions to break, such as rotation=0.03 or dimming=0.1,shake; --list names them."),
    ] = None,
    list_: Annotated[
        bool, Parameter(name="--list", help="List cases, deviations and recordings.", negative="", show_default=False)
    ] = False,
    law: LawOptions = NO_LAW,
    camera: CameraOptions = NO_CAMERA,
    quiet: Annotated[bool, flag("No progress and no messages.")] = False,
) -> None:
    """Render a film whose law is known, with truth.json beside it.

    Take a case as it is, or change its law, its plume and the camera:

        video2pde synth --list
        video2pde synth C --out known
        video2pde synth C --out known --grad-squared 6.2 --noise 0.02 --crf 23
        video2pde synth Fisher --out small --size 640x480 --frames 241

    Break an assumption that real films break, or take a recording as a laboratory makes it:

        video2pde synth C --out turning --deviation rotation=0.03 --noise 0.01
        video2pde synth frap --out sheet

    Or two fields that react, red and green in a film, or the channels of a stack:

        video2pde synth gray-scott --out spots --size 240x240 --frames 120 --noise 0.01
        video2pde synth reagents --out drops --container tif --size 160x160 --frames 60
    """
    if list_:
        tell(_list_cases())
        return
    if case is None or out is None:
        raise InputError(
            "synth needs a case and --out DIR, such as 'synth C --out known'; synth --list names the cases"
        )
    from video2pde.recording.synth import DEMO_CAMERA, DEMO_CASE, LABORATORY, SYSTEMS, write_laboratory

    if case in SYSTEMS:
        written = _render_system(case, law, camera, deviation, out, Display(quiet))
    elif case in LABORATORY:
        _refuse_options(f"the recording '{case}'", law, camera, deviation, but=("seed", "laplacian"))
        with staged_folder(out) as folder:
            written = write_laboratory(case, folder, law.seed or 0, law.laplacian)
    elif case == DEMO:
        _refuse_options("the demo's recording", law, camera, deviation)
        written = _render(DEMO_CASE, DEMO_CAMERA, "", out, Display(quiet))
    else:
        written = _render(law.make(case), camera.make(law.seed), deviation, out, Display(quiet))
    tell(out / written.name)
    tell(out / "truth.json")


def _render(case: Case, camera: Camera, deviation: str | None, out: Path, display: Display) -> Path:
    """Render a film, with the assumptions broken that are named."""
    from video2pde.recording.synth import describe_deviations, deviate, parse_deviations, render_film

    broken = parse_deviations(deviation) if deviation else []
    for name, strength in broken:
        case, camera = deviate(case, camera, name, strength)
    with staged_folder(out) as folder, display.task(f"rendering {case.name}") as report:
        film = render_film(case, folder, camera, report, extra=describe_deviations(broken))
    display.say(f"law: {case.truth['equation']}")
    return film


def _render_system(
    name: str, law: LawOptions, camera: CameraOptions, deviation: str | None, out: Path, display: Display
) -> Path:
    """Render a recording of two fields; its law is fixed, its seed, length and camera are not."""
    from video2pde.recording.synth import make_system, write_system

    kept = ("seed", "duration")
    _refuse_options(f"the law of '{name}'", law, NO_CAMERA, deviation, but=kept)
    form = "tif" if camera.container == "tif" else camera.colours or "4:2:0"
    if camera.container == "tif" and camera.colours is not None:
        raise InputError("a stack has two channels of its own; leave --colours out")
    filmed = replace(camera, container=None if form == "tif" else camera.container, colours=None)
    system = make_system(name, law.seed, law.duration)
    with staged_folder(out) as folder, display.task(f"rendering {name}") as report:
        return write_system(system, folder, filmed.make(law.seed), form, report)


def _refuse_options(
    what: str, law: LawOptions, camera: CameraOptions, deviation: str | None, but: tuple[str, ...] = ()
) -> None:
    """Refuse options for a recording that is fixed, all but those named."""
    groups: tuple[LawOptions | CameraOptions, ...] = (law, camera)
    names = [entry.name for group in groups for entry in fields(group) if getattr(group, entry.name) is not None]
    names += ["deviation"] if deviation else []
    if given := ", ".join(f"--{name.replace('_', '-')}" for name in names if name not in but):
        raise InputError(f"{what} is fixed, {given} cannot be given; use 'synth C' instead")


def _list_cases() -> str:
    from video2pde.recording.synth import DEMO_CASE, DEVIATIONS, LABORATORY, PRESETS, SYSTEMS

    lines = []
    for name, case in {**PRESETS, DEMO: DEMO_CASE}.items():
        vx, vy = case.drift.mean
        lines.append(f"{name:8} {case.truth['equation']}, v = ({vx:g}, {vy:g}), background {case.background:g}")
    lines += ["", "recordings as a laboratory makes them:"]
    lines += [f"{entry.name:8} {entry.words}" for entry in LABORATORY.values()]
    lines += ["", "two fields (run with --channels):"]
    lines += [f"{entry.name:16} {entry.words}" for entry in SYSTEMS.values()]
    lines += ["", "deviations (--deviation NAME or NAME=STRENGTH; usual strength):"]
    lines += [f"{entry.name:11} {entry.usual:<6g} {entry.words}" for entry in DEVIATIONS.values()]
    return "\n".join(lines)

"""The whole way from Python: a recording of any kind in, the record of a run out."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from video2pde.errors import InputError
from video2pde.field import Field
from video2pde.pipeline import run_pipeline
from video2pde.record import Run
from video2pde.runs.events import Events
from video2pde.settings import load_settings, Settings

IN_MEMORY = "recording.npz"
"""The file in a run's folder that holds a recording which was given as an object."""


def run(
    recording: Any,
    out: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    *,
    dt: float | None = None,
    dx: float | None = None,
    dy: float | None = None,
    unit: str = "image units",
    events: Events | None = None,
    until: str | None = None,
    latex: bool = False,
    figures: bool = True,
    pdf: bool = False,
    overwrite: bool = False,
) -> Run:
    """Turn a recording into a law.

    Parameters
    ----------
    recording : a path (film, stack, folder of pictures, array file), a :class:`Field`, a NumPy array u(t, y, x) with
        ``dt`` and ``dx``, or an ``xarray.DataArray`` with coordinates. Arrays and fields are taken as u itself.
    out : folder of the run, with report and figures; an unfinished run in it is continued. None: no folder is left.
    settings : None: the defaults.
    dt : seconds between the frames of a NumPy array.
    dx, dy : size of its cells, in ``unit``; ``dy`` None: square cells.
    unit : of lengths.
    events : who is told how it goes on; None: nobody.
    until : the last stage to run; None: all.
    latex, figures, pdf : write tables as LaTeX, figures, figures as PDF too.
    overwrite : begin anew where the folder holds a run of another recording.

    Returns
    -------
    The record of the run: ``print`` it, or look at its stages.

    Examples
    --------
    >>> import numpy as np, video2pde as vp
    >>> x = np.arange(24) - 12.0
    >>> spread = np.linspace(4.0, 12.0, 40)[:, None, None]  # a heat kernel: variance 2 β t, with β = 1
    >>> u = np.exp(-(x**2 + x[:, None] ** 2) / (2 * spread)) * 4.0 / spread
    >>> run = vp.run(u, settings=vp.load_settings("quick"), dt=4 / 39, dx=1.0, until="discovery")
    >>> round(run.discovery.identifiability.libraries["A"].fit.coefficients["laplacian"], 1)
    1.0
    """
    with ExitStack() as stack:
        if out is None:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="video2pde-"))) / "run"
            until = "comparison" if until is None else until  # all but the report
        else:
            place = Path(out)
        if isinstance(recording, str | os.PathLike):
            film = Path(recording)
        else:
            field = as_field(recording, dt=dt, dx=dx, dy=dy, unit=unit)
            place.mkdir(parents=True, exist_ok=True)
            film = field.save(place / IN_MEMORY)
        return run_pipeline(
            film,
            place,
            settings,
            events=events,
            until=until,
            latex=latex,
            figures=figures,
            pdf=pdf,
            overwrite=overwrite,
        )


def as_field(
    recording: Any,
    *,
    dt: float | None = None,
    dx: float | None = None,
    dy: float | None = None,
    unit: str = "image units",
) -> Field:
    """Take a field as it is, and make one of a NumPy array or of an ``xarray.DataArray``.

    Parameters
    ----------
    recording : field or array u(t, y, x).
    dt, dx, dy, unit : of a NumPy array, as in :func:`run`.

    Returns
    -------
    The field.

    Examples
    --------
    >>> as_field(np.ones((3, 4, 5)), dt=0.5, dx=0.1, unit="mm")
    Field(3 frames of 4×5, 1 s, 0.4×0.5 mm, u in [1, 1])
    """
    if isinstance(recording, Field):
        return recording
    if isinstance(recording, np.ndarray):
        if dt is None or dx is None:
            raise InputError("an array needs dt, the seconds between its frames, and dx, the size of its cells")
        return Field.from_array(recording, dt, dx, dy, unit)
    if hasattr(recording, "dims") and hasattr(recording, "coords"):
        return Field.from_xarray(recording)
    raise InputError(
        f"a {type(recording).__name__} is no recording; give a path, a Field, a NumPy array with dt and dx, or an "
        "xarray.DataArray"
    )


def example_field(noise: float = 0.002) -> Field:
    """Make a small field whose law is known, for examples and first steps.

    A Gaussian plume that is carried by v = (0.5, −0.25) and spreads by diffusion, exactly:
    u_t + v·∇u = Δu on 40 × 40 cells of size 1, 60 frames in 8 s.

    Parameters
    ----------
    noise : standard deviation of the noise that is added to every value.

    Returns
    -------
    The field; its law has the one coefficient ``laplacian`` = 1.

    Examples
    --------
    >>> example_field()
    Field(60 frames of 40×40, 8 s, 40×40 image units, u in [-0.008037, 0.789])
    """
    cells, times = np.arange(40) + 0.5, np.linspace(0.0, 8.0, 60)
    t = times[:, None, None]
    x, y = cells[None, None, :] - (18.0 + 0.5 * t), cells[None, :, None] - (21.0 - 0.25 * t)
    variance = 14.0 + 2.0 * t
    values = 0.8 * 14.0 / variance * np.exp(-(x**2 + y**2) / (2.0 * variance))
    values += noise * np.random.default_rng(1).standard_normal(values.shape)
    return Field.from_array(values, times[1], 1.0)


@lru_cache(maxsize=1)
def example_run() -> Run:
    """Run the quick preset over :func:`example_field`, once in a process, for a look at the record of a run.

    Returns
    -------
    The record, with all stages.

    Examples
    --------
    >>> print(example_run().chosen.model.equation.text)
    u_t + v(t)·∇u = 1 Δu
    """
    return run(example_field(), settings=load_settings("quick", overrides={"run.workers": 1}))

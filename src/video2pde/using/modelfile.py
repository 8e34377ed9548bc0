"""The model file: a law with its coefficients, drift, grid and origin, as JSON that is checked when it is read.

Schema ``video2pde-model``, version 1. Terms travel as (derivative, density) texts and are parsed against the
whitelist of ``terms.parse``; nothing in a file is ever evaluated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field as Limit
from pydantic import model_validator, ValidationError

import video2pde
from video2pde.errors import InputError
from video2pde.estimate import Estimate
from video2pde.field import Grid, Windows
from video2pde.files import atomic_write, require_regular
from video2pde.flow import Flow
from video2pde.machine import require_memory
from video2pde.maps import CoefficientMap
from video2pde.rollout.model import Model
from video2pde.rollout.region import Region
from video2pde.rollout.simulate import simulate
from video2pde.rollout.task import Rollout
from video2pde.settings import RecordingSettings, RolloutSettings
from video2pde.terms import CATALOGUE, get_term, Term
from video2pde.terms.text import term_parts
from video2pde.terms.words import coefficient_units
from video2pde.using.schema import (
    Entry,
    first_fault,
    Number,
    Origin,
    SavedDrift,
    SavedFlow,
    SavedGrid,
    SavedMap,
    SavedRegion,
    SavedTerm,
    SavedWindows,
)

SCHEMA: Literal["video2pde-model"] = "video2pde-model"
VERSION = 1
MAX_BYTES = 64_000_000
ROWS = ("terms", "draws")
"""Lists that the file holds one entry to a line, for people to read."""
GIVEN_CELLS, GIVEN_TIMES = 50, 40
"""Cells along the longer side and times that a given velocity is thinned to, about, in the file."""
TAIL = 0.1
"""Share of the film at its end whose mean drift continues after it."""

Array = NDArray[np.float64]
Velocity = Literal["measured", "mean", "none"]


class SavedModel(Entry):
    """A law ready to be used: u_t = −c_x v_x(t) u_x − c_y v_y(t) u_y − v·∇u + Σ c_j T_j(u), v(x, y, t) a flow."""

    schema_: Literal["video2pde-model"] = Limit(SCHEMA, alias="schema")
    version: Literal[1] = 1
    terms: Annotated[list[SavedTerm], Limit(max_length=64)]
    drift: SavedDrift
    flow_: SavedFlow | None = Limit(None, alias="flow")
    maps_: Annotated[list[SavedMap], Limit(max_length=16)] = Limit(default_factory=list, alias="maps")
    grid_: SavedGrid = Limit(alias="grid")
    region_: SavedRegion | None = Limit(None, alias="region")
    boundary: Literal["replicate", "periodic", "open"] = "replicate"
    clip: Literal["auto", "on", "off"] = "auto"
    windows_: SavedWindows = Limit(alias="windows")
    draws_: Annotated[list[list[Number]], Limit(max_length=20_000)] = Limit(default_factory=list, alias="draws")
    noise: Annotated[float, Limit(ge=0, le=1e6)] | None = None
    verdict: Literal["law", "approximation", "ambiguous", "no_law"] = "law"
    provenance: Origin = Origin()

    @model_validator(mode="after")
    def _fit_together(self) -> SavedModel:
        wrong = [row for row in self.draws_ if len(row) != len(self.terms)]
        if wrong:
            raise ValueError(f"a draw of {len(wrong[0])} coefficients for {len(self.terms)} terms")
        for term in self.terms:
            if term.low is not None and term.high is not None and term.low > term.high:
                raise ValueError(f"the interval of '{term.name}' ends before it begins")
        return self

    # ------------------------------------------------------------------ making, writing, reading

    @classmethod
    def of(
        cls,
        terms: Sequence[Term | str],
        estimates: Mapping[str, Estimate | float],
        grid: Grid,
        windows: Windows,
        times: ArrayLike,
        velocity: ArrayLike,
        *,
        drift_scale: tuple[float, float] = (1.0, 1.0),
        flow: Flow | None = None,
        maps: Sequence[CoefficientMap] = (),
        region: SavedRegion | None = None,
        draws: ArrayLike | None = None,
        noise: float | None = None,
        rollout: RolloutSettings | None = None,
        verdict: Literal["law", "approximation", "ambiguous", "no_law"] = "law",
        path: str = "",
        sha256: str = "",
        settings_hash: str = "",
        recording: RecordingSettings | None = None,
    ) -> SavedModel:
        """Collect a law and what is needed to use it.

        Parameters
        ----------
        terms : the T_j, as terms or names of the catalogue.
        estimates : by term name, an estimate with ``value``, ``low`` and ``high``, or a number alone.
        times, velocity : shapes (t,) and (t, 2), the film's drift in length per second.
        flow : velocity that varies in space, beside the drift. None: no such flow.
        maps : how coefficients vary in space or time; none: all are constant.
        region : where the law holds, and what its edge is in a simulation. None: in the whole picture.
        draws : shape (B, terms), bootstrap draws of the coefficients.
        noise : standard deviation of a pixel's noise, for ensembles. None: not known.
        rollout : boundary and clipping are taken from it; its viscosity is added to the Laplacian's coefficient.
        recording : how the film was read.
        """
        chosen = rollout or RolloutSettings()
        whole = tuple(get_term(term) if isinstance(term, str) else term for term in terms)
        known = {term.name: _as_estimate(estimates[term.name]) for term in whole}
        rows = np.zeros((0, len(whole))) if draws is None else np.asarray(draws, float)
        values = {
            "terms": [_save_term(term, known[term.name], grid.unit) for term in whole],
            "drift": _save_drift(times, velocity, drift_scale),
            "flow": None if flow is None else _save_flow(flow),
            "maps": [SavedMap.of(each).model_dump() for each in maps],
            "grid": asdict(replace(grid, height=float(grid.height), width=float(grid.width))),
            "region": None if region is None else region.model_dump(),
            "boundary": chosen.boundary,
            "clip": chosen.clip,
            "windows": {key: getattr(windows, key) for key in ("train_end", "validation_end", "frames")},
            "draws": rows.tolist(),
            "noise": noise,
            "verdict": verdict,
            "provenance": {
                "path": path,
                "sha256": sha256,
                "version": video2pde.__version__,
                "settings_hash": settings_hash,
                "recording": None if recording is None else recording.model_dump(mode="json", exclude_none=True),
            },
        }
        model = _validate(values, "the model")
        return model if chosen.viscosity == 0.0 else model._with_viscosity(chosen.viscosity)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model as JSON, whole or not at all."""
        target = Path(path)
        with atomic_write(target) as file:
            file.write(self.to_json().encode())
        return target

    def to_json(self) -> str:
        """Write the model as JSON text that ``load`` reads back to an equal model."""
        lines = []
        for key, value in self.model_dump(by_alias=True).items():
            if key in ("flow", "region", "maps") and not value:
                continue
            rows = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in value] if key in ROWS else None
            text = json.dumps(value, ensure_ascii=False, allow_nan=False) if not rows else _stack(rows)
            lines.append(f" {json.dumps(key)}: {text}")
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SavedModel:
        """Read and check a model file; what is wrong with it is said in one line."""
        file = Path(path)
        try:
            if file.is_dir():
                file = file / "model.json"
            require_regular(file)
            if file.stat().st_size > MAX_BYTES:
                raise InputError(f"{file} has more than {MAX_BYTES // 1_000_000} MB; that is no model file")
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise InputError(f"no such model file: {file}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the model file {file}: {error}") from None
        return cls.parse(text, str(file))

    @classmethod
    def parse(cls, text: str, origin: str = "the model") -> SavedModel:
        """Read a model from JSON text."""
        try:
            values = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{origin} is not JSON: {str(error).splitlines()[0]}") from None
        if not isinstance(values, dict) or values.get("schema") != SCHEMA:
            raise InputError(f"{origin} is not a model file: its schema is not '{SCHEMA}'")
        if values.get("version") != VERSION:
            found = str(values.get("version"))[:20]
            raise InputError(f"{origin} has version {found} of the schema; this video2pde reads version {VERSION}")
        return _validate(values, origin)

    # ------------------------------------------------------------------ what it holds

    @cached_property
    def grid(self) -> Grid:
        """The film's grid."""
        return Grid(**self.grid_.model_dump())

    @property
    def windows(self) -> Windows:
        return Windows(self.windows_.frames, self.windows_.train_end, self.windows_.validation_end)

    @cached_property
    def draws(self) -> Array:
        """Bootstrap draws of the coefficients, shape (B, terms)."""
        return np.array(self.draws_, float).reshape(len(self.draws_), len(self.terms))

    @cached_property
    def law(self) -> Model:
        """The law with its point estimates, its flow and its maps, the drift taken as measured."""
        terms, values = tuple(entry.term for entry in self.terms), tuple(entry.value for entry in self.terms)
        return Model(terms, values, flow=self.flow, maps=tuple(entry.map for entry in self.maps_))

    @property
    def flow(self) -> Flow | None:
        """The flow that varies in space, beside the drift; it stays as it was at the end of its span."""
        return None if self.flow_ is None else self.flow_.flow

    def region(self, u0: ArrayLike, times: ArrayLike) -> Region | None:
        """Return the region of a simulation from u0 (y, x) over ``times``; None: the law holds in the whole picture."""
        if self.region_ is None:
            return None
        inside = self.region_.inside(self.grid.shape)
        if self.region_.edge == "walls":
            return Region(inside)
        frames = (len(np.asarray(times)), *self.grid.shape)
        return Region(inside, np.broadcast_to(np.asarray(u0, np.float32), frames))

    @property
    def settings(self) -> RolloutSettings:
        """The simulator's settings that the law was found with."""
        return RolloutSettings(boundary=self.boundary, clip=self.clip)

    @property
    def times(self) -> Array:
        """Frame times of the film, seconds."""
        return np.array(self.drift.times)

    @property
    def frame_interval(self) -> float:
        """Time between the film's frames, seconds; 1 where the film has one frame."""
        times = self.drift.times
        return (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 1.0

    def value(self, name: str) -> float:
        """Return a term's coefficient, 0 where the law does not have it."""
        return self.law.coefficient(name)

    def velocity_at(self, times: ArrayLike, velocity: Velocity | ArrayLike | None = None) -> Array:
        """Return the drift (t, 2) that acts at ``times``, its scale (c_x, c_y) included.

        ``"measured"`` (or None): as on the film, and after its end the mean over the film's last tenth; ``"mean"``:
        the film's mean; ``"none"``: no drift. An array (t, 2) is taken as it is.
        """
        t = np.asarray(times, float)
        if velocity is not None and not isinstance(velocity, str):
            return np.asarray(velocity, float)
        measured = np.array(self.drift.velocity) * self.drift.scale
        if velocity == "none":
            return np.zeros((len(t), 2))
        if velocity == "mean":
            return np.tile(measured.mean(axis=0), (len(t), 1))
        if velocity not in (None, "measured"):
            raise InputError(f"the drift '{velocity}' is not known; give measured, mean, none or an array (t, 2)")
        inside = np.stack([np.interp(t, self.drift.times, measured[:, axis]) for axis in range(2)], axis=1)
        after = t > self.drift.times[-1]
        return np.where(after[:, None], self.final_velocity, inside)

    @property
    def final_velocity(self) -> Array:
        """Mean drift over the film's last tenth, which continues after its end; length per second."""
        measured = np.array(self.drift.velocity) * self.drift.scale
        return np.asarray(measured[-max(1, round(TAIL * len(measured))) :].mean(axis=0))

    # ------------------------------------------------------------------ what it does

    def simulate(
        self,
        u0: ArrayLike,
        times: ArrayLike,
        velocity: Velocity | ArrayLike | None = None,
        settings: RolloutSettings | None = None,
    ) -> Rollout:
        """Integrate the law from u0 (y, x), the state at ``times[0]``, over ``times`` in seconds of the film.

        Times may go past the film's end: see :meth:`velocity_at` for the drift there.
        """
        frames = len(np.asarray(times))
        require_memory(
            16.0 * frames * self.grid.ny * self.grid.nx,
            f"{frames} frames of {self.grid.ny}×{self.grid.nx}",
            "simulate a shorter time, or with fewer frames (--fps, --duration)",
        )
        v = self.velocity_at(times, velocity)
        region = self.region(u0, times)
        return simulate(self.law, u0, times, self.grid, v, settings or self.settings, region=region)

    def _with_viscosity(self, viscosity: float) -> SavedModel:
        """Put the numerical diffusion that the law was found with into its Laplacian, draws and interval included."""
        laplacian = CATALOGUE["laplacian"]
        values = self.model_dump(by_alias=True)
        if laplacian in self.law.terms:
            index = self.law.terms.index(laplacian)
            entry = values["terms"][index]
            for key in ("value", "low", "high"):
                entry[key] = None if entry[key] is None else entry[key] + viscosity
            for row in values["draws"]:
                row[index] += viscosity
        else:
            values["terms"].append(_save_term(laplacian, Estimate(viscosity), self.grid.unit))
            for row in values["draws"]:
                row.append(viscosity)
        return _validate(values, "the model")


def _validate(values: dict[str, Any], origin: str) -> SavedModel:
    try:
        # through JSON, whose lists are what a strict tuple accepts
        model = SavedModel.model_validate_json(json.dumps(values, allow_nan=False))
        _ = model.law
        if model.region_ is not None:
            model.region_.inside(model.grid.shape)
    except ValidationError as error:
        raise InputError(f"{origin} is not a valid model: {first_fault(error)}") from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"{origin} is not a valid model: {str(error).splitlines()[0]}") from None
    except InputError as error:
        raise InputError(f"{origin} is not a valid model: {error}") from None
    return model


def _save_drift(times: ArrayLike, velocity: ArrayLike, scale: tuple[float, float]) -> dict[str, Any]:
    return {
        "times": np.asarray(times, float).tolist(),
        "velocity": [tuple(pair) for pair in np.asarray(velocity, float).tolist()],
        "scale": (float(scale[0]), float(scale[1])),
    }


def _save_flow(flow: Flow) -> dict[str, Any]:
    """Write a flow; a given velocity on few cells and times, between which it is linear."""
    shape = flow.shape
    saved: dict[str, Any] = {
        "kind": shape.kind,
        "extent": [float(length) for length in shape.extent],
        "span": [float(time) for time in shape.span],
        "splines": list(shape.splines),
        "in_time": shape.in_time,
        "course": list(shape.course),
        "degree": shape.degree,
        "divergence": shape.divergence,
        "potential": shape.potential,
        "coefficients": flow.coefficients.tolist(),
        "error": flow.error.tolist(),
    }
    if flow.given is not None and flow.given_times is not None:
        kept = np.unique(np.linspace(0, len(flow.given_times) - 1, GIVEN_TIMES).round().astype(int))
        saved["given"] = np.round(_thin(flow.given[kept]).astype(float), 7).tolist()
        saved["given_times"] = flow.given_times[kept].tolist()
    return saved


def _thin(fields: NDArray[np.float32]) -> NDArray[np.float32]:
    """Average (n, 2, y, x) over whole blocks of cells, down to about GIVEN_CELLS along the longer side."""
    ny, nx = fields.shape[2:]
    block = max(b for b in range(1, max(2, max(ny, nx) // GIVEN_CELLS + 1)) if ny % b == 0 and nx % b == 0)
    return np.asarray(fields.reshape(*fields.shape[:2], ny // block, block, nx // block, block).mean(axis=(3, 5)))


def _stack(rows: list[str]) -> str:
    """Write a JSON list with one entry on each line."""
    return "[\n  " + ",\n  ".join(rows) + "\n ]"


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that a model may hold")


def _as_estimate(given: Estimate | float) -> Estimate:
    return Estimate(float(given)) if isinstance(given, int | float) else given


def _save_term(term: Term, estimate: Estimate, unit: str) -> dict[str, Any]:
    parts = [{"derivative": derivative, "density": density} for derivative, density in term_parts(term)]
    units = coefficient_units(term, unit)
    return {"name": term.name, "parts": parts, **estimate.to_json(), "units": units}

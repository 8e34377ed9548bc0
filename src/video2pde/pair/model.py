"""The model file of two fields: both laws with intervals, grid and origin, as JSON that is checked when it is read.

Schema ``video2pde-pair``, version 1. Terms travel by name, and nothing in a file is ever evaluated.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Limit
from pydantic import ValidationError

import video2pde
from video2pde.errors import InputError
from video2pde.estimate import Estimate
from video2pde.field import Grid
from video2pde.files import atomic_write, require_regular
from video2pde.pair.calibrate import PairCalibration
from video2pde.pair.fields import Pair
from video2pde.pair.law import PairLaw
from video2pde.pair.rollout import PairRollout, roll_out, Scene
from video2pde.settings import RecordingSettings, RolloutSettings
from video2pde.terms.pairs import FIELDS, get_pair_term
from video2pde.terms.words import coefficient_units
from video2pde.using.schema import Entry, first_fault, Number, Origin, SavedGrid

SCHEMA = "video2pde-pair"
MAX_BYTES = 16_000_000
Array = NDArray[np.float64]


class SavedCoefficient(Entry):
    """One coefficient of a law, with its interval and units."""

    name: Annotated[str, Limit(max_length=40)]
    value: Number
    low: Number | None = None
    high: Number | None = None
    units: Annotated[str, Limit(max_length=80)] = ""


class SavedLaw(Entry):
    """One field's law."""

    terms: Annotated[list[SavedCoefficient], Limit(max_length=32)]

    @property
    def values(self) -> dict[str, float]:
        return {term.name: term.value for term in self.terms}


class SavedLaws(Entry):
    """Both laws."""

    u: SavedLaw
    w: SavedLaw


class PairModel(Entry):
    """Two laws ready to be used: u_t = Σ a_j T_j(u, w), w_t = Σ b_j T_j(u, w)."""

    schema_: Literal["video2pde-pair"] = Limit("video2pde-pair", alias="schema")
    version: Literal[1] = 1
    fields_: SavedLaws = Limit(alias="fields")
    grid_: SavedGrid = Limit(alias="grid")
    boundary: Literal["replicate", "periodic", "open"] = "replicate"
    duration: Annotated[float, Limit(gt=0, le=1e12)] = 1.0
    interval: Annotated[float, Limit(gt=0, le=1e12)] = 1.0
    verdict: Literal["law", "approximation", "ambiguous", "no_law"] = "law"
    provenance: Origin = Origin()

    @classmethod
    def of(
        cls, found: PairCalibration, pair: Pair, rollout: RolloutSettings, verdict: Any, recording: RecordingSettings
    ) -> PairModel:
        """Collect two calibrated laws and what is needed to use them."""
        unit = pair.grid.unit

        def law(field: str) -> SavedLaw:
            return SavedLaw(terms=[_coefficient(name, e, unit) for name, e in found.estimates[field].items()])

        origin = Origin(
            path=pair.u.provenance.path,
            sha256=pair.u.provenance.sha256,
            version=video2pde.__version__,
            recording=recording.model_dump(mode="json"),
        )
        return cls(
            fields=SavedLaws(u=law("u"), w=law("w")),
            grid=SavedGrid(**asdict(pair.grid)),
            boundary=rollout.boundary,
            duration=pair.u.duration,
            interval=pair.u.dt,
            verdict=verdict,
            provenance=origin,
        )

    @property
    def law(self) -> PairLaw:
        return PairLaw.of(self.fields_.u.values, self.fields_.w.values)

    @property
    def grid(self) -> Grid:
        return Grid(**self.grid_.model_dump())

    def to_json(self) -> str:
        """Write the model as JSON text."""
        return json.dumps(self.model_dump(mode="json", by_alias=True), indent=1, ensure_ascii=False) + "\n"

    def save(self, path: Path) -> Path:
        """Write the model file, whole or not at all."""
        with atomic_write(path) as file:
            file.write(self.to_json().encode())
        return path

    @classmethod
    def load(cls, path: Path) -> PairModel:
        """Read a model file, or that of a run's folder; everything in it is checked."""
        file = path / "model.json" if path.is_dir() else path
        try:
            require_regular(file)
            if file.stat().st_size > MAX_BYTES:
                raise InputError(f"{file} is too large to be the model of two fields")
            model = cls.model_validate_json(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"no such model file: {file}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read {file}: {error}") from None
        except ValidationError as error:
            raise InputError(f"{file} is not the model of two fields: {first_fault(error)}") from None
        _ = model.law  # terms that do not exist are named here
        return model

    def simulate(self, start: Array, times: Array, grid: Grid | None = None) -> PairRollout:
        """Carry both fields (2, y, x) on over ``times``, on the model's grid or another."""
        return roll_out(self.law, start, times, Scene(grid or self.grid, RolloutSettings(boundary=self.boundary)))


def _coefficient(name: str, estimate: Estimate, unit: str) -> SavedCoefficient:
    known = estimate.has_interval
    return SavedCoefficient(
        name=name,
        value=estimate.value,
        low=estimate.low if known else None,
        high=estimate.high if known else None,
        units=coefficient_units(get_pair_term(name), unit),
    )


def is_pair_model(path: Path) -> bool:
    """Tell whether a file, or a run's folder, holds the model of two fields."""
    file = path / "model.json" if path.is_dir() else path
    try:
        require_regular(file)
        with file.open(encoding="utf-8") as stored:
            head = stored.read(200)
    except (OSError, UnicodeDecodeError):
        return False
    return f'"{SCHEMA}"' in head


def export_pair(model: PairModel, form: str) -> str:
    """Write both laws for use elsewhere: ``latex``, ``python`` (NumPy alone) or ``json``."""
    if form == "json":
        return model.to_json()
    if form == "latex":
        rows = [
            f"  ${field}$ & {term.name.replace('_', chr(92) + '_')} & {term.value:.6g} & "
            + (f"{term.low:.6g} to {term.high:.6g}" if term.low is not None and term.high is not None else "not known")
            + rf" & {term.units.replace('²', '$^2$')} \\"
            for field in FIELDS
            for term in getattr(model.fields_, field).terms
        ]
        head = [r"\begin{equation}", model.law.equations.latex, r"\end{equation}", r"\begin{tabular}{llrll}"]
        return "\n".join(
            [*head, r"  law & term & coefficient & 95\,\% interval & unit \\", *rows, r"\end{tabular}", ""]
        )
    if form == "python":
        from video2pde.pair.script import write_script

        return write_script(model)
    raise InputError(f"two fields cannot be exported to '{form}'; there are: latex, python, json")

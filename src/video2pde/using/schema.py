"""The parts of a model file: what each may hold, and the limits on it."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
import sympy
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator, ValidationError
from pydantic import Field as Limit

from video2pde.errors import InputError
from video2pde.flow import Flow, FlowShape
from video2pde.maps import CoefficientMap, MapShape
from video2pde.settings import RecordingSettings
from video2pde.terms import CATALOGUE, Term
from video2pde.terms.families import family_of
from video2pde.terms.text import degree
from video2pde.units import LONGEST_UNIT, require_unit

MAX_DEGREE = 8
"""Highest degree of a density in a file: higher ones take minutes to expand."""

Number = Annotated[float, Limit(ge=-1e120, le=1e120)]
Size = Annotated[float, Limit(gt=0, le=1e20)]
Short = Annotated[str, Limit(max_length=200)]


def _require_unit(text: str) -> str:
    try:
        return require_unit(text)
    except InputError as error:
        raise ValueError(str(error)) from None


def _require_units(text: str) -> str:
    """Check the units of a coefficient: a unit with powers, over a time."""
    _require_unit(text[:LONGEST_UNIT])
    _require_unit(text[LONGEST_UNIT:])
    return text


Unit = Annotated[str, AfterValidator(_require_unit)]
Units = Annotated[str, Limit(max_length=60), AfterValidator(_require_units)]


class Entry(BaseModel):
    """Refuse unknown keys and numbers that are not finite; keep what was read unchangeable."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)


class SavedPart(Entry):
    """A derivative and the density that it acts on."""

    derivative: Annotated[str, Limit(pattern="^[xy]{0,4}$")]
    density: Short


class SavedTerm(Entry):
    """A term, its coefficient with the 95 % interval (none: not known), and the coefficient's units."""

    name: Annotated[str, Limit(max_length=40)]
    parts: Annotated[list[SavedPart], Limit(min_length=1, max_length=16)]
    value: Number
    low: Number | None = None
    high: Number | None = None
    units: Units = ""

    @cached_property
    def term(self) -> Term:
        """Parse the parts; a name of the catalogue must mean what it means there, with any parameter that it has."""
        term = Term.of(self.name, *((part.derivative, part.density) for part in self.parts))
        if any(degree(part.density) > MAX_DEGREE for part in term.parts):
            raise InputError(f"term '{self.name}': a density of a degree above {MAX_DEGREE} is refused")
        known = None if family_of(term) is not None else CATALOGUE.get(self.name)
        if known is not None and known != term and sympy.expand(known.strong - term.strong) != 0:
            raise InputError(f"term '{self.name}' is not the catalogue's term of that name; rename it")
        return term


class SavedDrift(Entry):
    """Drift velocity (v_x, v_y) at the film's frame times, length per second, and the factors (c_x, c_y) on it."""

    times: Annotated[list[Number], Limit(min_length=1, max_length=200_000)]
    velocity: Annotated[list[tuple[Number, Number]], Limit(min_length=1, max_length=200_000)]
    scale: tuple[Number, Number] = (1.0, 1.0)

    @model_validator(mode="after")
    def _fit_together(self) -> SavedDrift:
        if len(self.times) != len(self.velocity):
            raise ValueError(f"{len(self.times)} times for {len(self.velocity)} velocities")
        if any(b <= a for a, b in zip(self.times[:-1], self.times[1:], strict=True)):
            raise ValueError("times must increase")
        return self


class SavedFlow(Entry):
    """A flow beside the drift: its shape, the coefficients (l, k) and their standard errors, or a given velocity."""

    kind: Literal["affine", "stream", "given"]
    extent: tuple[Size, Size]
    span: tuple[Number, Number]
    splines: tuple[Annotated[int, Limit(ge=1, le=40)], Annotated[int, Limit(ge=1, le=40)]] = (1, 1)
    in_time: Annotated[int, Limit(ge=1, le=100)] = 1
    course: Annotated[tuple[Number, ...], Limit(max_length=100)] = ()
    degree: Annotated[int, Limit(ge=1, le=9)] = 3
    divergence: bool = False
    potential: bool = False
    coefficients: Annotated[list[list[Number]], Limit(min_length=1, max_length=100)]
    error: Annotated[list[list[Number]], Limit(max_length=100)] = Limit(default_factory=list)
    given: Annotated[list[list[list[list[Number]]]], Limit(max_length=200)] | None = None
    given_times: Annotated[list[Number], Limit(max_length=200)] | None = None

    @cached_property
    def flow(self) -> Flow:
        """Build the flow; what does not fit together is refused."""
        if self.course and (self.in_time > 1 or len(self.course) < 4):
            raise InputError("the course of a flow needs four values or more, and modes that change together")
        in_time = (self.in_time, self.divergence, self.course)
        shape = FlowShape(
            self.kind, self.extent, self.span, self.splines, *in_time, self.degree, potential=self.potential
        )
        values = _table(self.coefficients)
        error = _table(self.error) if self.error else np.zeros_like(values)
        if self.kind != "given":
            return Flow(shape, values, error)
        if not self.given or not self.given_times or len(self.given) != len(self.given_times):
            raise InputError("a given velocity needs as many fields as times")
        return Flow(shape, values, error, _table(self.given).astype(np.float32), np.array(self.given_times))


class SavedMap(Entry):
    """A coefficient that varies: its shape, its departures q, relative to the term's coefficient, and their errors."""

    term: Annotated[str, Limit(max_length=40)]
    over: Literal["space", "time"]
    breaks: Annotated[
        list[Annotated[list[Number], Limit(min_length=2, max_length=200)]], Limit(min_length=1, max_length=2)
    ]
    departures: Annotated[list[Number], Limit(min_length=2, max_length=10_000)]
    error: Annotated[list[Number], Limit(min_length=2, max_length=10_000)]
    signal: Annotated[list[Number], Limit(min_length=2, max_length=10_000)]

    @classmethod
    def of(cls, each: CoefficientMap) -> SavedMap:
        """Write a map; of its errors those of the single splines."""
        shape, error = each.shape, np.sqrt(np.maximum(np.diag(each.covariance), 0.0))
        return cls(
            term=shape.term,
            over=shape.over,
            breaks=[list(axis) for axis in shape.breaks],
            departures=[float(value) for value in each.departures],
            error=[float(value) for value in error[1:]],
            signal=[float(value) for value in each.signal],
        )

    @cached_property
    def map(self) -> CoefficientMap:
        """Build the map; what does not fit together is refused."""
        shape = MapShape(self.term, self.over, tuple(tuple(axis) for axis in self.breaks))
        covariance = np.diag([0.0, *self.error]) ** 2
        nothing = np.zeros((0, len(self.departures)))
        return CoefficientMap(shape, np.array(self.departures), covariance, np.array(self.signal), nothing)


def _table(rows: Any) -> NDArray[np.float64]:
    try:
        return np.array(rows, float)
    except ValueError:
        raise InputError("a flow's coefficients must form a table") from None


class SavedGrid(Entry):
    """The film's grid."""

    ny: Annotated[int, Limit(ge=4, le=8192)]
    nx: Annotated[int, Limit(ge=4, le=8192)]
    height: Size
    width: Size
    unit: Unit = "image units"
    pitch: Literal["cells", "nodes"] = "cells"


class SavedRegion(Entry):
    """The region in which the law holds: ``runs`` of cells outside, inside, outside, …, row by row.

    ``edge``: walls, which nothing passes; or held: outside the first frame stays as it is.
    """

    edge: Literal["walls", "held"]
    runs: Annotated[list[Annotated[int, Limit(ge=0, le=100_000_000)]], Limit(min_length=1, max_length=1_000_000)]

    @classmethod
    def of(cls, inside: NDArray[np.bool_], edge: Literal["walls", "held"]) -> SavedRegion:
        """Write a mask (y, x) as runs."""
        changes = np.flatnonzero(np.diff(np.concatenate([[False], inside.ravel()]).astype(np.int8)))
        return cls(edge=edge, runs=[int(n) for n in np.diff(np.concatenate([[0], changes, [inside.size]]))])

    def inside(self, shape: tuple[int, int]) -> NDArray[np.bool_]:
        """Return the mask (y, x); runs that do not fill the grid are refused."""
        if sum(self.runs) != shape[0] * shape[1]:
            raise InputError(f"the region has {sum(self.runs)} cells, the grid {shape[0]}×{shape[1]}")
        return np.repeat(np.arange(len(self.runs)) % 2 == 1, self.runs).reshape(shape)


class SavedWindows(Entry):
    """Frames of the film, and where its training and validation windows end."""

    train_end: Annotated[int, Limit(ge=1)]
    validation_end: Annotated[int, Limit(ge=1)]
    frames: Annotated[int, Limit(ge=1, le=10_000_000)]

    @model_validator(mode="after")
    def _ascend(self) -> SavedWindows:
        if not self.train_end <= self.validation_end <= self.frames:
            raise ValueError("the windows must follow one another within the film")
        return self


class Origin(Entry):
    """Where the law came from: the film, how it was read, and by which version."""

    path: Annotated[str, Limit(max_length=4096)] = ""
    sha256: Annotated[str, Limit(pattern="^([0-9a-f]{64})?$")] = ""
    version: Short = ""
    settings_hash: Short = ""
    recording: dict[str, Any] | None = None

    def recording_settings(self) -> RecordingSettings:
        """Return the settings that the film was read with; the defaults where the file does not say."""
        try:
            return RecordingSettings.model_validate(self.recording or {})
        except ValidationError as error:
            raise InputError(f"the model file's recording settings are not valid: {first_fault(error)}") from None


def first_fault(error: ValidationError) -> str:
    """Say where and what the first fault is, in one line."""
    item = error.errors()[0]
    place = ".".join(str(part) for part in item["loc"]) or "the file"
    return f"{place}: {item['msg'].removeprefix('Value error, ')}"

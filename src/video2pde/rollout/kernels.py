"""Compiled kernels, generated from the definitions of the terms.

For one set of terms, one order of accuracy and one number type a Python module is written, stored in the
user's cache folder and compiled by numba, once: coefficients, drift, pitch and step are arguments. The
module holds ``stage`` (one fused pass over the picture) and ``bound`` (the stability estimate), which the time
loop of ``driver.py`` is given. Discretisation follows ``terms.stencil``: a part D^α f(u) is differenced as it
stands, a part whose density holds gradients is expanded and evaluated from central differences of u.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray
from sympy.printing.pycode import PythonCodePrinter

from video2pde.compiled import remember_address
from video2pde.device import cache_folder
from video2pde.errors import InputError, StageError
from video2pde.field import Grid
from video2pde.rollout import driver
from video2pde.rollout.mapped import corners, map_name, plain_terms, write_mapped
from video2pde.rollout.source import neighbour_name, Offset, spacing, StencilSource
from video2pde.terms import Term
from video2pde.terms.parse import FUNCTIONS
from video2pde.terms.stencil import central_weights
from video2pde.terms.term import jet_symbol, Order

Array = NDArray[Any]
REAL_LIMIT, IMAGINARY_LIMIT = 2.51, 1.73
"""How far the stability region of the third-order Runge–Kutta method reaches along each axis."""

HERE: Offset = (0, 0)


@dataclass(frozen=True)
class Structure:
    """Name what a kernel is compiled for: everything that is not an argument at run time.

    ``flow``: whether a velocity field acts beside the uniform drift. ``walls``: whether neighbours are looked up, for a
    region whose edge nothing passes. ``mapped``: which terms have a coefficient that varies in space.
    """

    terms: tuple[Term, ...]
    accuracy: int = 4
    precision: str = "float64"
    flow: bool = False
    walls: bool = False
    mapped: tuple[int, ...] = ()


class _Printer(PythonCodePrinter):  # type: ignore[misc]
    """Print expressions so that every number has the kernel's type and powers are products."""

    def _print_Integer(self, expr: Any) -> str:
        return f"real({int(expr)})"

    def _print_Rational(self, expr: Any) -> str:
        return f"real({int(expr.p)} / {int(expr.q)})"

    def _print_Float(self, expr: Any) -> str:
        return f"real({float(expr)!r})"

    def _print_Pow(self, expr: Any, **_: Any) -> str:
        base, exponent = f"({self._print(expr.base)})", expr.exp
        if exponent.is_Integer:
            product = "*".join([base] * abs(int(exponent)))
            return f"({product})" if exponent > 0 else f"(real(1)/({product}))"
        if exponent.is_Rational and exponent.q == 2:
            root = f"math.sqrt{base}"
            product = "*".join([root] * abs(int(exponent.p)))
            return f"({product})" if exponent > 0 else f"(real(1)/({product}))"
        return f"math.exp({self._print(exponent)}*math.log{base})"


def print_expression(expression: sympy.Expr) -> str:
    """Turn an expression into source, after checking that only whitelisted names and functions occur."""
    functions = {type(f) for f in expression.atoms(sympy.Function)}
    strange = functions - {function for function in FUNCTIONS.values() if isinstance(function, type)}
    names = {str(s) for s in expression.free_symbols}
    if strange or not all(name.isidentifier() and "__" not in name for name in names):
        raise StageError(f"the expression {expression} holds something that no density may hold")
    return str(_Printer({"fully_qualified_modules": True}).doprint(expression))


class _Source(StencilSource):
    """Write a pass as Python for numba: the row of a neighbour is sliced before the inner loop."""

    def __init__(self, accuracy: int, walls: list[Offset] | None = None) -> None:
        self.accuracy, self.walls = accuracy, walls
        self.neighbours: dict[Offset, str] = {}
        self.lines: list[str] = []
        self.differences: dict[tuple[Order, sympy.Expr], str] = {}
        self.maps: dict[tuple[int, Offset], str] = {}

    def neighbour(self, offset: Offset) -> str:
        """Name the value of u at an offset; its row is sliced outside the inner loop."""
        name = neighbour_name(offset)
        self.neighbours[offset] = name
        if self.walls is None:
            return f"{name}[i]"
        if offset not in self.walls:
            self.walls.append(offset)
        return f"flat[{name}[i]]"

    def define(self, name: str, value: str) -> str:
        return f"{name} = {value}"

    def number(self, value: float) -> str:
        return f"real({value!r})"

    def written(self, expression: sympy.Expr) -> str:
        return print_expression(expression)

    def coefficient(self, m: int, offset: Offset) -> str:
        """Write the coefficient of map ``m`` at an offset; its row is sliced outside the inner loop, as u's is."""
        self.neighbour(offset)
        self.maps[m, offset] = map_name(m, offset)
        return f"{map_name(m, offset)}[i]" if self.walls is None else f"map{m}[{self.neighbours[offset]}[i]]"

    def density_at(self, offset: Offset, density: sympy.Expr) -> str:
        value = self.neighbour(offset)
        name = f"f{len(self.differences)}{self.neighbours[offset]}"
        self.lines += [f"u = {value}", f"{name} = {print_expression(density)}"]
        return name


def _write_linear(structure: Structure, source: _Source) -> tuple[list[str], list[str]]:
    """Write the linear stencil: the weights, computed before the loop, and the products inside it.

    Identity, drift and every term k·D^α u share one weight for each neighbour.
    """
    weights = source.linear_weights(plain_terms(structure.terms, structure.mapped), lambda n: f"c{n}")
    names = {offset: (source.neighbour(offset), source.neighbours[offset]) for offset in weights}
    before = [f"k{names[offset][1]} = {' + '.join(parts)}" for offset, parts in weights.items()]
    return before, [f"k{name}*{value}" for value, name in names.values()]


@lru_cache(maxsize=64)
def symbol_peak(order: Order, accuracy: int) -> float:
    """Return the largest modulus of the Fourier symbol of a central difference D^order on unit spacing."""
    peak = 1.0
    for times in order:
        weights = np.array(central_weights(times, accuracy))
        offsets = np.arange(len(weights)) - len(weights) // 2
        peak *= float(np.abs(np.exp(1j * np.outer(np.linspace(0.0, np.pi, 721), offsets)) @ weights).max())
    return peak


def stability_limit(order: Order) -> float:
    """Return how far the Runge–Kutta method is stable for a derivative: even ones are real, odd ones imaginary."""
    return IMAGINARY_LIMIT if sum(order) % 2 else REAL_LIMIT


def _loop(source: _Source, radius: int, before: list[str], body: list[str], skip: tuple[str, ...] = ()) -> list[str]:
    """Write the loop over the pixels; ``skip``: what is done outside walls."""
    if source.walls is None:
        slices = [
            f"{name} = w[j + {radius + j}, {radius + i}:{radius + i} + nx]"
            for (j, i), name in source.neighbours.items()
        ]
        slices += [
            f"{name} = maps[{m}, j + {radius + j}, {radius + i}:{radius + i} + nx]"
            for (m, (j, i)), name in source.maps.items()
        ]
    else:  # where each neighbour is, is looked up
        source.neighbour(HERE)
        slices = [f"{name} = near[{source.walls.index(offset)}, j]" for offset, name in source.neighbours.items()]
    lines = ["for j in range(ny):", *(f"    {line}" for line in [*slices, *before]), "    for i in range(nx):"]
    skipped = [] if source.walls is None else [f"if {source.neighbours[HERE]}[i] < 0:", *skip, "    continue"]
    return lines + [f"        {line}" for line in [*skipped, *source.lines, *body]]


def _function(head: str, lines: list[str]) -> str:
    return "\n".join([f"@njit(**OPTIONS)\ndef {head}:", *(f"    {line}" for line in lines)]) + "\n"


def _write_flow(structure: Structure, source: _Source) -> tuple[str, list[str]]:
    """Write −v·∇u of a velocity field: the summand of a pixel, and the rows sliced before the inner loop."""
    if not structure.flow:
        return "", []
    text = f" - along_x[i]*{source.difference((1, 0))} - along_y[i]*{source.difference((0, 1))}"
    return text, ["along_x = wind[0, j]", "along_y = wind[1, j]"]


def _write_stage(structure: Structure, walls: list[Offset] | None) -> tuple[str, int]:
    """Write the fused pass; return its source and the radius of its stencil."""
    source = _Source(structure.accuracy, walls)
    weights, products = _write_linear(structure, source)
    nonlinear = source.nonlinear(plain_terms(structure.terms, structure.mapped))
    carried, sliced = _write_flow(structure, source)
    varying = write_mapped(source, structure.terms, structure.mapped, source.coefficient)
    replacements, (reduced,) = sympy.cse(nonlinear, symbols=sympy.numbered_symbols("s"))
    source.lines += [f"{name} = {print_expression(value)}" for name, value in replacements]
    radius = source.radius
    body = [
        f"value = keep*old[i] + {' + '.join(products)} + step*({print_expression(reduced)}{carried}{varying})",
        "kept = value if value > low else low",
        "kept = kept if kept < high else high",
        "lost += abs(value - kept)",
        "new[i] = kept",
    ]
    inner = f"j + {radius}, {radius}:{radius} + nx"
    lines = [
        f"ny, nx = w.shape[0] - {2 * radius}, w.shape[1] - {2 * radius}",
        *_flatten(walls),
        *(f"map{m} = maps[{m}].reshape(-1)" for m in range(len(structure.mapped) if structure.walls else 0)),
        *(f"{name} = real({name})" for name in ("vx", "vy", "gx", "gy", "h", "keep", "low", "high")),
        *(f"c{n} = c[{n}]" for n in range(len(structure.terms))),
        "rest = real(1) - keep",
        "step = rest*h",
        *weights,
        "lost = real(0)",
        *_loop(
            source, radius, [f"old = base[{inner}]", f"new = out[{inner}]", *sliced], body, ("    new[i] = old[i]",)
        ),
        "return float(lost)",
    ]
    return _function("stage(w, base, out, near, c, vx, vy, wind, maps, gx, gy, h, keep, low, high)", lines), radius


def _flatten(walls: list[Offset] | None) -> list[str]:
    return [] if walls is None else ["flat = w.reshape(-1)"]


def _write_bound(structure: Structure, radius: int, walls: list[Offset] | None) -> str:
    """Write the stability estimate: max over the picture of Σ_α |∂F/∂u_α| κ_α, over the method's limits.

    κ_α is the largest modulus of the difference's Fourier symbol; even derivatives are measured against
    the real limit of the Runge–Kutta method, odd ones against the imaginary limit.
    """
    source = _Source(structure.accuracy, walls)
    orders = sorted({order for term in structure.terms for order in term.jets}, key=lambda o: (sum(o), o))
    tendency = sympy.Add(*(sympy.Symbol(f"c{n}") * term.strong for n, term in enumerate(structure.terms)))
    fixed, varying = ["real(0)"], list[str]()
    count = len(structure.terms)
    for order in orders:
        slope = sympy.diff(tendency, jet_symbol(order))
        needed = [other for other in orders if jet_symbol(other) in slope.free_symbols]
        weight = f"real({symbol_peak(order, structure.accuracy) / stability_limit(order)!r}){spacing(order)}"
        ends = corners(slope, structure.mapped, count)
        slopes = [f"abs({print_expression(source.jets(end, needed))})" for end in ends]
        highest = slopes[0] if len(slopes) == 1 else f"max({', '.join(slopes)})"
        (varying if needed else fixed).append(f"{weight}*{highest}")
    lines = [
        f"ny, nx = w.shape[0] - {2 * radius}, w.shape[1] - {2 * radius}",
        *_flatten(walls),
        "gx, gy = real(gx), real(gy)",
        *(f"c{n} = c[{n}]" for n in range(count + 2 * len(structure.mapped))),
        f"fixed = {' + '.join(fixed)}",
    ]
    if not varying:
        return _function("bound(w, near, c, gx, gy)", [*lines, "return float(fixed)"])
    # one peak for each column: a maximum over a row would not be vectorised without giving up NaN
    body = [f"rate = {' + '.join(varying)}", "peaks[i] = rate if rate > peaks[i] else peaks[i]"]
    loop = _loop(source, radius, [], body)
    largest = ["top = real(0)", "for i in range(nx):", "    top = peaks[i] if peaks[i] > top else top"]
    whole = [*lines, "peaks = np.zeros(nx, real)", *loop, *largest, "return float(fixed + top)"]
    return _function("bound(w, near, c, gx, gy)", whole)


def write_source(structure: Structure) -> str:
    """Write the module that is compiled for a structure."""
    walls: list[Offset] | None = [] if structure.walls else None
    stage, radius = _write_stage(structure, walls)
    bound = _write_bound(structure, radius, walls)
    head = [
        "from __future__ import annotations",
        "import math",
        "import numpy as np",
        "from video2pde.compiled import njit",
        f"real = np.{structure.precision}",
        f"RADIUS = {radius}",
        f"OFFSETS = {tuple(walls or ())!r}",
        # written out: numba's cache knows the file, and not what it imports
        f"OPTIONS = dict({options_text()}, cache=CACHE)",
    ]
    return "\n".join(head) + f"\n\n\n{stage}\n\n{bound}"


def options_text() -> str:
    """Write the compiler's options, always in the same order."""
    flags = sorted(driver.OPTIONS["fastmath"])
    others = (f"{name}={value!r}" for name, value in driver.OPTIONS.items() if name != "fastmath")
    return ", ".join([f"fastmath=set({flags!r})", *others])


@dataclass(frozen=True)
class Kernel:
    """Hold the compiled functions of one structure; ``radius`` is the margin that frames are padded with.

    ``offsets``: the neighbours that are looked up between walls, in the order that ``near`` has them.
    """

    structure: Structure
    radius: int
    offsets: tuple[Offset, ...]
    stage: Callable[..., float]
    bound: Callable[..., float]

    def advance(
        self, starts: Array, restart: bool, out: Array, *more: Any
    ) -> tuple[int, int, NDArray[np.int64], float]:
        """Roll out; see :func:`driver.advance`."""
        loop = driver.compile_loop(self.structure.precision, out.dtype.name)
        done: tuple[int, int, NDArray[np.int64], float] = loop(*self.law, starts, restart, out, *more)
        return done

    def check_reach(self, grid: Grid) -> None:
        """Refuse a grid that the stencil reaches across."""
        if self.radius > min(grid.shape):
            raise InputError(f"a grid of {grid.ny}×{grid.nx} is smaller than the stencil's reach of {self.radius}")

    @property
    def law(self) -> tuple[Callable[..., float], Callable[..., float], tuple[int, float]]:
        """What the loops of ``driver.py`` are given of a law: its functions and its stencil."""
        advection = symbol_peak((1, 0), self.structure.accuracy) / IMAGINARY_LIMIT
        return self.stage, self.bound, (self.radius, advection)


@lru_cache(maxsize=128)
def compile_kernel(structure: Structure) -> Kernel:
    """Compile the kernel of a structure, or take it from the cache.

    Without a writable cache folder the kernel is compiled in memory, which costs a second or two each run.
    """
    text = write_source(structure)
    module = load_module(text)
    for function, kind in ((module.stage, driver.stage_type), (module.bound, driver.bound_type)):
        function.compile(kind(structure.precision))
        remember_address(function, kind(structure.precision))
    return Kernel(structure, module.RADIUS, module.OFFSETS, module.stage, module.bound)


def load_module(text: str) -> ModuleType:
    """Load a written module from the cache folder, or make it in memory where there is none."""
    return _load_stored(text) or _load_in_memory(text)


def _load_stored(text: str) -> ModuleType | None:
    stored = text.replace("CACHE)", "True)")
    name = f"kernel_{hashlib.sha256(stored.encode()).hexdigest()[:24]}"
    try:
        path = cache_folder() / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        # numba's cache depends on the file's time: a file that is right already stays untouched
        if not path.exists() or path.read_text(encoding="utf-8") != stored:
            handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(stored)
            os.replace(temporary, path)
        if not os.access(path.parent, os.W_OK):
            return None
    except (OSError, RuntimeError):
        return None
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        return None
    module = importlib.util.module_from_spec(specification)
    # numba looks the module up by name when it loads a compiled function
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def _load_in_memory(text: str) -> ModuleType:
    module = ModuleType("video2pde_kernel")
    exec(compile(text.replace("CACHE)", "False)"), "<video2pde kernel>", "exec"), module.__dict__)
    return module

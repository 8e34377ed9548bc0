"""Export: the law as LaTeX, SymPy, a NumPy script, a py-pde script or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import sympy

from video2pde.errors import InputError
from video2pde.flow.words import describe_flow
from video2pde.maps import in_divergence_form
from video2pde.maps.words import describe_map
from video2pde.terms import Term
from video2pde.terms.stencil import central_weights
from video2pde.terms.term import jet_symbol, Order
from video2pde.terms.words import describe
from video2pde.using.flowscript import flow_lines
from video2pde.using.mapscript import EXCHANGE, largest, map_lines, map_name, mapped_term, pypde_fields, pypde_term
from video2pde.using.modelfile import SavedModel
from video2pde.using.scripts import coefficient_lines, coefficient_name, Dialect, drift_lines
from video2pde.using.templates import NUMPY, PADDED, PYPDE, SYMPY, WALLED

Form = Literal["latex", "sympy", "python", "pypde", "json"]
ACCURACY = 4
NUMPY_EDGES = {
    "replicate": '{"mode": "symmetric"}',
    "periodic": '{"mode": "wrap"}',
    "open": '{"mode": "reflect", "reflect_type": "odd"}',
}
PYPDE_EDGES = {"replicate": '{"derivative": 0}', "periodic": '"periodic"', "open": '{"curvature": 0}'}
SUFFIXES: Mapping[str, str] = {
    "latex": ".tex",
    "sympy": ".py",
    "python": ".py",
    "pypde": ".py",
    "json": ".json",
}


def export_model(model: SavedModel, form: Form) -> str:
    """Write the model as text in the given form; scripts run as they are.

    ``latex``: the equation and a table of its coefficients. ``sympy``: an equation object. ``python``: a
    simulation with NumPy alone, by the scheme of our rollouts. ``pypde``: a simulation with py-pde. ``json``: the
    model file itself.
    """
    writers: Mapping[str, Callable[[SavedModel], str]] = {
        "latex": _latex,
        "sympy": _sympy,
        "python": _numpy,
        "pypde": _pypde,
        "json": SavedModel.to_json,
    }
    if form not in writers:
        raise InputError(f"a model cannot be exported to '{form}'; there are: {', '.join(writers)}")
    return writers[form](model)


# ----------------------------------------------------------------------------- LaTeX, SymPy


def _latex(model: SavedModel) -> str:
    equation = model.law.equation.latex
    rows = []
    for entry in model.terms:
        known = entry.low is not None and entry.high is not None
        interval = f"${_number(entry.low)}$ to ${_number(entry.high)}$" if known else "not known"
        units = _latex_units(entry.units)
        rows.append(rf"  ${describe(entry.term).latex}$ & ${_number(entry.value)}$ & {interval} & {units} \\")
    table = [
        r"\begin{tabular}{llll}",
        r"  term & coefficient & 95\,\% interval & unit \\ \hline",
        *rows,
        r"\end{tabular}",
    ]
    flow = (
        []
        if model.flow is None
        else [f"Beside the drift: {describe_flow(model.flow, model.grid)}.".replace("χ", r"$\chi$")]
    )
    flow += [f"{describe_map(each, model.law.coefficient(each.term), model.grid)}." for each in model.law.maps]
    return "\n".join([r"\begin{equation}", f"  {equation}", r"\end{equation}", *flow, *table]) + "\n"


def _number(value: float | None) -> str:
    mantissa, _, exponent = f"{value:.5g}".partition("e")
    return rf"{mantissa}\times 10^{{{int(exponent)}}}" if exponent else mantissa


def _latex_units(units: str) -> str:
    """Write units in text mode: superscripts and the slash need no package, special signs do."""
    text = units.replace("~", r"\textasciitilde{}").replace("^", r"\textasciicircum{}")
    text = text.replace("µ", r"\textmu{}").replace("μ", r"\textmu{}")
    for sign, digit in zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True):
        text = text.replace(sign, f"$^{digit}$")
    for sign in "%&_#":
        text = text.replace(sign, "\\" + sign)
    return text


def _sympy(model: SavedModel) -> str:
    dialect = Dialect(_sympy_derivative)
    varied = {each.term: each.over for each in model.law.maps}
    terms = [f"    + {_sympy_term(t, varied.get(t.name), dialect)}  # {describe(t).text}" for t in model.law.terms]
    names = ", ".join(coefficient_name(term) for term in model.law.terms)
    names += "," if len(model.law.terms) == 1 else ""
    values = [f"    {coefficient_name(e.term)}: {e.value!r}," for e in model.terms]
    quoted = " ".join(coefficient_name(term) for term in model.law.terms)
    symbols = [f'{names} = symbols("{quoted}", real=True, seq=True)'] if names else []
    arguments = "t" if model.flow is None else "t, x, y"
    symbols += [
        f'{map_name(name)} = Function("{map_name(name)}", real=True)({"x, y" if over == "space" else "t"})'
        "  # the coefficient over its mean"
        for name, over in varied.items()
    ]
    return _fill(SYMPY, model, TERMS=terms, SYMBOLS=symbols, VALUES=values, ARGUMENTS=[arguments])


def _sympy_term(term: Term, over: str | None, dialect: Dialect) -> str:
    """Write a term times its coefficient; where that varies in space, inside the derivatives that diffuse."""
    own = f"{coefficient_name(term)} * ({dialect.term(term)})"
    if over is None:
        return own
    name = map_name(term.name)
    if over == "time":
        return f"{name} * {own}"
    parts = []
    for part in term.parts:
        density = dialect.expression(part.density)
        inside = f"(Derivative({name} * ({density}), {{0}}) + {name} * Derivative({density}, {{0}}) - ({density}) * "
        orders = ", ".join(f"{letter}, {n}" for letter, n in zip("xy", part.derivative, strict=True) if n)
        if in_divergence_form(part):
            parts.append(f"{inside.format(orders)}Derivative({name}, {orders})) / 2")
        else:
            parts.append(f"{name} * ({dialect.term(Term('', (part,)))})")
    return f"{coefficient_name(term)} * ({' + '.join(parts)})"


def _sympy_derivative(text: str, order: Order) -> str:
    along = [f"{letter}, {times}" for letter, times in zip("xy", order, strict=True) if times]
    return f"Derivative({text}, {', '.join(along)})"


# ----------------------------------------------------------------------------- NumPy


def _numpy(model: SavedModel) -> str:
    dialect = Dialect(lambda text, order: f"D({text}, {order[0]}, {order[1]})", functions="np.")
    law = model.law
    terms = [f"    change += {mapped_term(t, law.map_of(t.name), dialect)}  # {describe(t).text}" for t in law.terms]
    orders: dict[Order, list[str]] = {}
    for term in model.law.terms:
        for order in term.jets:
            slope = sympy.diff(term.strong, jet_symbol(order))
            size = largest(term, law.map_of(term.name))
            orders.setdefault(order, []).append(f"{size} * ({dialect.expression(slope)})")
    stiffness = [
        f"    bound += np.max(np.abs({' + '.join(slopes)})) * norm({order[0]}, {order[1]})"
        for order, slopes in orders.items()
    ]
    highest = max((max(order) for order in orders), default=1)
    weights = [
        f"    {n}: ({', '.join(repr(w) for w in central_weights(n, ACCURACY))},)," for n in range(max(1, highest) + 1)
    ]
    return _fill(
        NUMPY,
        model,
        TERMS=terms,
        STIFFNESS=stiffness,
        WEIGHTS=weights,
        BOUNDARY=[NUMPY_EDGES[model.boundary]],
        DIFFERENCE=[
            *[WALLED if model.region_ is not None and model.region_.edge == "walls" else PADDED],
            *([EXCHANGE] if any(each.over == "space" for each in law.maps) else []),
        ],
        REGION=_region_lines(model),
        ENCLOSED=[] if model.region_ is None else ["    change = np.where(INSIDE, change, 0.0)"],
        CLIP=[repr(model.clip)],
        BLOW=[] if model.flow is None else ["    blown = flow(t)", "    v_x, v_y = v_x + blown[0], v_y + blown[1]"],
    )


def _region_lines(model: SavedModel) -> list[str]:
    """Write where the law holds, as runs of cells outside, inside, outside, …, row by row."""
    if model.region_ is None:
        return []
    runs, edge = model.region_.runs, model.region_.edge
    what = "walls, which nothing passes" if edge == "walls" else "what is outside stays as it is"
    lines = [", ".join(map(str, runs[k : k + 20])) for k in range(0, len(runs), 20)]
    return [
        f"# The law holds inside a region; at its edge: {what}. Cells outside, inside, outside, ..., row by row:",
        "RUNS = [",
        *(f"    {line}," for line in lines),
        "]",
        "INSIDE = np.repeat(np.arange(len(RUNS)) % 2 == 1, RUNS).reshape(NY, NX)",
    ]


# ----------------------------------------------------------------------------- py-pde


def _nest(text: str, order: Order, once: str, twice: str) -> str:
    """Nest first and second derivatives: second ones first, so that what they act on is even at a mirrored edge."""
    for letter, times in zip("xy", order, strict=True):
        for _ in range(times // 2):
            text = twice.format(l=letter, f=text)
        if times % 2:
            text = once.format(l=letter, f=text)
    return text


PYPDE_DIALECT = Dialect(
    lambda text, order: _nest(text, order, "d_d{l}({f})", "d2_d{l}2({f})"),
    operators=(
        ("laplacian", "laplace(u)"),
        ("grad_squared", "gradient_squared(u)"),
        ("u_grad_squared", "u * gradient_squared(u)"),
        ("porous", "laplace(u**2 / 2)"),
        ("porous_squared", "laplace(u**3 / 3)"),
        ("u_laplacian", "u * laplace(u)"),
        ("biharmonic", "laplace(laplace(u))"),
    ),
)


def _pypde(model: SavedModel) -> str:
    if model.region_ is not None:
        raise InputError("this law holds inside a region, which py-pde's grids cannot have; export it to python")
    law = model.law
    terms = [_quoted(f"+ {pypde_term(t, law.map_of(t.name), PYPDE_DIALECT)} ") for t in law.terms]
    terms = [f"    {term}" for term in terms]
    constants = [f'    "{coefficient_name(t)}": {coefficient_name(t)},' for t in model.law.terms]
    condition = PYPDE_EDGES[model.boundary]
    carried, fields = _pypde_flow(model)
    return _fill(
        PYPDE,
        model,
        TERMS=terms,
        CONSTANTS=constants,
        PERIODIC=[str(model.boundary == "periodic")],
        CONDITION=[condition],
        CARRIED=carried,
        FIELDS=[*fields, *pypde_fields(model)],
    )


def _pypde_flow(model: SavedModel) -> tuple[list[str], list[str]]:
    """Write the flow's summands, and its fields and functions of time as constants and functions of the equation."""
    functions = 'FUNCTIONS = {"v_x": v_x, "v_y": v_y}'
    if model.flow is None:
        return [], [functions]
    count = len(model.flow.coefficients)
    carried = [f'    "- theta_{n}(t) * (w_{n}_x * d_dx(u) + w_{n}_y * d_dy(u)) "' for n in range(count)]
    fields = [
        functions,
        "for n, (along_x, along_y) in enumerate(np.tensordot(Q, MODES, axes=1)):",
        '    CONSTANTS[f"w_{n}_x"], CONSTANTS[f"w_{n}_y"] = ScalarField(GRID, along_x.T), ScalarField(GRID, along_y.T)',
        '    FUNCTIONS[f"theta_{n}"] = lambda t, n=n: theta(t)[n]',
    ]
    return carried, fields


# ----------------------------------------------------------------------------- filling


def _fill(template: str, model: SavedModel, **blocks: list[str]) -> str:
    """Put the model's numbers and lines into a template, in one pass: what is put in is not looked at again."""
    grid = model.grid
    equation = model.law.equation.text
    filling: dict[str, list[str]] = {
        "ORIGIN": [
            f"EQUATION = {equation!r}",
            f"SOURCE = {(model.provenance.path or 'a recording')!r}",
            f"UNIT = {grid.unit!r}",
        ],
        "COEFFICIENTS": coefficient_lines(model),
        "DRIFT": drift_lines(model),
        "FLOW": flow_lines(model),
        "MAPS": map_lines(model),
        "SIZE": [f"NX, NY = {grid.nx}, {grid.ny}", f"DX, DY = {grid.dx!r}, {grid.dy!r}"],
        "INTERVAL": [repr(float(model.frame_interval))],
        "START": [repr(float(model.times[0]))],
        "DURATION": [repr(float(np.ptp(model.times)) or 1.0)],
        **blocks,
    }
    # an empty block takes its line with it
    template = re.sub("<<([A-Z]+)>>\n", lambda marker: marker[0] if filling[marker[1]] else "", template)
    return re.sub("<<([A-Z]+)>>", lambda marker: "\n".join(filling[marker[1]]), template)


def _quoted(text: str) -> str:
    """Write text as a literal in double quotes, as the scripts do."""
    return json.dumps(text, ensure_ascii=False)

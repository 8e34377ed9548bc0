"""Coefficients that vary, as lines of a script: NumPy alone, the same maps as ``CoefficientMap`` gives."""

from __future__ import annotations

from video2pde.errors import InputError
from video2pde.maps import CoefficientMap, in_divergence_form
from video2pde.terms import Term
from video2pde.using.modelfile import SavedModel
from video2pde.using.scripts import coefficient_name, Dialect

BETWEEN = '''
def splines_between(s, breaks):
    """Evaluate the cubic B-splines that join at breaks: (len(breaks) + 2, len(s))."""
    knots = np.concatenate([[breaks[0]] * 3, breaks, [breaks[-1]] * 3])

    def basis(i, k):
        if k == 0:
            last = knots[i + 1] == knots[-1]
            return ((knots[i] <= s) & ((s < knots[i + 1]) | (last & (s <= knots[-1])))).astype(float)
        left, right = knots[i + k] - knots[i], knots[i + k + 1] - knots[i + 1]
        first = (s - knots[i]) / left * basis(i, k - 1) if left else 0.0
        return first + ((knots[i + k + 1] - s) / right * basis(i + 1, k - 1) if right else 0.0)

    return np.array([basis(i, 3) + 0 * s for i in range(len(breaks) + 2)])
'''
EXCHANGE = '''

def exchange(f, m, n_x, n_y):
    """Differentiate f twice with a factor m that varies inside: what one cell loses another one gains."""
    return 0.5 * (D(m * f, n_x, n_y) + m * D(f, n_x, n_y) - f * D(m, n_x, n_y))'''


def map_name(name: str) -> str:
    """Name a map, a coefficient over its mean, in a script."""
    return f"m_{name}"


def map_lines(model: SavedModel) -> list[str]:
    """Write the maps: arrays over the picture, or functions of time, whose mean is 1."""
    law, grid = model.law, model.grid
    if not law.maps:
        return []
    if model.boundary == "open":
        raise InputError("a script cannot hold a coefficient that varies beside open edges; export to json")
    offset = 0.5 if grid.pitch == "cells" else 0.0
    lines = ["", "# Coefficients that vary: each is its mean times m, m = 1 + sum over splines of Q times spline."]
    lines += [BETWEEN.strip("\n"), "", ""]
    lines += [f"AT_X, AT_Y = (np.arange(NX) + {offset}) * DX, (np.arange(NY) + {offset}) * DY"]
    for each in law.maps:
        lines += _lines_of(each)
    return lines


def _lines_of(each: CoefficientMap) -> list[str]:
    shape, name = each.shape, map_name(each.term)
    if each.over == "time":
        values = ", ".join(f"{value:.10g}" for value in each.departures)
        breaks = _listed(shape.breaks[0])
        span = f"{shape.span[0]!r}, {shape.span[1]!r}"
        return [
            f"Q_{name} = np.array([{values}])",
            "",
            "",
            f"def {name}(t):",
            '    """Return the coefficient over its mean at time t; before and after the film as at its ends."""',
            f"    return 1 + Q_{name} @ splines_between(np.array([np.clip(t, {span})]), {breaks})[:, 0]",
        ]
    rows = each.departures.reshape(shape.splines)
    listed = [f"    [{', '.join(f'{value:.10g}' for value in row)}]," for row in rows]
    return [
        f"Q_{name} = np.array([  # rows downwards, columns to the right",
        *listed,
        "])",
        f"BREAKS_{name} = ({_listed(shape.breaks[0])}, {_listed(shape.breaks[1])})  # along y, along x",
        f"{name} = 1 + splines_between(AT_Y, BREAKS_{name}[0]).T @ Q_{name} @ splines_between(AT_X, BREAKS_{name}[1])",
    ]


def _listed(places: tuple[float, ...]) -> str:
    return f"[{', '.join(f'{place:.10g}' for place in places)}]"


def mapped_term(term: Term, each: CoefficientMap | None, dialect: Dialect) -> str:
    """Write a term times its coefficient, which may vary, for NumPy."""
    if each is None:
        return f"{coefficient_name(term)} * ({dialect.term(term)})"
    if each.over == "time":
        return f"{coefficient_name(term)} * {map_name(term.name)}(t) * ({dialect.term(term)})"
    parts = []
    for part in term.parts:
        if in_divergence_form(part):
            orders = f"{part.derivative[0]}, {part.derivative[1]}"
            parts.append(f"exchange({dialect.expression(part.density)}, {map_name(term.name)}, {orders})")
        else:
            parts.append(f"{map_name(term.name)} * ({dialect.term(Term('', (part,)))})")
    return f"{coefficient_name(term)} * ({' + '.join(parts)})"


def largest(term: Term, each: CoefficientMap | None) -> str:
    """Write the largest size that a coefficient has, anywhere at time t."""
    if each is None:
        return coefficient_name(term)
    varied = f"{map_name(term.name)}(t)" if each.over == "time" else map_name(term.name)
    return f"{coefficient_name(term)} * np.max(np.abs({varied}))"


def pypde_term(term: Term, each: CoefficientMap | None, dialect: Dialect) -> str:
    """Write a term times its coefficient, which may vary, for py-pde."""
    own = f"{coefficient_name(term)} * ({dialect.term(term)})"
    if each is None:
        return own
    name = map_name(term.name)
    if each.over == "time":
        return f"{name}(t) * {own}"
    total = f"{name} * {own}"
    for part in term.parts:
        if in_divergence_form(part):
            density = dialect.expression(part.density)
            for letter, other in (("x", "y"), ("y", "x")):
                times = part.derivative["xy".index(letter)]
                if times:
                    along = letter if times == 2 else other
                    share = "" if times == 2 else "0.5 * "
                    total += f" + {coefficient_name(term)} * {share}{name}_{letter} * d_d{along}({density})"
    return total


def pypde_fields(model: SavedModel) -> list[str]:
    """Write the maps and their slopes as constants of py-pde's equation, or as functions of time."""
    lines = []
    for each in model.law.maps:
        name = map_name(each.term)
        if each.over == "time":
            lines.append(f'FUNCTIONS["{name}"] = {name}')
        else:
            lines.append(f'CONSTANTS["{name}"] = ScalarField(GRID, {name}.T)')
            lines.append(f'CONSTANTS["{name}_x"] = ScalarField(GRID, np.gradient({name}, DX, axis=1).T)')
            lines.append(f'CONSTANTS["{name}_y"] = ScalarField(GRID, np.gradient({name}, DY, axis=0).T)')
    return lines

"""What a unit of length may be called, and how large or small lengths and times may be: one rule for every door."""

from __future__ import annotations

from video2pde.errors import InputError

LONGEST_UNIT = 40
RANGE = 1e-15, 1e15
"""Smallest and largest cell or frame interval: powers of them must stay numbers."""
COMMANDS = frozenset("\\{}$")
"""Signs that labels of figures and LaTeX would take for commands."""


def require_unit(unit: str) -> str:
    """Refuse a unit that figures, tables or the model file could not show."""
    if len(unit) > LONGEST_UNIT:
        raise InputError(f"the unit '{unit[:LONGEST_UNIT]}…' has {len(unit)} characters; {LONGEST_UNIT} are allowed")
    wrong = next((sign for sign in unit if not sign.isprintable() or sign in COMMANDS), None)
    if wrong is not None:
        raise InputError(f"the unit {unit!a} holds the sign {wrong!a}; use letters, digits and simple signs")
    return unit


def require_range(size: float, what: str, unit: str) -> float:
    """Refuse a length or time so large or small that its powers are no numbers any more."""
    if not RANGE[0] <= size <= RANGE[1]:
        raise InputError(
            f"{what} is {size:g} {unit}; it must lie between {RANGE[0]:g} and {RANGE[1]:g}: choose another unit"
        )
    return size

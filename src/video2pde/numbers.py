"""Numbers for people: a true minus sign, powers of ten as powers, digits that the interval supports."""

from __future__ import annotations

import math
import re

from video2pde.estimate import Estimate

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def superscript(number: int) -> str:
    """Write a whole number in superscript digits.

    Examples
    --------
    >>> superscript(-12)
    '⁻¹²'
    """
    return str(number).translate(_SUPERSCRIPTS)


def format_number(value: float | int | None, spec: str = ".4g") -> str:
    """Write a number by a Python format; a missing or undefined one becomes a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = format(value, spec if not isinstance(value, int) or spec[-1:] in "dn,%" else "d")
    powered = re.sub(r"e([+-])0*(\d+)", _power, text)
    return re.sub(r"(^|[^0-9A-Za-z])-", r"\1−", powered)


def format_estimate(estimate: Estimate, spec: str = ".4g") -> tuple[str, str]:
    """Write a value and its interval with two digits of the interval's half-width.

    Returns the value and ``[low, high]``, the latter empty where there is no interval.
    """
    value, low, high = estimate.value, estimate.low, estimate.high
    if not estimate.has_interval:
        return format_number(value, spec), ""
    if not math.isfinite(value) or high <= low:
        return format_number(value, spec), f"[{format_number(low, spec)}, {format_number(high, spec)}]"
    largest = max(abs(value), abs(low), abs(high))
    decimals = 1 - math.floor(math.log10((high - low) / 2))
    if largest < 1e-3 or largest >= 1e6:
        exponent = math.floor(math.log10(largest))
        digits = max(0, decimals + exponent)
        value, low, high = (number / 10.0**exponent for number in (value, low, high))
        tail = "×10" + superscript(exponent)
        fixed = f".{digits}f"
        return (
            format_number(value, fixed) + tail,
            f"[{format_number(low, fixed)}, {format_number(high, fixed)}]{tail}",
        )
    fixed = f".{max(0, decimals)}f"
    return format_number(value, fixed), f"[{format_number(low, fixed)}, {format_number(high, fixed)}]"


def format_latex(value: float, spec: str = ".4g") -> str:
    """Write a number as LaTeX, powers of ten as powers.

    Examples
    --------
    >>> print(format_latex(12345.0))
    1.234\\times 10^{4}
    """
    mantissa, _, exponent = format(value, spec).partition("e")
    return rf"{mantissa}\times 10^{{{int(exponent)}}}" if exponent else mantissa


def _power(match: re.Match[str]) -> str:
    return "×10" + superscript(int(match[1] + match[2]))


def is_number(text: str) -> bool:
    """Tell whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True

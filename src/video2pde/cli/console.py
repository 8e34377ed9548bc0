"""What goes to the terminal: names from outside cannot command it, and every console can show the equation."""

from __future__ import annotations

import codecs
import sys
from typing import TextIO

from video2pde.errors import printable

PLAIN = "video2pde-plain"
SIGNS = {
    "∇": "grad ",
    "Δ": "lap ",
    "·": ".",
    "−": "-",
    "–": "-",
    "—": "-",
    "×": "x",
    "µ": "u",
    "μ": "u",
    "σ": "sigma",
    "Σ": "sum",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "→": "->",
    "°": " deg",
    "±": "+-",
    "…": "...",
    "√": "sqrt",
    **{sign: f"^{digit}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    "⁻": "^-",
}


def prepare_console() -> None:
    """Let streams that know few signs (a Windows code page, ASCII) show the others as plain letters."""
    codecs.register_error(PLAIN, _plainly)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and not _knows_all(stream):
            stream.reconfigure(errors=PLAIN)


def tell(text: object) -> None:
    """Print data to standard output."""
    print(printable(str(text)))


def complain(text: str) -> None:
    """Print a message to standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def _knows_all(stream: TextIO) -> bool:
    try:
        "".join(SIGNS).encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(SIGNS.get(sign, "?") for sign in signs), error.end

"""How long work says how far it has come."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int | None], None]
"""Called with the number of pieces done and of pieces in all, None where that is not known."""

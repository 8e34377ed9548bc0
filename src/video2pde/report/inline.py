"""Text within a line, as the report's document holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Math:
    """Set a formula within a line; ``plain`` is read aloud and shown where LaTeX cannot be set."""

    latex: str
    plain: str


@dataclass(frozen=True)
class Code:
    """Set a name, a path or a value in a fixed-width face."""

    text: str


@dataclass(frozen=True)
class Strong:
    """Stress a few words."""

    text: str


@dataclass(frozen=True)
class Link:
    """Point to another section of the same page."""

    text: str
    section: str


Inline: TypeAlias = str | Math | Code | Strong | Link
Text: TypeAlias = Inline | tuple[Inline, ...]

"""The command line. Nothing heavy is imported here: ``video2pde --help`` has to answer at once."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    from video2pde.cli.app import run

    return run(arguments)


__all__ = ["main"]

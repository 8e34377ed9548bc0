"""The command line. Nothing heavy is imported here: ``video2pde --help`` has to answer at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    try:
        from video2pde.cli.app import run

        return run(arguments)
    except KeyboardInterrupt:  # while the program itself is being loaded
        print("interrupted", file=sys.stderr)
        return 130


__all__ = ["main"]

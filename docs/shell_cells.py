"""Cells that start with ``%%bash`` on the executed pages: what a command says appears in one piece.

IPython's own ``%%bash`` hands the output on in chunks, which a built page would show with breaks inside the lines.
"""

from __future__ import annotations

import subprocess

from IPython.core.interactiveshell import InteractiveShell


def bash(_line: str, cell: str) -> None:
    """Run a cell's commands in bash, print their output, and stop the page where a command fails."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", cell],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    said = done.stdout.rstrip()
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {said}")
    if said:
        print(said)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Take the place of IPython's ``%%bash``."""
    shell.register_magic_function(bash, "cell", "bash")

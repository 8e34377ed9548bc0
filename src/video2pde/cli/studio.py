"""The command ``studio``: everything in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

HERE = Path()


def studio(
    folder: Annotated[Path, Parameter(help="The folder with your recordings and runs.")] = HERE,
    /,
    *,
    port: Annotated[int, Parameter(help="Port on this machine; 0 takes a free one.")] = 0,
    browser: Annotated[bool, Parameter(help="Open the browser.", show_default=False)] = True,
    allow_host: Annotated[
        tuple[str, ...], Parameter(help="Name under which a proxy shows the page.", negative="", show_default=False)
    ] = (),
) -> None:
    """Prepare recordings, run them, and play with their laws in the browser.

    The page is served to this machine alone. Runs are those of 'video2pde run', in the same folders; they go on when
    the page is closed, and the page shows the command that does the same:

        video2pde studio
        video2pde studio recordings --port 8765 --no-browser
    """
    from video2pde.studio.app import serve_folder

    serve_folder(folder, port, browser, allow_host)

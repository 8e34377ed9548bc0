"""Let ``python -m video2pde.cli`` be the same as ``video2pde``."""

import sys

from video2pde.cli import main

if __name__ == "__main__":  # a worker process that is spawned imports this file too
    sys.exit(main())

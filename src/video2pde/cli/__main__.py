"""Let ``python -m video2pde.cli`` be the same as ``video2pde``."""

import sys

from video2pde.cli import main

sys.exit(main())

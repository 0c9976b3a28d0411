"""``python -m triton.profiler script.py``: see `proton`."""

import sys

from .proton import main

sys.exit(main())

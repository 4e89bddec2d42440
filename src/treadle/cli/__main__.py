"""``python -m treadle.cli`` is ``treadle``."""

import sys

from treadle.cli import main

sys.exit(main())

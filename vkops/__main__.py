"""``python -m vkops``: the command line."""

import sys

from vkops.cli import main

sys.exit(main())

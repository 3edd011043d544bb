"""``python -m vkops``: the command line."""

import sys

from vkops.cli.supervision import program

if __name__ == "__main__":
    sys.exit(program())

"""The program rlmd, with its workers' files, as it stands in this package (tools/wheels)."""

import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "rlmd")


def main() -> None:
    """Becomes the program, with the arguments of this process."""
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])

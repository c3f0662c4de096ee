# SPDX-License-Identifier: Apache-2.0
"""`python -m tenon ...` is the command `tenon ...`."""

import os
import sys

from ._run import command


def main() -> int:
    found = command()
    if found is None:
        print(
            "tenon: expected the command beside the package or on PATH, got none", file=sys.stderr
        )
        return 1
    sys.stdout.flush()
    os.execv(found, [found, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())

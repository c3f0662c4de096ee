# SPDX-License-Identifier: Apache-2.0
"""Runs one structural gate over a checkout: gate.py NAME ROOT. Prints a line each violation."""

import importlib
import sys
from pathlib import Path


def main(name: str, root: str) -> int:
    found = importlib.import_module(name).violations(Path(root))
    for line in found:
        print(f"{name}: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))

# SPDX-License-Identifier: Apache-2.0
"""Object files of a CPU level define no symbol that the linker could share with another level.

A weak function outside of the level's namespace, as of a C++ header, could be linked in its AVX-512
form and then run on a CPU without it.

    level_symbols.py NM LEVEL OBJECT...
"""

import subprocess
import sys


def shared_symbols(nm, level, objects):
    text = subprocess.run([nm, "-C", "--defined-only", *objects], check=True, capture_output=True,
                          text=True).stdout
    lines = (line.split(maxsplit=2) for line in text.splitlines())
    rows = [fields for fields in lines if len(fields) == 3]
    if not rows:
        raise SystemExit(f"level_symbols: expected symbols in {len(objects)} objects, got none")
    return [name for _, kind, name in rows if kind in "WVu" and f"::{level}::" not in name]


def main(arguments):
    nm, level, *objects = arguments
    found = shared_symbols(nm, level, objects)
    for name in found:
        print(f"level {level}: expected only symbols of its namespace, got weak {name}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

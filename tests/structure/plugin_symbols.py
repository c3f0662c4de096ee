# SPDX-License-Identifier: Apache-2.0
"""A plugin exports tenon_plugin_entry alone and reaches the host through tables, not by linking.

usage: plugin_symbols.py FOLDER...    looks at every shared library below; exit code 1: violated
"""

import re
import subprocess
import sys
from pathlib import Path

ENTRY = "tenon_plugin_entry"


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def violations(library: Path) -> list[str]:
    found = []
    rows = [line.split()[-2:] for line in run("nm", "-D", str(library)).splitlines()]
    kinds = [(kind, name.partition("@")[0]) for kind, name in rows]
    defined = sorted(name for kind, name in kinds if kind not in "Uwv")
    if defined != [ENTRY]:
        shown = ", ".join(defined[:5]) + (f" and {len(defined) - 5} more" if defined[5:] else "")
        found.append(f"expected one exported symbol, {ENTRY}, got {shown or 'none'}")
    unique = [name for kind, name in kinds if kind == "u"]
    if unique:
        found.append(
            f"expected no symbol that keeps the library loaded (STB_GNU_UNIQUE), "
            f"got {', '.join(unique[:5])}: compile with -fno-gnu-unique"
        )
    wanted = [name for kind, name in kinds if kind in "Uwv" and name.startswith("tenon_")]
    if wanted:
        found.append(
            f"expected the host's services through tn_host, got undefined {', '.join(wanted)}"
        )
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", str(library)))
    if any(name.startswith("libtenon") for name in needed):
        found.append(f"expected no libtenon among the needed libraries, got {', '.join(needed)}")
    return [f"{library.name}: {text}" for text in found]


def main(folders: list[str]) -> int:
    libraries = sorted(path for folder in folders for path in Path(folder).rglob("*.so"))
    found = [line for library in libraries for line in violations(library)]
    for line in found:
        print(line)
    print(f"{len(libraries)} plugins looked at")
    return 1 if found or not libraries else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

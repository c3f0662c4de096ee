# SPDX-License-Identifier: Apache-2.0
"""Text goes to the terminal through one header, which shows what a terminal would obey."""

import re
from pathlib import Path

import sources

WAYS = Path("bindings/cxx/include/tenon/cxx/terminal.hpp")
BARS = Path("bindings/lua/command/terminal.cpp")  # whose own text moves the cursor
FOLDERS = ("cxx", "lua")
WRITES = re.compile(
    r"\b(?:v?f?printf|f?puts|f?putc|putchar|fwrite|perror)\s*\(|"
    r"\bstd::(?:cout|cerr|clog)\b|\bSTD(?:OUT|ERR)_FILENO\s*,\s*[^)]*\.data\("
)


def violations(root: Path) -> list[str]:
    found = []
    for path in sources.code(root):
        of_ours = path.parts[0] == "bindings" and path.parts[1] in FOLDERS
        if not of_ours or path in (WAYS, BARS) or path.suffix not in sources.C_FAMILY:
            continue
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            match = WRITES.search(line.split("//")[0])
            if match:
                found.append(
                    f"{path}:{number}: expected text to go out by {WAYS.name}, got {match.group()}"
                )
    return found

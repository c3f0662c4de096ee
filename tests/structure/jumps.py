# SPDX-License-Identifier: Apache-2.0
"""Functions of the Lua module refuse arguments by an exception, not by a jump past destructors."""

import re
from pathlib import Path

import sources

FOLDER = Path("bindings/lua/module")
# luaL_checkstack jumps when a script nests deeper than any memory holds.
JUMPS = re.compile(r"\bluaL_(?:check(?!stack|version)\w+|opt\w+|error|argerror|typeerror)\s*\(")


def violations(root: Path) -> list[str]:
    found = []
    for path in sources.code(root):
        if path.parent != FOLDER or path.suffix not in sources.C_FAMILY:
            continue
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            match = JUMPS.search(line.split("//")[0])
            if match:
                found.append(
                    f"{path}:{number}: {match.group()[:-1].strip()} jumps past destructors: "
                    "expected text_argument(), number_argument() or bad_argument()"
                )
    return found

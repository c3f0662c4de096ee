# SPDX-License-Identifier: Apache-2.0
"""Headers of instruction sets stand only where a set is one file: `level/register_*.h` of the CPU
kernels, and `amx/`. All else is written over `level/simd.h` and builds for other processors."""

import re
from pathlib import Path

import sources

KERNELS = Path("plugins/onednn/kernels")
HEADER = re.compile(r"^\s*#\s*include\s*<(\w*intrin\.h|arm_\w+\.h)>", re.MULTILINE)


def is_a_set(path: Path) -> bool:
    return path.parent == KERNELS / "amx" or (
        path.parent == KERNELS / "level" and path.name.startswith("register_")
    )


def violations(root: Path) -> list[str]:
    found = []
    for path in sources.files(root):
        if path.suffix not in {".cpp", ".hpp", ".h"} or is_a_set(path):
            continue
        text = (root / path).read_text()
        for match in HEADER.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            found.append(
                f"{path}:{line}: includes <{match.group(1)}>: expected the functions of "
                f"{KERNELS / 'level' / 'simd.h'}"
            )
    return found

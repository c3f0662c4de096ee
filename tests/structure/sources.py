# SPDX-License-Identifier: Apache-2.0
"""The files of a checkout that the structural gates look at."""

import subprocess
from pathlib import Path

CODE = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh", ".lua", ".py"}
C_FAMILY = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh"}
NOT_OURS = {"build", "__pycache__"}


def files(root: Path) -> list[Path]:
    """Relative paths of what git tracks or would track; of all files where there is no git."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        found = [Path(name) for name in listed.split("\0") if name]
    else:
        found = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
    return sorted(
        path
        for path in found
        if not NOT_OURS & set(path.parts[:-1])
        and (root / path).is_file()
        and not (root / path).is_symlink()
    )


def code(root: Path) -> list[Path]:
    return [path for path in files(root) if path.suffix in CODE]


def lines(path: Path) -> int:
    return len(path.read_bytes().splitlines())

# SPDX-License-Identifier: Apache-2.0
"""Each folder of the first two levels that holds sources, itself or deeper, has a README.md."""

from pathlib import Path

import sources


def violations(root: Path) -> list[str]:
    folders = set()
    for path in sources.code(root):
        for depth in range(1, min(len(path.parts), 3)):
            folders.add(Path(*path.parts[:depth]))
    return [
        f"{folder}: expected a README.md that says what lives there and how to add one thing"
        for folder in sorted(folders)
        if not (root / folder / "README.md").is_file()
    ]

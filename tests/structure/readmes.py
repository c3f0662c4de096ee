# SPDX-License-Identifier: Apache-2.0
"""Each folder of the first two levels that holds sources, itself or deeper, has a README.md.

A room's own `src` and `include` are the room itself: its README maps them.
"""

from pathlib import Path

import sources

THE_ROOM_ITSELF = {"src", "include"}


def violations(root: Path) -> list[str]:
    folders = set()
    for path in sources.code(root):
        for depth in range(1, min(len(path.parts), 3)):
            if path.parts[depth - 1] not in THE_ROOM_ITSELF:
                folders.add(Path(*path.parts[:depth]))
    return [
        f"{folder}: expected a README.md that says what lives there and how to add one thing"
        for folder in sorted(folders)
        if not (root / folder / "README.md").is_file()
    ]

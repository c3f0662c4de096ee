# SPDX-License-Identifier: Apache-2.0
"""Files of a made tree, and the one violation that is in it."""

from pathlib import Path


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def only(found: list[str]) -> str:
    assert len(found) == 1, found
    return found[0]

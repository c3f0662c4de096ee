# SPDX-License-Identifier: Apache-2.0
"""No file names the machine it was written on: its folders, a package registry."""

import re
from pathlib import Path

import sources

HOMES = r"(?<![\w.}\)])/(?:root|home/\w+|Users/\w+)/"
REGISTRIES = (
    r"(?<![\w@])(?:pypi\.org|files\.pythonhosted\.org|deb\.debian\.org|registry\.npmjs\.org|"
    r"proxy\.golang\.org|crates\.io)"
)


def violations(root: Path) -> list[str]:
    parent = root.resolve().parent
    here = re.escape(f"{parent}/") if len(parent.parts) > 1 else "(?!)"
    pattern = re.compile(f"{HOMES}|{REGISTRIES}|(?<![\\w.}}])\\.\\./shared\\b|(?<![\\w.}}]){here}")
    found = []
    for path in sources.files(root):
        data = (root / path).read_bytes()
        if b"\0" in data:
            continue
        for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
            match = pattern.search(line)
            if match:
                found.append(
                    f"{path}:{number}: expected nothing of this machine, got {match.group()}"
                )
    return found

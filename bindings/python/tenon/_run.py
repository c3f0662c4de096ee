# SPDX-License-Identifier: Apache-2.0
"""The command `tenon` of this installation."""

from __future__ import annotations

import shutil
from pathlib import Path

_PACKAGE = Path(__file__).parent  # in a build tree a file here is a link: the folder is what counts


def command() -> str | None:
    """The path of the command: inside the package, in the build tree, or on PATH."""
    for place in (_PACKAGE / "bin/tenon", _PACKAGE.parent.parent / "bin/tenon"):
        if place.is_file():
            return str(place)
    return shutil.which("tenon")

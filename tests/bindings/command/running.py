# SPDX-License-Identifier: Apache-2.0
"""Runs the `tenon` command and looks at how it failed."""

import os
import subprocess
from pathlib import Path

TENON = os.environ["TENON_BIN"]


def tenon(
    *args: object, cwd: Path | None = None, timeout: float = 120, **more: object
) -> subprocess.CompletedProcess:
    command = [TENON, *map(str, args)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False, **more
    )


def failed(result: subprocess.CompletedProcess, code: int, *parts: str) -> None:
    """One line of error that says all the parts."""
    assert result.returncode == code, result
    assert result.stderr.count("\n") == 1, result.stderr
    for part in parts:
        assert part in result.stderr, result.stderr

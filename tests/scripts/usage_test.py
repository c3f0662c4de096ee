# SPDX-License-Identifier: Apache-2.0
"""The developer's scripts refuse what they would not heed."""

import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.mark.parametrize("args", [["--fast", "--strict"], ["--fats"]])
def test_scripts_test_takes_one_option_that_it_knows(args: list[str], tmp_path: Path) -> None:
    result = subprocess.run(
        [SCRIPTS / "test", *args],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("test: expected ") and result.stderr.count("\n") == 1

# SPDX-License-Identifier: Apache-2.0
"""A fuzzer leaves nothing in the folder for temporary files, also when a signal stops it."""

import os
import signal
import subprocess
from pathlib import Path

import pytest


@pytest.mark.parametrize("stop", [None, signal.SIGTERM, signal.SIGINT])
def test_the_temporary_folder_is_empty_afterwards(tmp_path: Path, stop) -> None:
    count = "200" if stop is None else "100000000"
    process = subprocess.Popen(
        [os.environ["FUZZ_MUTANTS"], "--row", "Relu", "--count", count],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    if stop is not None:
        while process.poll() is None and not list(tmp_path.iterdir()):
            pass
        os.killpg(process.pid, stop)
    code = process.wait(timeout=60)
    assert code == (0 if stop is None else -stop)
    assert list(tmp_path.iterdir()) == []

# SPDX-License-Identifier: Apache-2.0
"""A long run that was killed goes on where its file says, and comes to the same counts."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FUNCTIONS = Path(__file__).parent / "functions/main.py"
RUNS = {
    "functions": ["--oracle", "numpy", "--count", "8"],
    "mutants": ["--row", "Relu", "--count", "1500"],
    "differential": ["--count", "60", "--nodes", "20"],
}


def command(name: str, state: Path, *more: str) -> list[str]:
    if name == "functions":
        program = [sys.executable, "-B", str(FUNCTIONS)]
    else:  # these write now and then
        program = [os.environ["FUZZ_" + name.upper()], "--every", "0"]
    return [*program, *RUNS[name], "--state", str(state), *more]


def done(state: Path) -> dict:
    counts = json.loads(state.read_text())["done"]
    del counts["seconds"]
    return counts


@pytest.mark.parametrize("name", RUNS)
def test_a_killed_run_is_taken_up(name: str, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.json", tmp_path / "parts.json"
    subprocess.run(command(name, whole), check=True, stdout=subprocess.DEVNULL)
    process = subprocess.Popen(
        command(name, parts), stdout=subprocess.DEVNULL, start_new_session=True
    )
    while process.poll() is None and not parts.exists():
        pass
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    assert 0 < done(parts)["next"] < done(whole)["next"]  # it was in the midst of it
    for _ in range(2):  # the second time there is nothing left to do
        subprocess.run(command(name, parts), check=True, stdout=subprocess.DEVNULL)
        assert done(parts) == done(whole)


def test_the_file_of_another_run_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    subprocess.run(command("mutants", state, "--count", "5"), check=True, capture_output=True)
    other = subprocess.run(
        command("mutants", state, "--seed", "9"), capture_output=True, text=True, check=False
    )
    assert other.returncode == 2
    assert "expected the state of" in other.stderr and '"seed":9' in other.stderr

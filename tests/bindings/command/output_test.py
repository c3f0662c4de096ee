# SPDX-License-Identifier: Apache-2.0
"""What is printed and cannot be written is an error, whoever prints it."""

import os
import pty
import struct
import subprocess
import termios
from fcntl import ioctl
from pathlib import Path

import pytest
from running import TENON, failed, tenon
from small_models import classifier

LOST = "standard output: cannot be written to"
PRINTS = {
    "print": "print(1)",
    "io.write": "io.write(1)",
    "print_table": "require('tenon').print_table({ { a = 1 } })",
    "much": "for i = 1, 1e5 do print(i) end",
}


def into_full(*args: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
    with Path("/dev/full").open("w") as full:
        return subprocess.run(
            [TENON, *map(str, args)],
            cwd=cwd, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
        )  # fmt: skip


@pytest.mark.parametrize("how", PRINTS)
def test_what_a_script_prints_is_not_lost_silently(tmp_path: Path, how: str) -> None:
    (tmp_path / "s.lua").write_text(PRINTS[how])
    failed(into_full("run", "s.lua", cwd=tmp_path), 1, LOST)


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["bench", "--help"]])
def test_help_is_not_lost_silently(args: list[str]) -> None:
    failed(into_full(*args), 1, LOST)


def test_what_a_recipe_prints_is_not_lost_silently(tmp_path: Path) -> None:
    args = ["optimize", classifier(tmp_path), "-o", tmp_path / "o.onnx", "--recipe", "simplify"]
    failed(into_full(*args), 1, LOST)
    assert (tmp_path / "o.onnx").exists()


def test_a_reader_that_goes_away_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "s.lua").write_text(PRINTS["much"])
    with subprocess.Popen(
        [TENON, "run", "s.lua"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "1\n"
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 1
    assert errors == f"tenon: {LOST}\n"


def test_lines_that_standard_error_does_not_take_are_no_error_of_the_json(tmp_path: Path) -> None:
    (tmp_path / "s.lua").write_text("print(1) return { a = 1 }")
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [TENON, "run", "s.lua", "--json"],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=full, text=True, check=False,
        )  # fmt: skip
    assert (result.returncode, result.stdout.split()) == (0, ["{", '"a":', "1", "}"])


def test_where_nothing_is_printed_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / "s.lua").write_text("local x = 1")
    assert into_full("run", "s.lua", cwd=tmp_path).returncode == 0
    assert tenon("run", tmp_path / "s.lua").returncode == 0


SLOW = """
  local tn = require "tenon"
  local model = tn.jit(function(a) return a + 1 end):trace(tn.zeros { 512, 1024 })
  tn.bench(model, { rounds = 1000000, threads = 1 })"""


def on_a_terminal(folder: Path, text: str, kind: str, columns: int, *args: str) -> str:
    """What the command writes to a terminal of this kind and width as standard error."""
    (folder / "s.lua").write_text(text)
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [TENON, "run", "s.lua", *args],
        cwd=folder, stderr=theirs, env={**os.environ, "TERM": kind},
    ):  # fmt: skip
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:  # how Linux says that the other side is closed
            pass
    os.close(ours)
    return seen.decode()


def test_a_dumb_terminal_gets_text_alone(tmp_path: Path) -> None:
    assert "\x1b" in on_a_terminal(tmp_path, "error('no', 0)", "xterm", 80)
    assert on_a_terminal(tmp_path, "error('no', 0)", "dumb", 80) == "tenon: no\r\n"
    assert "\x1b" not in on_a_terminal(tmp_path, SLOW, "dumb", 80, "--time", "2")


def test_a_bar_is_no_wider_than_the_terminal(tmp_path: Path) -> None:
    seen = on_a_terminal(tmp_path, SLOW, "xterm", 20, "--time", "3")
    bars = [bar for bar in seen.split("\r\x1b[K") if bar.startswith("bench")]
    assert bars and all(len(bar) < 20 for bar in bars), seen

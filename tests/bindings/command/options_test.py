# SPDX-License-Identifier: Apache-2.0
"""Options that would change nothing, or not what they seem to, are refused; so are numbers out of
their range."""

from pathlib import Path

import pytest
from running import failed, tenon

EMPTY = [
    ["inspect", ""],
    ["inspect", "m.onnx", "--backend", ""],
    ["run", "s.lua", "--allow", ""],
    ["train", "s.lua", "--run", ""],
    ["train", "s.lua", "--resume", ""],
    ["evaluate", "m.onnx", "--data", "x.npz", "--metric", "accuracy", "--against", ""],
    ["optimize", "m.onnx", "-o", "o.onnx", "--recipe", "simplify", "--data", ""],
    ["--chrome-trace", "", "plugin", "list"],
]
ALONE = [
    (["inspect", "m.onnx", "--text", "--json"], "--text", "--json"),
    (["inspect", "m.onnx", "--text", "--shape", "x=1"], "--text", "--shape"),
    (
        ["inspect", "m.onnx", "--data", "d", "--similarity", "--layers"],
        "--similarity",
        "--layers",
    ),
    (["inspect", "m.onnx", "--kernel", "k"], "--kernel", "--backend"),
    (["inspect", "m.onnx", "--backend-option", "a=b"], "--backend-option", "--backend"),
    (
        ["optimize", "m.onnx", "-o", "o.onnx", "--recipe", "simplify", "--data-option", "a=b"],
        "--data-option",
        "--data",
    ),
]
TWICE = [
    ["run", "s.lua", "--set", "a=1", "--set", "a=2"],
    ["bench", "m.onnx", "--backend-option", "a=1", "--backend-option", "a=2"],
]
NUMBERS = [
    (["run", "s.lua", "--time", "0"], "--time: expected a number from 1e-06 to 100000000, got '0'"),
    (["run", "s.lua", "--time", "nan"], "--time: expected a number from"),
    (["run", "s.lua", "--memory", "nan"], "--memory: expected a number from 1 to 10000000"),
    (["run", "s.lua", "--instructions", "nan"], "--instructions: expected a number from 1 to"),
    (
        ["evaluate", "m.onnx", "--data", "x.npz", "--metric", "mse", "--limit", "-1"],
        "--limit: expected a number from 0 to",
    ),
    (
        ["compare", "m.onnx", "m.onnx", "--data", "x.npz", "--limit", "-1"],
        "--limit: expected a number from 0 to",
    ),
    (["plugin", "check", "p.so", "--seed", "-1"], "--seed: expected a number from 0 to"),
]


@pytest.mark.parametrize("args", EMPTY)
def test_an_empty_value_is_no_value(args: list[str]) -> None:
    failed(tenon(*args), 2, ": expected a value, got ''")


@pytest.mark.parametrize(("args", "option", "other"), ALONE)
def test_options_of_which_one_would_do_nothing_are_refused(
    args: list[str], option: str, other: str
) -> None:
    failed(tenon(*args), 2, option, other, f"see tenon {args[0]} --help")


@pytest.mark.parametrize("args", TWICE)
def test_a_name_has_one_value(args: list[str]) -> None:
    failed(tenon(*args), 2, f"{args[2]} a: given twice")


@pytest.mark.parametrize(("args", "said"), NUMBERS)
def test_a_number_is_within_its_range(args: list[str], said: str) -> None:
    result = tenon(*args)
    failed(result, 2, said)
    assert len(result.stderr) < 200


def test_patterns_do_not_swallow_the_model(tmp_path: Path) -> None:
    args = ["--similarity", "--data", "absent.npz", "--skip", "a", tmp_path / "absent.onnx"]
    failed(tenon("inspect", *args), 1, "absent.onnx")


def test_memory_counts_parts_of_a_mebibyte(tmp_path: Path) -> None:
    path = tmp_path / "s.lua"
    path.write_text("return #('x'):rep(800 * 1024)")  # which is in memory twice for a moment
    assert tenon("run", path, "--memory", "1.9").returncode == 0
    failed(tenon("run", path, "--memory", "1.2"), 1, "may use 1.2 MiB (--memory)")


def test_what_is_no_file_is_no_script(tmp_path: Path) -> None:
    failed(tenon("run", tmp_path), 1, "expected a Lua script, got a folder")
    failed(tenon("run", "/dev/null"), 1, "expected a Lua script, got a device or pipe")


def test_values_of_too_many_levels_are_refused() -> None:
    deep = "[" * 60000 + "]" * 60000
    for args in (["run", "s.lua", "--set"], ["bench", "m.onnx", "--backend-option"]):
        failed(tenon(*args, f"x={deep}"), 2, "at most 64 levels")
    assert "levels" not in tenon("run", "s.lua", "--set", "x=" + "[" * 20 + "]" * 20).stderr

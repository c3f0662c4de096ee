# SPDX-License-Identifier: Apache-2.0
"""One second past its limit the process has ended, with code 1 and no partial file, whatever the
script does."""

import os
import resource
import subprocess
from pathlib import Path

import numpy as np
import pytest
from running import TENON

LIMIT = 1.0
PAST = 1.0  # what is promised

ESCAPES = {
    "a handler of xpcall, which runs without hooks": """
        xpcall(function() while true do end end, function() while true do end end)""",
    "a handler after handler": """
        local function f() while true do end end
        while true do xpcall(f, function() xpcall(f, f) end) end""",
    "a closing value of a coroutine that died in the hook": """
        coroutine.wrap(function()
          local x <close> = setmetatable({}, { __close = function() while true do end end })
          while true do end
        end)()""",
    "a pattern that backtracks": """
        string.find(("a"):rep(200), ("a*"):rep(30) .. "b")""",
    "a call that makes much text": """
        local s = ("x"):rep(1e6)
        while true do s:rep(300) end""",
    "a loop that catches all": """
        while true do pcall(function() while true do end end) end""",
    "a sort whose order is none": """
        table.sort({ 1, 2, 3 }, function() while true do end end)""",
    "a file that is being written": """
        local f = io.open("given.txt", "w")
        f:write("what the script writes itself stays")
        while true do end""",
}


# These end by the limit of instructions alone: nothing else stops them.
UNCOUNTED = {
    "short coroutines": """
        local n = 0
        for i = 1, 2e5 do coroutine.wrap(function() for j = 1, 1500 do n = n + 1 end end)() end""",
    "short coroutines by create": """
        for i = 1, 1e6 do
          coroutine.resume(coroutine.create(function() for j = 1, 1000 do end end))
        end""",
    "a finalizer of the metatable of lists": """
        local tn = require "tenon"
        local of_lists = getmetatable(tn.components("none"))
        of_lists.__gc = function() while true do end end
        tn.components("none")
        collectgarbage()""",
}


def processor_seconds() -> float:
    """Of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def start(folder: Path, text: str, *args: str) -> tuple[int, str, float]:
    """Exit code, standard error, and how many seconds of the processor it got: these a machine with
    other work makes fewer, never more, so that a bound on them cannot fail by chance."""
    (folder / "pipeline.lua").write_text(text)
    before = processor_seconds()
    result = subprocess.run(
        [TENON, "run", "pipeline.lua", *args],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,  # a process that never ends; a machine that stands still for a while is none
        check=False,
    )
    return result.returncode, result.stderr, processor_seconds() - before


@pytest.mark.parametrize("how", ESCAPES)
def test_no_script_outlives_its_time(tmp_path: Path, how: str) -> None:
    code, errors, seconds = start(tmp_path, ESCAPES[how], "--time", str(LIMIT))
    assert code == 1, errors
    assert "the script may run for 1 s (--time)" in errors
    assert errors.count("\n") == 1
    assert seconds < LIMIT + PAST


@pytest.mark.parametrize(
    "how", [key for key in ESCAPES if "pattern" not in key and "text" not in key]
)
def test_no_script_outlives_its_instructions(tmp_path: Path, how: str) -> None:
    code, errors, _ = start(tmp_path, ESCAPES[how], "--instructions", "1e7")
    assert code == 1, errors
    assert "(--instructions)" in errors


@pytest.mark.parametrize("how", UNCOUNTED)
def test_what_runs_apart_is_counted_or_refused(tmp_path: Path, how: str) -> None:
    code, errors, _ = start(tmp_path, UNCOUNTED[how], "--instructions", "1e7", "--time", "60")
    assert code == 1, errors
    assert "(--instructions)" in errors or "attempt to index a boolean" in errors


def test_coroutines_within_the_limit_are_left_alone(tmp_path: Path) -> None:
    text = """
      local n = 0
      for i = 1, 1000 do n = n + coroutine.wrap(function(x) return x end)(1) end
      local ok, why = pcall(coroutine.wrap, 5)
      assert(n == 1000 and why:find("function expected", 1, true), why)"""
    assert start(tmp_path, text, "--instructions", "1e6")[:2] == (0, "")


@pytest.mark.parametrize("how", ["__gc", "os"])
def test_a_trusted_script_is_no_exception(tmp_path: Path, how: str) -> None:
    text = {
        "__gc": "setmetatable({}, { __gc = function() while true do end end }) collectgarbage()",
        "os": "os.execute('exec sleep 30 >/dev/null 2>&1')",
    }[how]
    code, errors, seconds = start(tmp_path, text, "--trust", "--time", str(LIMIT))
    assert code == 1, errors
    assert seconds < LIMIT + PAST


def test_what_was_printed_before_is_kept(tmp_path: Path) -> None:
    (tmp_path / "pipeline.lua").write_text("print('seen')" + ESCAPES[list(ESCAPES)[0]])
    result = subprocess.run(
        [TENON, "run", "pipeline.lua", "--time", "0.5"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert result.stdout == "seen\n"


def test_a_script_within_its_time_is_left_alone(tmp_path: Path) -> None:
    code, errors, _ = start(tmp_path, "for i = 1, 1e6 do end", "--time", "50")
    assert (code, errors) == (0, "")


TRAINING = """
local tn = require "tenon"
local x = tn.tensor({{ {{ 0.5, -0.25, 0.125, 1 }} }}, "float32")
local w, b = tn.npy("w.npy"), tn.zeros({{ 3 }}, "float32")
local model = tn.jit(function(x) return tn.linear(x, w, b) end):trace(x)
{before}
tn.train(model, {{ data = tn.data.npz("train.npz"), epochs = 100000000, batch = 8,
                  backend = "reference", run = "run" }})
"""


@pytest.mark.parametrize("catches", [False, True])
def test_a_training_ends_in_time_and_can_go_on(tmp_path: Path, catches: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 4)).astype("f")
    np.savez(tmp_path / "train.npz", x1=x, label=x[:, :3].argmax(1))
    np.save(tmp_path / "w.npy", rng.standard_normal((4, 3)).astype("f"))
    text = TRAINING.format(before="local train = tn.train")
    if catches:
        text = text.replace("tn.train(model,", "pcall(train, model,")
    code, errors, seconds = start(tmp_path, text, "--time", "2")
    assert code == 1, errors
    assert "the script may run for 2 s (--time)" in errors
    assert seconds < (2 + PAST) * (os.cpu_count() or 1)  # it computes on all of them
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left == {"checkpoint.safetensors", "history.jsonl"}


def test_an_output_that_is_not_whole_is_removed(tmp_path: Path) -> None:
    """The process is ended in the middle of its writes, again and again."""
    text = """
      local tn = require "tenon"
      local text = ("x"):rep(2e7)
      xpcall(function() while true do tn.write("out.txt", text) end end,
             function() while true do tn.write("out.txt", text) end end)"""
    for seconds in ("0.2", "0.35", "0.5"):
        code, errors, _ = start(tmp_path, text, "--time", seconds)
        assert code == 1, errors
        assert {path.name for path in tmp_path.iterdir()} <= {"pipeline.lua", "out.txt"}
        assert not (tmp_path / "out.txt").exists() or (
            (tmp_path / "out.txt").stat().st_size == 20_000_000
        )

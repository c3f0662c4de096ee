# SPDX-License-Identifier: Apache-2.0
"""A step of training in Lua keeps what it trains in memory once, whatever the shapes of batches."""

from pathlib import Path

from running import tenon

WIDTH = 1536

# Prints the size of the process behind a batch of one shape, and behind batches of four.
SCRIPT = """
local tn = require "tenon"
local function kilobytes()
  for line in io.lines("/proc/self/status") do
    local size = line:match("^VmRSS:%s+(%d+)")
    if size then return tonumber(size) end
  end
end
local function loss(w, x) return (tn.matmul(x, w) ^ 2):mean() end
local step = tn.step(loss, tn.ones { WIDTH, WIDTH }, { optimizer = "trainer.adam", rate = 1e-3 })
step(tn.ones { 1, WIDTH })
collectgarbage()
local first = kilobytes()
for rows = 2, 4 do step(tn.ones { rows, WIDTH }) end
collectgarbage()
print(first, kilobytes())
"""


def test_states_are_in_memory_once(tmp_path: Path) -> None:
    (tmp_path / "s.lua").write_text(SCRIPT.replace("WIDTH", str(WIDTH)))
    result = tenon("run", "s.lua", "--trust", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    first, last = map(int, result.stdout.split())
    # Three more plans, each with a parameter and two states of the optimizer, would be 9 of these.
    assert (last - first) * 1024 < 4.5 * 4 * WIDTH**2

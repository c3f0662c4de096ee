-- SPDX-License-Identifier: Apache-2.0
-- What a pipeline must not do, and that the message says how to allow it.
local function refused(expected, call, ...)
  local ok, message = pcall(call, ...)
  assert(not ok, "expected an error: " .. expected)
  assert(message:find(expected, 1, true), message)
end

refused("os.execute: not allowed", os.execute, "true")
refused("os.exit: not allowed", os.exit, 0)
refused("os.remove: not allowed", os.remove, "sandbox_test.lua")
refused("io.popen: not allowed", io.popen, "true")
refused("package.loadlib: not allowed", package.loadlib, "libm.so", "cos")
refused("/etc/hostname: outside the folders", io.open, "/etc/hostname")
refused("outside the folders", io.lines, "../../../../../../../../etc/hostname")
refused("outside the folders", require("tenon").load, "/etc/model.onnx")
refused("outside the folders", dofile, "/etc/x.lua")
refused("expected a path, got ''", io.open, "")
refused("expected a path, got ''", require("tenon").load, "")
refused("module 'socket' not found", require, "socket")

local chunk, why = load(string.dump(function() return 1 end))
assert(chunk == nil and why:find("attempt to load a binary chunk", 1, true), why)
assert(load("return 1 + 1")() == 2)
assert(load("return x", "chunk", "t", { x = 3 })() == 3)
assert(debug.sethook == nil and debug.getregistry == nil and debug.traceback)

-- The metatable of an object, and with it __gc, is out of reach.
assert(getmetatable(require("tenon").zeros({ 1 })) == false)
assert(getmetatable(io.stdout) == false)
refused("setmetatable: __gc: not allowed", setmetatable, {}, { __gc = function() while true do end end })
refused("setmetatable: __gc: not allowed", setmetatable, {}, { __gc = true }) -- a function could follow
local with = setmetatable({}, { __index = { x = 3 } })
assert(with.x == 3 and setmetatable(with, nil) == with and with.x == nil)

-- The empty lists of the module share a metatable, which is out of reach as well.
assert(getmetatable(require("tenon").components("none")) == false)

-- loadfile takes an environment; what is read from outside of it is nil.
require("tenon").write("environment.lua", "return value, print")
local value, seen = assert(loadfile("environment.lua", "t", { value = 3 }))()
assert(value == 3 and seen == nil)
assert(select(2, assert(loadfile("environment.lua"))()) == print)

-- What Lua's own functions raise begins with this file's line, although they are called by way of a check.
refused("sandbox_test.lua:", function() for _ in io.lines("absent.txt") do end end)
refused("'absent.txt' (No such file or directory)", function() for _ in io.lines("absent.txt") do end end)
refused("sandbox_test.lua:", function() io.open({}) end)
refused("bad argument #1 to 'setmetatable' (table expected, got number)", function() setmetatable(1, {}) end)
refused("cannot change a protected metatable", function() setmetatable(setmetatable({}, { __metatable = 1 }), {}) end)

-- Options of options are checked as options are.
refused("outside the folders", function()
  local tn = require "tenon"
  local x = tn.tensor({ { 1, 2 } })
  tn.jit(function(a) return a + 1 end):trace(x):apply("metrics.evaluate", {
    metric = "metrics.cer", metric_options = { dictionary = "/etc/hostname" },
  })
end)

-- SPDX-License-Identifier: Apache-2.0
-- What the tests of this folder expect of values and of errors.
local expect = {}

-- A function near(got, wanted, what) for elements within this tolerance: relative from 1 on, absolute below. Booleans
-- count as 0 and 1.
function expect.near(tolerance)
  return function(got, wanted, what)
    assert(#got == #wanted, ("%s: expected %d elements, got %d"):format(what, #wanted, #got))
    for i, x in ipairs(wanted) do
      local y = got[i]
      if type(y) == "boolean" then y = y and 1 or 0 end
      assert(x == y or math.abs(y - x) <= tolerance * math.max(1, math.abs(x)),
        ("%s: element %d: expected %s, got %s"):format(what, i, x, tostring(y)))
    end
  end
end

-- The call raises an error with this text, or one that this Lua pattern fits. Returns the message, whose file and line are
-- of this file where the call itself is at fault, as its caller is here.
function expect.fails(wanted, call, ...)
  local ok, failed = pcall(call, ...)
  assert(not ok, "expected an error with '" .. wanted .. "'")
  local message = tostring(failed)
  assert(message:find(wanted, 1, true) or message:find(wanted), ("expected '%s' in '%s'"):format(wanted, message))
  return message
end

return expect

-- SPDX-License-Identifier: Apache-2.0
-- What a traced value does in an expression: operators, methods, x[i].

for name, call in pairs({
  __add = tn.add, __sub = tn.subtract, __mul = tn.multiply, __div = tn.divide, __pow = tn.pow, __mod = tn.remainder,
  __idiv = tn.floor_divide, __band = tn.bitwise_and, __bor = tn.bitwise_or, __bxor = tn.bitwise_xor,
  __shl = tn.bitwise_left_shift, __shr = tn.bitwise_right_shift,
}) do
  Value[name] = call
end
-- Lua calls these with the operand twice.
function Value.__unm(x) return tn.negative(x) end
function Value.__bnot(x) return tn.bitwise_invert(x) end
local function refuse(sign, name)
  return function()
    fail("a ", sign, " b: the answer would be needed while the function is traced; use tn.", name,
      "(a, b), and tn.where instead of if")
  end
end
Value.__lt, Value.__le, Value.__eq = refuse("<", "less"), refuse("<=", "less_equal"), refuse("==", "equal")
function Value.__len(x) return x.shape[1] or fail("#x: expected at least one axis") end
function Value.__tostring(x) return describe(x) end
function Value.__newindex()
  fail("traced values do not change; use tn.where or tn.concat for a new one")
end
for name in ("sum mean prod max min var std any all argmax argmin reshape astype squeeze slice clip transpose take sort argsort flip roll")
  :gmatch("%a+") do
  methods[name] = function(...) return tn[name](...) end
end
-- x.T, x:sum(axis), x[i]: the i-th part along the first axis
function Value.__index(x, key)
  if key == "T" then return tn.transpose(x) end
  if math.type(key) ~= "integer" then return methods[key] end
  local size = x.shape[1]
  if not size or key < 1 or size >= 0 and key > size then
    fail("x[", key, "]: expected a position of ", describe(x), ", counted from 1")
  end
  return tn.squeeze(tn.slice(x, 0, key, key), 0)
end

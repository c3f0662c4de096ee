-- SPDX-License-Identifier: Apache-2.0
-- tn.jacrev, tn.jacfwd, tn.hessian: matrices of slopes, by vmap of vjp or jvp over a basis.

-- As many directions as x has elements, in front of the shape of x; and that shape.
local function basis_like(x, what)
  local count, shape = 1, table.move(x.shape, 1, #x.shape, 1, {})
  for _, size in ipairs(shape) do count = size < 0 and -1 or count * size end
  if not is_float[x.dtype] or count < 0 then fail(what, ": expected floats in sizes that are known, got ", describe(x)) end
  local wide = table.move(shape, 1, #shape, 2, { count })
  return tn.reshape(tn.eye(count, count, 0, x.dtype), wide), shape
end

-- f of the chosen argument alone, and that argument.
local function of_one(f, args, argnum, who)
  local position = axis_of(argnum or 0, args.n) + 1
  return function(x)
    local given = table.move(args, 1, args.n, 1, {})
    given[position] = x
    local results = table.pack(inline_of(f)(table.unpack(given, 1, args.n)))
    if results.n ~= 1 or not is_traced(results[1]) then fail(who, ": expected the function to give one array") end
    return results[1]
  end, as_value(args[position])
end

-- The Jacobian of f, which gives one array, by one argument, row by row: [m] by [n] is [m, n]. argnum: which one, from
-- 0. options: those of tn.jit.
function tn.jacrev(f, argnum, options)
  inline_of(f, "tn.jacrev")
  return compile(function(...)
    local one, x = of_one(f, table.pack(...), argnum, "jacrev")
    local result, pull = tn.vjp(one, x)
    local basis, shape = basis_like(result, "jacrev: result")
    local rows = tn.vmap(pull, nil, nil, { random = "same" })(basis)
    return tn.reshape(rows, table.move(x.shape, 1, #x.shape, #shape + 1, shape))
  end, options)
end
-- The same column by column: for few arguments and many results.
function tn.jacfwd(f, argnum, options)
  inline_of(f, "tn.jacfwd")
  return compile(function(...)
    local one, x = of_one(f, table.pack(...), argnum, "jacfwd")
    local basis, shape = basis_like(x, "jacfwd: argument")
    local pushed = tn.vmap(function(t) return (select(2, tn.jvp(one, { x }, { t }))) end, nil, nil, { random = "same" })(basis)
    local columns = tn.moveaxis(pushed, 0, -1)
    return tn.reshape(columns, table.move(shape, 1, #shape, #columns.shape, table.move(columns.shape, 1, #columns.shape - 1, 1, {})))
  end, options)
end
-- The matrix of second derivatives of f, which gives one float scalar.
function tn.hessian(f, argnum, options) return tn.jacfwd(tn.jacrev(f, argnum), argnum, options) end

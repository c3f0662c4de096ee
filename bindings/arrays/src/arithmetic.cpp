// SPDX-License-Identifier: Apache-2.0
// Functions that work element by element and are more than one operator.
#include <cmath>
#include <numbers>

#include "call.hpp"

namespace tenon::arrays {
namespace {

Value abs(const Value& x) {
  return node("Abs", {x});
}
Value is_negative(const Value& x) {
  return lt(where(eq(x, 0), node("Reciprocal", {x}), x), 0);  // 1/-0 is below 0
}
Value with_sign(const Operand& a, const Value& sign) {
  Value size = a.value ? *a.value : sign.graph->number(a.number, sign.dtype);
  return where(node("Equal", {is_negative(size), is_negative(sign)}), size, -size);
}

Values hypot(Call& c) {
  Value a = c[0], b = c[1];
  Value infinite = node("Or", {node("IsInf", {a}), node("IsInf", {b})});
  a = where(infinite, 1, a);  // so that slopes are numbers there too
  b = where(infinite, 1, b);
  // Any scale gives the same, so it counts as a number: kinks of its own would be lost in second
  // slopes.
  Value longer = stopped(node("Max", {abs(a), abs(b)}));
  Value nothing = eq(longer, 0), scale = where(nothing, 1, longer);
  Value up = a / scale, right = b / scale;
  Value squares = where(nothing, 1, up * up + right * right);
  return where(infinite, HUGE_VAL, longer * node("Sqrt", {squares}));
}

Values logaddexp(Call& c) {
  // Two infinities of one sign have no difference. Each side of a = b is smooth beyond it, so that
  // slopes of every order are right there.
  Value same = node("And", {eq(c[0], c[1]), node("IsInf", {c[0]})});
  Value apart = where(same, 0, c[0] - c[1]);
  Value by_first = c[0] + node("Softplus", {-apart}), by_second = c[1] + node("Softplus", {apart});
  return where(node("GreaterOrEqual", {c[0], c[1]}), by_first, by_second);
}

Values atan2(Call& c) {
  Value diagonal = node("And", {node("IsInf", {c[0]}), node("IsInf", {c[1]})});
  Value up = where(diagonal, node("Sign", {c[0]}), c[0]);
  Value right = where(diagonal, node("Sign", {c[1]}), c[1]);
  // The smaller side is divided by the larger one, so that both axes are in the middle of a piece
  // and keep their slopes.
  Value flat = node("GreaterOrEqual", {abs(right), abs(up)});
  Value below = where(flat, right, up);
  Value whole = where(eq(below, 0), with_sign(1, below), below);
  Value angle = node("Atan", {where(flat, up, right) / whole});
  Value level = where(is_negative(right), angle + with_sign(std::numbers::pi, up), angle);
  return where(flat, level, with_sign(std::numbers::pi / 2, up) - angle);
}

// What a / b leaves, with the sign of a, and where that is not the sign of b: exact, as a quotient
// that is rounded before it is cut is not.
std::pair<Value, Value> rest_of(const Value& a, const Value& b) {
  Value rest = node("Mod", {a, b}, {{"fmod", 1}});
  Value signs = node("Xor", {lt(rest, 0), lt(b, 0)});
  return {rest, node("And", {logical_not(eq(rest, 0)), signs})};
}
Value floor_divide(const Value& a, const Value& b) {
  if (!a.is_float()) return (a - node("Mod", {a, b})) / b;
  auto [rest, beyond] = rest_of(a, b);
  Value whole = node("Round", {(a - rest) / b}) - cast(beyond, a.dtype);
  return where(eq(b, 0), node("Floor", {a / b}), whole);
}
Values remainder(Call& c) {
  if (!c[0].is_float()) return node("Mod", {c[0], c[1]});
  auto [rest, beyond] = rest_of(c[0], c[1]);
  return where(beyond, rest + c[1], rest);
}

// Bits of x moved by as many places, which are less than x has bits in all: in the unsigned type,
// where the sign is a bit like the others.
Value moved_bits(const Value& x, const Value& places, const char* direction) {
  const uint32_t bits = TN_DTYPE(kDLUInt, TN_DTYPE_BITS(x.dtype));
  return cast(node("BitShift", {cast(x, bits), cast(places, bits)}, {{"direction", direction}}),
              x.dtype);
}
// As NumPy has it: of more places than x has bits nothing is left, and of a negative number the
// sign.
Value shifted(Call& c, const char* direction) {
  const Value &x = c[0], &places = c[1];
  const auto size = static_cast<double>(TN_DTYPE_BITS(x.dtype));
  const Json& given = c.json(1);
  const bool is_within = given.is_number_integer() && given >= 0 && given < size;
  auto move = [&](const Value& from) {
    if (is_within) return moved_bits(from, places, direction);
    const Value inside = node("And", {node("GreaterOrEqual", {places, 0}), lt(places, size)});
    return where(inside, moved_bits(from, where(inside, places, 0), direction), 0);
  };
  const bool keeps_sign = TN_DTYPE_CODE(x.dtype) == kDLInt && direction[0] == 'R';
  if (!keeps_sign) return move(x);
  const Value below = lt(x, 0);
  const Value moved = move(where(below, node("BitwiseNot", {x}), x));
  return where(below, node("BitwiseNot", {moved}), moved);
}

Values pow(Call& c) {
  Json power = c.json(1);
  const Value base = power.is_number_float() ? as_float(c[0]) : c[0];
  if (power == 0.5) return node("Sqrt", {base});
  if (power == 1) return base;
  Value a = base.is_bool() ? cast(base, TN_I8) : base;
  if (power == 2) return a * a;
  std::vector<Value> both = alike({c[0], c[1]});
  for (Value& x : both)
    x = x.is_bool() ? cast(x, TN_I8) : x;
  return node("Pow", {both[0], both[1]});
}

// Near 0 one form of x, elsewhere another; what is not chosen gets 0 for x, so that it has a finite
// gradient too.
template <class Near, class Plain>
Value by_size(const Value& x, const Near& near_zero, const Plain& plain) {
  Value near = lt(abs(x), 0.5);
  return where(near, near_zero(where(near, x, 0)), plain(where(near, 0, x)));
}
Values expm1(Call& c) {  // 2 exp(x/2) sinh(x/2) has no difference that cancels
  auto near_zero = [](const Value& x) {
    return node("Exp", {x * 0.5}) * node("Sinh", {x * 0.5}) * 2;
  };
  return by_size(c[0], near_zero, [](const Value& x) { return node("Exp", {x}) - 1; });
}
Values log1p(Call& c) {
  auto near_zero = [](const Value& x) { return node("Atanh", {x / (x + 2)}) * 2; };
  return by_size(c[0], near_zero, [](const Value& x) { return node("Log", {x + 1}); });
}

// Whether a number is past all that the integers of x can be: a limit that limits nothing.
bool is_past_all(const Json& limit, const Value& x, bool above) {
  if (!limit.is_number_integer() || x.is_bool() || x.is_float()) return false;
  bool is_signed = TN_DTYPE_CODE(x.dtype) == kDLInt;
  double bits = TN_DTYPE_BITS(x.dtype) - (is_signed ? 1 : 0), number = limit.get<double>();
  if (above) return number >= std::exp2(bits);
  return is_signed ? number < -std::exp2(bits) : number < 0;
}

Values clip(Call& c) {
  Value x = c[0];
  const Function largest{"", "Max", "", "Or"};
  const Function smallest{"", "Min", "", "And"};
  if (c.has(1) && !is_past_all(c.json(1), x, false)) x = operation(largest, alike({x, c[1]}));
  if (c.has(2) && !is_past_all(c.json(2), x, true)) x = operation(smallest, alike({x, c[2]}));
  return x;
}

const Function kRows[] = {
    {"astype(x, dtype: dtype)", "", "x as elements of another type: \"float32\", \"bool\", ...", "",
     [](Call& c) -> Values { return cast(c[0], c.dtype(1)); }},
    {"atan2(y: together float, x: together float)", "",
     "The angle of the point (x, y), in radians from -pi to pi.", "", atan2},
    {"bitwise_left_shift(a: together whole, b: together whole)", "",
     "The bits of a moved up by b, which is not negative: a * 2**b, or 0 of all bits and more.", "",
     [](Call& c) -> Values { return shifted(c, "LEFT"); }},
    {"bitwise_right_shift(a: together whole, b: together whole)", "",
     "The bits of a moved down by b, which is not negative: a / 2**b, rounded down.", "",
     [](Call& c) -> Values { return shifted(c, "RIGHT"); }},
    {"clip(x, min: array = none, max: array = none)", "",
     "x, but not below min and not above max; none: no limit on this side.", "", clip},
    {"copysign(a: together float, b: together float)", "", "a with the sign of b.", "",
     [](Call& c) -> Values { return with_sign(c[0], c[1]); }},
    {"divide(a: together float, b: together float)", "Div",
     "a / b; integers give float32. Shapes are broadcast."},
    {"expm1(x: float)", "", "exp(x) - 1, exact near 0.", "", expm1},
    {"floor_divide(a: together number, b: together number)", "",
     "The largest whole number that is not above a / b.", "",
     [](Call& c) -> Values { return floor_divide(c[0], c[1]); }},
    {"hypot(a: together float, b: together float)", "", "sqrt(a*a + b*b), without overflow.", "",
     hypot},
    {"isfinite(x: float)", "", "True where x is neither infinite nor no number.", "",
     [](Call& c) -> Values { return lt(abs(c[0]), HUGE_VAL); }},
    {"log10(x: float)", "", "The logarithm to base 10.", "",
     [](Call& c) -> Values { return node("Log", {c[0]}) * std::numbers::log10e; }},
    {"log1p(x: float)", "", "log(1 + x), exact near 0.", "", log1p},
    {"log2(x: float)", "", "The logarithm to base 2.", "",
     [](Call& c) -> Values { return node("Log", {c[0]}) * std::numbers::log2e; }},
    {"logaddexp(a: together float, b: together float)", "",
     "log(exp(a) + exp(b)), without overflow.", "", logaddexp},
    {"not_equal(a: compared, b: compared)", "Equal", "True where a is not b; shapes are broadcast.",
     "", [](Call& c) -> Values { return logical_not(compared(c).front()); }},
    {"positive(x)", "", "x.", "", [](Call& c) -> Values { return c[0]; }},
    {"pow(a, b)", "", "a to the power of b. A power of 2 is a product, of 0.5 a square root.", "",
     pow},
    {"remainder(a: together number, b: together number)", "",
     "a - floor_divide(a, b)*b: it has the sign of b, as Python's and Lua's %.", "", remainder},
    {"rsqrt(x: float)", "", "1/sqrt(x).", "",
     [](Call& c) -> Values { return node("Reciprocal", {node("Sqrt", {c[0]})}); }},
    {"signbit(x: float)", "", "True where x is below 0, or -0.", "",
     [](Call& c) -> Values { return is_negative(c[0]); }},
    {"square(x: number)", "", "x*x.", "", [](Call& c) -> Values { return c[0] * c[0]; }},
    {"trunc(x)", "", "x without what is behind the point.", "",
     [](Call& c) -> Values {
       return c[0].is_float() ? node("Sign", {c[0]}) * node("Floor", {abs(c[0])}) : c[0];
     }},
    {"where(condition: bool, a: together, b: together)", "Where",
     "a where condition is True, else b. All three are broadcast together; both are computed."},
};

}  // namespace

const std::span<const Function> kArithmetic = kRows;

}  // namespace tenon::arrays

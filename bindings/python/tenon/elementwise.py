# SPDX-License-Identifier: Apache-2.0
"""Functions that work element by element; arguments of different shapes are broadcast.

One line of a table makes one function. The names are those of the array API standard where it has
one. NumPy arrays, numbers and traced values may be mixed; a number takes the array's type.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from . import types
from .eager import anywhere
from .trace import Value, alike, as_value, cast, current, dtype_of

# name, operator, what it gives; those that need floats make float32 of integers.
_FLOAT_UNARY = [
    ("acos", "Acos", "the angle whose cosine is x"),
    ("acosh", "Acosh", "the inverse of cosh"),
    ("asin", "Asin", "the angle whose sine is x"),
    ("asinh", "Asinh", "the inverse of sinh"),
    ("atan", "Atan", "the angle whose tangent is x"),
    ("atanh", "Atanh", "the inverse of tanh"),
    ("cos", "Cos", "the cosine of x, in radians"),
    ("cosh", "Cosh", "the hyperbolic cosine"),
    ("erf", "Erf", "the error function"),
    ("exp", "Exp", "e to the power of x"),
    ("gelu", "Gelu", "x times the normal distribution's cumulative probability at x"),
    ("log", "Log", "the natural logarithm"),
    ("reciprocal", "Reciprocal", "1/x"),
    ("relu", "Relu", "x where it is positive, else 0"),
    ("sigmoid", "Sigmoid", "1/(1 + exp(-x))"),
    ("silu", "Swish", "x*sigmoid(x)"),
    ("sin", "Sin", "the sine of x, in radians"),
    ("sinh", "Sinh", "the hyperbolic sine"),
    ("softplus", "Softplus", "log(1 + exp(x)), without overflow"),
    ("sqrt", "Sqrt", "the square root"),
    ("tan", "Tan", "the tangent of x, in radians"),
    ("tanh", "Tanh", "the hyperbolic tangent"),
    ("ceil", "Ceil", "the smallest whole number that is not below x"),
    ("floor", "Floor", "the largest whole number that is not above x"),
    ("round", "Round", "the nearest whole number, halves to the even one"),
    ("isinf", "IsInf", "True where x is infinite"),
    ("isnan", "IsNaN", "True where x is not a number"),
]
_UNARY = [
    ("abs", "Abs", "x without its sign"),
    ("negative", "Neg", "-x"),
    ("sign", "Sign", "-1, 0 or 1"),
    ("bitwise_invert", "BitwiseNot", "every bit turned"),
]
_BINARY = [
    ("add", "Add", "a + b"),
    ("bitwise_and", "BitwiseAnd", "the bits that both have"),
    ("bitwise_or", "BitwiseOr", "the bits that one of them has"),
    ("bitwise_xor", "BitwiseXor", "the bits that just one of them has"),
    ("equal", "Equal", "True where a is b"),
    ("greater", "Greater", "True where a > b"),
    ("greater_equal", "GreaterOrEqual", "True where a >= b"),
    ("less", "Less", "True where a < b"),
    ("less_equal", "LessOrEqual", "True where a <= b"),
    ("maximum", "Max", "the larger of the two"),
    ("minimum", "Min", "the smaller of the two"),
    ("multiply", "Mul", "a * b"),
    ("subtract", "Sub", "a - b"),
]
_LOGICAL = [
    ("logical_and", "And", "True where both are"),
    ("logical_or", "Or", "True where one of them is"),
    ("logical_xor", "Xor", "True where just one of them is"),
]


def as_float(x: Any) -> Value:
    """x as a value of a float type: integers become float32."""
    value = as_value(x, "float32" if dtype_of(x) is None else None)
    return value if types.is_float(value.dtype) else cast(value, "float32")


def as_bool(x: Any) -> Value:
    return cast(as_value(x), "bool")


def _define(name: str, function: Any, doc: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc + "."
    setattr(sys.modules[__name__], name, anywhere(function))
    __all__.append(name)


def _define_unary(name: str, op: str, doc: str, read: Any) -> None:
    def function(x: Any, /) -> Any:
        return current().node(op, [read(x)])

    _define(name, function, f"{doc[0].upper()}{doc[1:]}, for x of any shape")


def _define_binary(name: str, op: str, doc: str, read: Any) -> None:
    def function(a: Any, b: Any, /) -> Any:
        return current().node(op, read(a, b))

    _define(name, function, f"{doc[0].upper()}{doc[1:]}; shapes are broadcast")


__all__: list[str] = []
for _row in _FLOAT_UNARY:
    _define_unary(*_row, as_float)
for _row in _UNARY:
    _define_unary(*_row, as_value)
_define_unary("logical_not", "Not", "True where x is not", as_bool)
for _row in _BINARY:
    _define_binary(*_row, alike)
for _row in _LOGICAL:
    _define_binary(*_row, lambda a, b: [as_bool(a), as_bool(b)])


def _public(function: Any) -> Any:
    __all__.append(function.__name__)
    return anywhere(function)


@_public
def divide(a: Any, b: Any, /) -> Any:
    """a / b; integers give float32. Shapes are broadcast."""
    left, right = alike(a, b)
    return current().node("Div", [as_float(left), as_float(right)])


@_public
def trunc(x: Any, /) -> Any:
    """x without what is behind the point."""
    value = as_value(x)
    if not types.is_float(value.dtype):
        return value
    whole = current().node("Floor", [current().node("Abs", [value])])
    return current().node("Mul", [current().node("Sign", [value]), whole])


@_public
def positive(x: Any, /) -> Any:
    """x."""
    return as_value(x)


@_public
def isfinite(x: Any, /) -> Any:
    """True where x is neither infinite nor no number."""
    value = as_float(x)
    wrong = [current().node("IsInf", [value]), current().node("IsNaN", [value])]
    return current().node("Not", [current().node("Or", wrong)])


@_public
def signbit(x: Any, /) -> Any:
    """True where x is below 0, or -0."""
    value = as_float(x)
    zero = current().number(0.0, value.dtype)
    is_zero = current().node("Equal", [value, zero])  # 1/-0 is below 0
    sided = current().node("Where", [is_zero, current().node("Reciprocal", [value]), value])
    return current().node("Less", [sided, zero])


@_public
def copysign(a: Any, b: Any, /) -> Any:
    """a with the sign of b."""
    left, right = map(as_float, alike(a, b))
    same = current().node("Equal", [signbit(left), signbit(right)])
    return current().node("Where", [same, left, current().node("Neg", [left])])


@_public
def hypot(a: Any, b: Any, /) -> Any:
    """sqrt(a*a + b*b), without overflow."""
    sides = [current().node("Abs", [as_float(x)]) for x in alike(a, b)]
    infinite = current().node("Or", [current().node("IsInf", [side]) for side in sides])
    sides = [where(infinite, 1.0, side) for side in sides]  # so that slopes are numbers there too
    long, short = current().node("Max", sides), current().node("Min", sides)
    zero = current().number(0.0, long.dtype)
    below = where(current().node("Equal", [long, zero]), 1.0, long)
    slope = square(current().node("Div", [short, below]))
    stretch = current().node("Add", [slope, current().number(1.0, long.dtype)])
    found = current().node("Mul", [long, current().node("Sqrt", [stretch])])
    return where(infinite, math.inf, found)


@_public
def logaddexp(a: Any, b: Any, /) -> Any:
    """log(exp(a) + exp(b)), without overflow."""
    left, right = map(as_float, alike(a, b))
    same = current().node("Equal", [left, right])  # two infinities have no difference
    apart = current().node("Abs", [where(same, 0.0, current().node("Sub", [left, right]))])
    more = current().node("Softplus", [current().node("Neg", [apart])])
    return current().node("Add", [current().node("Max", [left, right]), more])


@_public
def atan2(y: Any, x: Any, /) -> Any:
    """The angle of the point (x, y), in radians from -pi to pi."""
    up, right = map(as_float, alike(y, x))
    diagonal = current().node("And", [current().node("IsInf", [side]) for side in (up, right)])
    up, right = (where(diagonal, current().node("Sign", [side]), side) for side in (up, right))
    # The smaller side is divided by the larger one, so that both axes are in the middle of a piece
    # and keep their slopes.
    height, width = (current().node("Abs", [side]) for side in (up, right))
    flat = current().node("GreaterOrEqual", [width, height])
    below = where(flat, right, up)
    none = current().node("Equal", [below, current().number(0.0, up.dtype)])
    ratio = current().node(
        "Div", [where(flat, up, right), where(none, copysign(1.0, below), below)]
    )
    angle = current().node("Atan", [ratio])
    level = where(signbit(right), current().node("Add", [angle, copysign(math.pi, up)]), angle)
    upright = current().node("Sub", [copysign(math.pi / 2, up), angle])
    return where(flat, level, upright)


def _power_of_two(a: Value, b: Value) -> Value:
    return current().node("Pow", [current().number(2, a.dtype), b])


@_public
def bitwise_left_shift(a: Any, b: Any, /) -> Any:
    """The bits of a moved up by b, which is not negative: a * 2**b."""
    left, right = alike(a, b)
    return current().node("Mul", [left, _power_of_two(left, right)])


@_public
def bitwise_right_shift(a: Any, b: Any, /) -> Any:
    """The bits of a moved down by b, which is not negative: a / 2**b, rounded down."""
    left, right = alike(a, b)
    return floor_divide(left, _power_of_two(left, right))


def _rest(a: Value, b: Value) -> tuple[Value, Value]:
    """What a / b leaves, with the sign of a, and where that is not the sign of b: exact, as a
    quotient that is rounded before it is cut is not."""
    zero = current().number(0.0, a.dtype)
    rest = current().node("Mod", [a, b], fmod=1)
    signs = [current().node("Less", [x, zero]) for x in (rest, b)]
    left = current().node("Not", [current().node("Equal", [rest, zero])])
    return rest, current().node("And", [left, current().node("Xor", signs)])


@_public
def floor_divide(a: Any, b: Any, /) -> Any:
    """The largest whole number that is not above a / b."""
    left, right = alike(a, b)
    if types.is_float(left.dtype):
        rest, beyond = _rest(left, right)
        whole = current().node("Div", [current().node("Sub", [left, rest]), right])
        whole = current().node("Sub", [current().node("Round", [whole]), cast(beyond, left.dtype)])
        plain = current().node("Floor", [current().node("Div", [left, right])])
        return where(
            current().node("Equal", [right, current().number(0.0, right.dtype)]), plain, whole
        )
    rest = current().node("Mod", [left, right])
    return current().node("Div", [current().node("Sub", [left, rest]), right])


@_public
def remainder(a: Any, b: Any, /) -> Any:
    """a - floor_divide(a, b)*b: it has the sign of b, as Python's %."""
    left, right = alike(a, b)
    if not types.is_float(left.dtype):
        return current().node("Mod", [left, right])
    rest, beyond = _rest(left, right)
    return where(beyond, current().node("Add", [rest, right]), rest)


@_public
def pow(a: Any, b: Any, /) -> Any:
    """a to the power of b. A power of 2 is a product, of 0.5 a square root."""
    plain = isinstance(b, (int, float)) and not isinstance(b, bool)
    if plain and b in (0.5, 1, 2):
        x = as_float(a) if b == 0.5 else as_value(a)
        if b == 1:
            return x
        return current().node("Mul", [x, x]) if b == 2 else current().node("Sqrt", [x])
    return current().node("Pow", alike(a, b))


@_public
def square(x: Any, /) -> Any:
    """x*x."""
    value = as_value(x)
    return current().node("Mul", [value, value])


@_public
def rsqrt(x: Any, /) -> Any:
    """1/sqrt(x)."""
    return current().node("Reciprocal", [current().node("Sqrt", [as_float(x)])])


def _near_zero(value: Value) -> tuple[Value, Value, Value]:
    """Where value is near 0; value there, else 0; value elsewhere, else 0. So that what is not
    chosen has a finite gradient too."""
    near = current().node(
        "Less", [current().node("Abs", [value]), current().number(0.5, value.dtype)]
    )
    return near, where(near, value, 0.0), where(near, 0.0, value)


@_public
def expm1(x: Any, /) -> Any:
    """exp(x) - 1, exact near 0."""
    value = as_float(x)  # near 0: 2 exp(x/2) sinh(x/2) has no difference that cancels
    near, small, large = _near_zero(value)
    half = current().node("Mul", [small, current().number(0.5, value.dtype)])
    product = current().node("Mul", [current().node("Exp", [half]), current().node("Sinh", [half])])
    one = current().number(1.0, value.dtype)
    plain = current().node("Sub", [current().node("Exp", [large]), one])
    return where(near, current().node("Add", [product, product]), plain)


@_public
def log1p(x: Any, /) -> Any:
    """log(1 + x), exact near 0."""
    value = as_float(x)
    near, small, large = _near_zero(value)
    two = current().number(2.0, value.dtype)
    ratio = current().node("Div", [small, current().node("Add", [small, two])])
    series = current().node("Mul", [current().node("Atanh", [ratio]), two])
    one = current().number(1.0, value.dtype)
    plain = current().node("Log", [current().node("Add", [large, one])])
    return where(near, series, plain)


@_public
def log2(x: Any, /) -> Any:
    """The logarithm to base 2."""
    value = as_float(x)
    scale = current().number(1.4426950408889634, value.dtype)
    return current().node("Mul", [current().node("Log", [value]), scale])


@_public
def log10(x: Any, /) -> Any:
    """The logarithm to base 10."""
    value = as_float(x)
    scale = current().number(0.4342944819032518, value.dtype)
    return current().node("Mul", [current().node("Log", [value]), scale])


@_public
def not_equal(a: Any, b: Any, /) -> Any:
    """True where a is not b; shapes are broadcast."""
    return current().node("Not", [current().node("Equal", alike(a, b))])


@_public
def where(condition: Any, a: Any, b: Any, /) -> Any:
    """a where condition is True, else b. All three are broadcast together; both are computed."""
    return current().node("Where", [as_bool(condition), *alike(a, b)])


@_public
def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """x, but not below min and not above max; None: no limit on this side."""
    value = as_value(x)
    if min is not None:
        value = current().node("Max", alike(value, min))
    return value if max is None else current().node("Min", alike(value, max))


@_public
def astype(x: Any, dtype: Any, /) -> Any:
    """x as elements of another type: "float32", np.int64, bool, ..."""
    return cast(as_value(x), types.name_of(dtype))

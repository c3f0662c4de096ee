# SPDX-License-Identifier: Apache-2.0
"""Functions that work element by element and are more than one operator; arguments of different
shapes are broadcast. Names of the array API."""

from __future__ import annotations

import math
from typing import Any

from . import types
from .eager import anywhere
from .elementwise import apply, as_bool, as_float, as_number
from .trace import Value, alike, as_value, cast, current, users_line

__all__: list[str] = []


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


def _whole(a: Any, b: Any) -> list[Value]:
    operands = [as_number(x) for x in alike(a, b)]
    if types.is_float(operands[0].dtype):
        raise TypeError(f"{users_line()}: expected whole numbers, got {operands[0].dtype}")
    return operands


def _power_of_two(a: Value, b: Value) -> Value:
    return current().node("Pow", [current().number(2, a.dtype), b])


@_public
def bitwise_left_shift(a: Any, b: Any, /) -> Any:
    """The bits of a moved up by b, which is not negative: a * 2**b."""
    left, right = _whole(a, b)
    return current().node("Mul", [left, _power_of_two(left, right)])


@_public
def bitwise_right_shift(a: Any, b: Any, /) -> Any:
    """The bits of a moved down by b, which is not negative: a / 2**b, rounded down."""
    left, right = _whole(a, b)
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
    left, right = map(as_number, alike(a, b))
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
    left, right = map(as_number, alike(a, b))
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
        return current().node("Sqrt", [x]) if b == 0.5 else _squared(as_number(x))
    return current().node("Pow", [as_number(x) for x in alike(a, b)])


def _squared(x: Value) -> Value:
    return current().node("Mul", [x, x])


@_public
def square(x: Any, /) -> Any:
    """x*x."""
    return _squared(as_number(as_value(x)))


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
        value = apply("Max", alike(value, min))
    return value if max is None else apply("Min", alike(value, max))


@_public
def astype(x: Any, dtype: Any, /) -> Any:
    """x as elements of another type: "float32", np.int64, bool, ..."""
    return cast(as_value(x), types.name_of(dtype))

# SPDX-License-Identifier: Apache-2.0
"""Functions that work element by element; arguments of different shapes are broadcast.

One line of a table makes one function. The names are those of the array API standard where it has
one. NumPy arrays, numbers and traced values may be mixed; a number takes the array's type.
"""

from __future__ import annotations

import sys
from typing import Any

from . import types
from .eager import anywhere
from .trace import Value, alike, as_value, cast, current, dtype_of, users_line

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
    ("isinf", "IsInf", "True where x is infinite"),
    ("isnan", "IsNaN", "True where x is not a number"),
]
# Whole numbers and truth values stay what they are.
_ROUNDING = [
    ("ceil", "Ceil", "the smallest whole number that is not below x"),
    ("floor", "Floor", "the largest whole number that is not above x"),
    ("round", "Round", "the nearest whole number, halves to the even one"),
]
_UNARY = [
    ("abs", "Abs", "x without its sign"),
    ("bitwise_invert", "BitwiseNot", "every bit turned; of a truth value the other one"),
    ("negative", "Neg", "-x"),
    ("sign", "Sign", "-1, 0 or 1"),
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
# What an operator of numbers is of truth values, as in NumPy; those that are not here take them as
# numbers.
_OF_TRUTH = {
    "Abs": "",
    "Add": "Or",
    "BitwiseAnd": "And",
    "BitwiseNot": "Not",
    "BitwiseOr": "Or",
    "BitwiseXor": "Xor",
    "Equal": "Equal",
    "Max": "Or",
    "Min": "And",
    "Mul": "And",
}
_NOT_OF_TRUTH = {"Neg": "tn.logical_not", "Sign": "tn.astype first", "Sub": "tn.logical_xor"}
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


def as_number(x: Value) -> Value:
    """Truth values as the shortest integers, as NumPy has it where there is no logic for them."""
    return cast(x, "int8") if x.dtype == "bool" else x


def apply(op: str, operands: list[Value]) -> Value:
    """The operator on operands of one type, which may be bool."""
    if operands[0].dtype != "bool":
        return current().node(op, operands)
    if op in _NOT_OF_TRUTH:
        raise TypeError(
            f"{users_line()}: {op}: expected numbers, got truth values; use {_NOT_OF_TRUTH[op]}"
        )
    logic = _OF_TRUTH.get(op)
    if logic is None:
        return current().node(op, [as_number(x) for x in operands])
    return current().node(logic, operands) if logic else operands[0]


def _define(name: str, function: Any, doc: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc + "."
    setattr(sys.modules[__name__], name, anywhere(function))
    __all__.append(name)


def _define_unary(name: str, op: str, doc: str, read: Any) -> None:
    def function(x: Any, /) -> Any:
        return apply(op, [read(x)])

    _define(name, function, f"{doc[0].upper()}{doc[1:]}, for x of any shape")


def _define_rounding(name: str, op: str, doc: str) -> None:
    def function(x: Any, /) -> Any:
        value = as_value(x)
        return current().node(op, [value]) if types.is_float(value.dtype) else value

    _define(name, function, f"{doc[0].upper()}{doc[1:]}, for x of any shape")


def _define_binary(name: str, op: str, doc: str, read: Any) -> None:
    def function(a: Any, b: Any, /) -> Any:
        return apply(op, read(a, b))

    _define(name, function, f"{doc[0].upper()}{doc[1:]}; shapes are broadcast")


__all__: list[str] = []
for _row in _FLOAT_UNARY:
    _define_unary(*_row, as_float)
for _row in _UNARY:
    _define_unary(*_row, as_value)
for _row in _ROUNDING:
    _define_rounding(*_row)
_define_unary("logical_not", "Not", "True where x is not", as_bool)
for _row in _BINARY:
    _define_binary(*_row, alike)


def _define_logical(name: str, op: str, doc: str) -> None:
    def function(a: Any, b: Any, /) -> Any:
        return current().node(op, [as_bool(a), as_bool(b)])

    _define(name, function, f"{doc[0].upper()}{doc[1:]}; shapes are broadcast")


for _row in _LOGICAL:
    _define_logical(*_row)

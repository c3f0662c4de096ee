# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions called on traced values: ours of the same meaning, or what to call instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from . import arrays as a
from .errors import TracedValueError
from .trace import Value, users_line

# NumPy's own names for functions of the array API.
_NAMES = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "around": "round",
    "concatenate": "concat",
    "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
}
# NumPy's names of arguments.
_ARGUMENTS = {"a_max": "max", "a_min": "min", "ddof": "correction"}
# Without axis= these take all elements in one row, where the array API wants an axis.
_OF_ALL = {"cumprod", "cumsum", "repeat", "take"}
# What is known of a value while its numbers are not.
_KNOWN: dict[str, Callable[[Any], Any]] = {
    "ndim": lambda x: x.ndim,
    "shape": lambda x: x.shape,
    "size": lambda x: x.size,
}
_NOT_NAN = "tn.where(tn.isnan(x), {}, x)"
_COMPLEX = "what stands for a complex number: pairs in a last axis of 2"
# What does the work of functions that have no equal here.
_INSTEAD = {
    "append": "tn.concat",
    "argwhere": "tn.nonzero",
    "array": "the value as it is, or tn.stack of several",
    "array_equal": "tn.all(x == y)",
    "array_split": "tn.split",
    "atleast_1d": "tn.expand_dims",
    "atleast_2d": "tn.expand_dims",
    "atleast_3d": "tn.expand_dims",
    "average": "tn.mean, or tn.sum(w * x) / tn.sum(w)",
    "block": "tn.concat",
    "cbrt": "tn.sign(x) * tn.abs(x) ** (1 / 3)",
    "column_stack": "tn.stack or tn.concat",
    "conjugate": _COMPLEX,
    "copy": "the value as it is: it does not change",
    "cov": "tn.matmul of what is left after x - x.mean(...)",
    "deg2rad": "x * (tn.pi / 180)",
    "degrees": "x * (180 / tn.pi)",
    "diag": "tn.linalg.diagonal, or x[:, None] * tn.eye(n)",
    "divmod": "tn.floor_divide and tn.remainder",
    "dot": "tn.matmul or tn.tensordot",
    "dstack": "tn.stack or tn.concat",
    "ediff1d": "tn.diff",
    "exp2": "2 ** x",
    "fabs": "tn.abs",
    "fix": "tn.trunc",
    "flatnonzero": "tn.nonzero",
    "fliplr": "tn.flip",
    "flipud": "tn.flip",
    "float_power": "tn.pow",
    "fmax": "tn.where(tn.isnan(x), y, tn.where(y > x, y, x))",
    "fmin": "tn.where(tn.isnan(x), y, tn.where(y < x, y, x))",
    "fmod": "x - tn.trunc(x / y) * y",
    "gradient": "tn.diff; of a function: tn.grad",
    "hsplit": "tn.split",
    "hstack": "tn.concat",
    "imag": _COMPLEX,
    "inner": "tn.vecdot or tn.tensordot",
    "modf": "tn.trunc(x) and x - tn.trunc(x)",
    "nan_to_num": _NOT_NAN.format(0),
    "nanargmax": f"{_NOT_NAN.format('-tn.inf')} and tn.argmax",
    "nanargmin": f"{_NOT_NAN.format('tn.inf')} and tn.argmin",
    "nanmax": f"{_NOT_NAN.format('-tn.inf')} and tn.max",
    "nanmean": f"tn.sum of {_NOT_NAN.format(0)} over tn.sum(~tn.isnan(x))",
    "nanmin": f"{_NOT_NAN.format('tn.inf')} and tn.min",
    "nanprod": f"{_NOT_NAN.format(1)} and tn.prod",
    "nansum": f"{_NOT_NAN.format(0)} and tn.sum",
    "norm": "tn.linalg.vector_norm or tn.linalg.matrix_norm",
    "percentile": "tn.quantile(x, q / 100)",
    "ptp": "tn.max(x) - tn.min(x)",
    "rad2deg": "x * (180 / tn.pi)",
    "radians": "x * (tn.pi / 180)",
    "ravel": "tn.reshape(x, (-1,))",
    "real": _COMPLEX,
    "rot90": "tn.flip and tn.permute_dims",
    "select": "tn.where",
    "sinc": "tn.sin(tn.pi * x) / (tn.pi * x), by tn.where at 0",
    "swapaxes": "tn.moveaxis or tn.permute_dims",
    "unique": "tn.unique_values, unique_counts, unique_inverse or unique_all",
    "vdot": "tn.vecdot",
    "vsplit": "tn.split",
    "vstack": "tn.concat",
}
_IN_ORDER = inspect.Parameter.POSITIONAL_ONLY
# What does the work of a method of a function of elements, and of an argument that ours lack.
_METHODS = {
    "add.accumulate": "tn.cumulative_sum(x, axis=0)",
    "add.reduce": "tn.sum(x, axis=0)",
    "logical_and.reduce": "tn.all(x, axis=0)",
    "logical_or.reduce": "tn.any(x, axis=0)",
    "maximum.reduce": "tn.max(x, axis=0)",
    "minimum.reduce": "tn.min(x, axis=0)",
    "multiply.accumulate": "tn.cumulative_prod(x, axis=0)",
    "multiply.reduce": "tn.prod(x, axis=0)",
}
_EXTRA = {
    "dtype": "use .astype of what it gives",
    "out": "use what it gives",
    "where": "use tn.where of what it gives",
}
_OF_ELEMENTS = {*a.GROUPS["elementwise"], *a.GROUPS["arithmetic"], "matmul", "vecdot"}
_FLOATS = {"bfloat16", "float16", "float32", "float64"}


def _reciprocal(x: Value) -> Any:
    """Of floats: 1 // x, as NumPy has it of integers, is what nobody means."""
    if x.dtype in _FLOATS:
        return a.reciprocal(x)
    raise TracedValueError(
        f"{users_line()}: np.reciprocal: expected floats, got {x.dtype}, of which NumPy's are "
        "integers; use 1 / x, or 1 // x"
    )


# Ours where NumPy's of the same name takes, or means, something else.
_MENDED: dict[str, Callable[..., Any]] = {
    "reciprocal": _reciprocal,
}


def own_name(name: str) -> str:
    """Ours for NumPy's name of a function."""
    return _NAMES.get(name, name)


def instead(name: str) -> str:
    """What to call in place of NumPy's function of this name."""
    if name in _INSTEAD:
        return f"use {_INSTEAD[name]}"
    for part, functions in a.PARTS.items():
        if name in functions:
            pairs = "; complex numbers are pairs in a last axis of 2" if part == "fft" else ""
            return f"use tn.{part}.{name}{pairs}"
    if own_name(name) in a.__all__:
        return f"use tn.{own_name(name)}"
    return "there is none of that name in tenon; see help(tenon.arrays)"


def instead_of_elements(name: str, method: str, named: dict[str, Any]) -> str:
    """What to call in place of NumPy's function of elements as it was called."""
    own = own_name(name)
    if method == "__call__" and own in _OF_ELEMENTS:
        remedies = "; ".join(_EXTRA[key] for key in named if key in _EXTRA)
        return f"tn.{own} takes no {', '.join(named)}{remedies and '; '}{remedies}"
    if method == "__call__" or own not in a.__all__:
        return instead(name)
    if f"{name}.{method}" in _METHODS:
        return f"use {_METHODS[f'{name}.{method}']}"
    hint = f"tn.{own} has no method {method}"
    return f"{hint}; use it on x[:, None] and y" if method == "outer" else hint


def of_elements(ufunc: Any, method: str, named: dict[str, Any]) -> Callable[..., Any] | None:
    """Ours for a function of elements as it was called; None where there is none."""
    name = own_name(ufunc.__name__)
    if method != "__call__" or named or name not in _OF_ELEMENTS:
        return None
    return _MENDED.get(name) or getattr(a, name)


def of_arrays(name: str, part: str) -> Callable[..., Any] | None:
    """Ours for another function, of NumPy's module part ("" or "linalg"); None where there is none.

    NumPy's complex numbers are pairs here, so its transforms are not ours.
    """
    if part:
        return a.PARTS["linalg"].get(name) if part == "linalg" else None
    if name in _KNOWN:
        return _KNOWN[name]
    if name in _MENDED:
        return _MENDED[name]
    return vars(a)[own_name(name)] if own_name(name) in a.__all__ else None


def arguments(function: Any, inputs: tuple, named: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """NumPy's arguments as ours: what has a default and a name goes by it, for the orders differ;
    what NumPy does to all elements in one row gets one row. TypeError: NumPy's own of the call."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # written in C, without one: a few, whose first arguments are ours
        return inputs, named
    bound = signature.bind(*inputs, **named)
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return inputs, named
    first, rest = [], {}
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            rest.update(value)
        elif inspect.Parameter.empty is parameter.default or parameter.kind is _IN_ORDER:
            first.append(value)
        elif value is not parameter.default:
            rest[_ARGUMENTS.get(name, name)] = value
    if function.__name__ in _OF_ALL and rest.get("axis") is None:
        first[0] = a.reshape(first[0], (-1,))
        rest["axis"] = 0
    return tuple(first), rest

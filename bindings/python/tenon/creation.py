# SPDX-License-Identifier: Apache-2.0
"""New arrays: of one number, of a shape, of a range, triangles. Names of the array API."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import types
from .eager import anywhere
from .functions import broadcast_arrays, reshape
from .trace import as_value, cast, current, integers, users_line

__all__: list[str] = []


def _public(function: Any) -> Any:
    __all__.append(function.__name__)
    return anywhere(function)


@_public
def full(shape: Any, value: float, /, dtype: Any = None) -> Any:
    """An array of this shape, filled with one number; float32 of a float unless told."""
    name = types.name_of(dtype if dtype is not None else type(value))
    sizes = [shape] if isinstance(shape, int) else list(shape)
    return current().node("Expand", [current().number(value, name), integers(sizes)])


@_public
def zeros(shape: Any, /, dtype: Any = "float32") -> Any:
    """An array of zeros."""
    return full(shape, 0, dtype)


@_public
def ones(shape: Any, /, dtype: Any = "float32") -> Any:
    """An array of ones."""
    return full(shape, 1, dtype)


@_public
def empty(shape: Any, /, dtype: Any = "float32") -> Any:
    """An array of this shape; its elements are not to be relied on."""
    return full(shape, 0, dtype)


@_public
def full_like(x: Any, number: float, /, dtype: Any = None) -> Any:
    """An array of the shape of x, symbolic sizes too, filled with one number."""
    value = as_value(x)
    filling = current().number(number, types.name_of(dtype) if dtype is not None else value.dtype)
    return current().node("Expand", [filling, current().node("Shape", [value])])


@_public
def zeros_like(x: Any, /, dtype: Any = None) -> Any:
    """An array of zeros of the shape of x."""
    return full_like(x, 0, dtype)


@_public
def ones_like(x: Any, /, dtype: Any = None) -> Any:
    """An array of ones of the shape of x."""
    return full_like(x, 1, dtype)


@_public
def empty_like(x: Any, /, dtype: Any = None) -> Any:
    """An array of the shape of x; its elements are not to be relied on."""
    return full_like(x, 0, dtype)


@_public
def arange(start: float, /, stop: float | None = None, step: float = 1, dtype: Any = None) -> Any:
    """start, start + step, ... below stop; from 0 with one argument."""
    first, last = (0, start) if stop is None else (start, stop)
    array = np.arange(first, last, step)
    if dtype is None:
        dtype = "float32" if array.dtype == np.float64 else "int64"
    return current().constant(array.astype(types.name_of(dtype)))


@_public
def linspace(
    start: float, stop: float, /, num: int, dtype: Any = "float32", endpoint: bool = True
) -> Any:
    """num numbers from start to stop at equal distances; stop is one of them with endpoint."""
    array = np.linspace(start, stop, num, endpoint=endpoint)
    return current().constant(array.astype(types.name_of(dtype)))


@_public
def eye(rows: int, columns: int | None = None, /, k: int = 0, dtype: Any = "float32") -> Any:
    """A matrix with ones on diagonal k, which lies above the main one where k is positive."""
    return current().constant(np.eye(rows, columns, k, dtype=types.name_of(dtype)))


@_public
def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Any, ...]:
    """Vectors as the coordinates of a grid: "xy" has the second one's axis first, "ij" the first
    one's."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"{users_line()}: indexing: expected 'xy' or 'ij', got {indexing!r}")
    values = [as_value(x) for x in arrays]
    order = list(range(len(values)))
    if indexing == "xy" and len(values) > 1:
        order[:2] = [1, 0]
    sizes = [1] * len(values)
    wide = [
        reshape(value, [*sizes[: order[i]], -1, *sizes[order[i] + 1 :]])
        for i, value in enumerate(values)
    ]
    return broadcast_arrays(*wide)


@_public
def asarray(x: Any, /, dtype: Any = None) -> Any:
    """x, a number, an array or a list of numbers, as an array; float32 of Python's floats."""
    value = as_value(x)
    return value if dtype is None else cast(value, types.name_of(dtype))


@_public
def from_dlpack(x: Any, /) -> Any:
    """The array of another library; every function takes such arrays as they are, too."""
    return as_value(x)


@_public
def tril(x: Any, /, k: int = 0) -> Any:
    """The lower triangle of the last two axes; above diagonal k there are zeros."""
    return current().node("Trilu", [as_value(x), as_value(np.int64(k))], upper=0)


@_public
def triu(x: Any, /, k: int = 0) -> Any:
    """The upper triangle of the last two axes; below diagonal k there are zeros."""
    return current().node("Trilu", [as_value(x), as_value(np.int64(k))], upper=1)

# SPDX-License-Identifier: Apache-2.0
"""Order along an axis, and what is where. Names of the array API, and top_k."""

from __future__ import annotations

from typing import Any

import numpy as np

from .eager import anywhere
from .functions import reshape
from .trace import alike, as_value, cast, current, integers, users_line

__all__: list[str] = []


def _public(function: Any) -> Any:
    __all__.append(function.__name__)
    return anywhere(function)


def _ordered(x: Any, axis: int, descending: bool, k: int | None = None) -> tuple[Any, Any]:
    """Values and places of the first k in order, equal ones by their place."""
    value = as_value(x)
    rank = len(value.shape)
    if not -rank <= axis < rank:
        raise IndexError(f"{users_line()}: axis: expected one of {-rank} to {rank - 1}, got {axis}")
    size = value.shape[axis]
    if not isinstance(size, int):
        raise ValueError(f"{users_line()}: axis {axis} of {value!r}: expected a size that is known")
    count = size if k is None else k
    if not 0 <= count <= size:
        raise ValueError(f"{users_line()}: k: expected one of 0 to {size}, got {count}")
    whole = cast(value, "uint8") if value.dtype == "bool" else value
    order = {"axis": axis % rank, "largest": int(descending), "sorted": 1}
    found, places = current().node("TopK", [whole, integers([count])], outputs=2, **order)
    return cast(found, value.dtype), places


@_public
def sort(x: Any, /, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The elements in order along axis; equal ones always keep theirs."""
    return _ordered(x, axis, descending)[0]


@_public
def argsort(x: Any, /, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The places of the elements in order along axis, int64; equal ones always keep theirs."""
    return _ordered(x, axis, descending)[1]


@_public
def top_k(x: Any, k: int, /, axis: int = -1, largest: bool = True) -> tuple[Any, Any]:
    """The k largest (or smallest) elements along axis, in order, and their places."""
    return _ordered(x, axis, largest, k)


@_public
def searchsorted(x1: Any, x2: Any, /, side: str = "left") -> Any:
    """For each element of x2 the place in the ordered vector x1 where it belongs, int64: before
    equal ones, or behind them with side="right". It compares each with each."""
    if side not in ("left", "right"):
        raise ValueError(f"{users_line()}: side: expected 'left' or 'right', got {side!r}")
    ordered, wanted = alike(x1, x2)
    last = current().node("Unsqueeze", [wanted, integers([len(wanted.shape)])])
    operator = "Less" if side == "left" else "LessOrEqual"
    before = cast(current().node(operator, [ordered, last]), "int64")
    return current().node("ReduceSum", [before, integers([-1])], keepdims=0)


# Sizes that depend on data: they are known when the function runs.
@_public
def nonzero(x: Any, /) -> tuple[Any, ...]:
    """The places of all elements that are not 0: for each axis one vector, int64."""
    value = as_value(x)
    places = current().node("NonZero", [value])
    return tuple(
        current().node("Gather", [places, as_value(np.int64(axis))], axis=0)
        for axis in range(len(value.shape))
    )


def _unique(x: Any) -> tuple[Any, ...]:
    """Values in order, the place of each one's first, for each element its value's, how many."""
    value = as_value(x)
    found = current().node("Unique", [reshape(value, (-1,))], outputs=4, sorted=1)
    values, first, inverse, counts = found
    return values, first, reshape(inverse, value.shape), counts


@_public
def unique_all(x: Any, /) -> tuple[Any, ...]:
    """The values of x in order; the place of the first of each, x as one vector; which value each
    element of x is; how often each occurs."""
    return _unique(x)


@_public
def unique_counts(x: Any, /) -> tuple[Any, Any]:
    """The values of x in order, and how often each occurs."""
    values, _, _, counts = _unique(x)
    return values, counts


@_public
def unique_inverse(x: Any, /) -> tuple[Any, Any]:
    """The values of x in order, and which of them each element of x is."""
    values, _, inverse, _ = _unique(x)
    return values, inverse


@_public
def unique_values(x: Any, /) -> Any:
    """The values of x in order, each once."""
    return _unique(x)[0]

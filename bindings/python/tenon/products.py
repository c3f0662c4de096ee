# SPDX-License-Identifier: Apache-2.0
"""Products of arrays. Names of the array API, and NumPy's einsum."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

from . import reductions as r
from .eager import anywhere
from .trace import Value, alike, cast, current, users_line

__all__: list[str] = []


def _public(function: Any) -> Any:
    __all__.append(function.__name__)
    return anywhere(function)


def _product(op: str, operands: list[Value], **attributes: Any) -> Value:
    """Of truth values: whether one product is True."""
    if operands[0].dtype != "bool":
        return current().node(op, operands, **attributes)
    counted = [cast(x, "int32") for x in operands]
    return cast(current().node(op, counted, **attributes), "bool")


@_public
def matmul(a: Any, b: Any, /) -> Any:
    """[..., m, k] times [..., k, n] is [..., m, n]; leading axes are broadcast."""
    return _product("MatMul", alike(a, b))


@_public
def vecdot(a: Any, b: Any, /, axis: int = -1) -> Any:
    """The sum of products over axis."""
    left, right = alike(a, b)
    if left.dtype == "bool":
        return r.any(current().node("And", [left, right]), axis=axis)
    return r.sum(current().node("Mul", [left, right]), axis=axis, dtype=left.dtype)


@_public
def tensordot(a: Any, b: Any, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Any:
    """Sums of products over axes of both: so many of the last of a and the first of b, or lists."""
    left, right = alike(a, b)
    rank_a, rank_b = len(left.shape), len(right.shape)
    if isinstance(axes, int):
        axes = (range(rank_a - axes, rank_a), range(axes))
    summed_a, summed_b = ([x % rank for x in of] for of, rank in zip(axes, (rank_a, rank_b)))
    if len(summed_a) != len(summed_b):
        raise ValueError(f"{users_line()}: axes: expected as many of a as of b, got {axes}")
    letters = iter(ascii_letters)
    names_a = [next(letters) for _ in range(rank_a)]
    names_b = [next(letters) for _ in range(rank_b)]
    for i, j in zip(summed_a, summed_b):
        names_b[j] = names_a[i]
    kept = [n for i, n in enumerate(names_a) if i not in summed_a]
    kept += [n for j, n in enumerate(names_b) if j not in summed_b]
    return einsum(f"{''.join(names_a)},{''.join(names_b)}->{''.join(kept)}", left, right)


@_public
def einsum(equation: str, /, *arrays: Any) -> Any:
    """Sums of products, as "bij,bjk->bik" says: letters that the result lacks are summed."""
    return _product("Einsum", alike(*arrays), equation=equation)

# SPDX-License-Identifier: Apache-2.0
"""Matrices of slopes: jacfwd, jacrev, hessian. They are vmap of jvp or vjp over a basis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import tree
from .arrays import moveaxis, reshape
from .autodiff import FLOATS, _positions, is_one, jvp, vjp, vmap
from .errors import ArgumentError
from .trace import Value, as_value, users_line
from .transforms import Compiled

Function = Callable[..., Any]


def _sizes(x: Value, what: str) -> tuple[int, ...]:
    if not x.dtype.startswith(FLOATS) or not all(isinstance(dim, int) for dim in x.shape):
        raise ArgumentError(
            f"{users_line()}: {what}: expected floats in sizes that are known, got {x!r}"
        )
    return x.shape  # type: ignore[return-value]


def _basis(of: Any, what: str) -> list[tuple[tuple[int, ...], Any]]:
    """For each leaf its shape, and a tree like `of` that has a basis there and zeros elsewhere,
    with an axis in front that counts the basis."""
    leaves, _, structure = tree.flatten(of)
    leaves = [as_value(leaf) for leaf in leaves]
    shapes = [_sizes(leaf, what) for leaf in leaves]
    out = []
    for chosen, shape in enumerate(shapes):
        count = math.prod(shape)
        arrays = [
            np.eye(count).reshape(count, *s) if i == chosen else np.zeros((count, *s))
            for i, s in enumerate(shapes)
        ]
        made = [
            as_value(array.astype(np.float32 if leaf.dtype == "bfloat16" else leaf.dtype))
            for array, leaf in zip(arrays, leaves)
        ]
        out.append((shape, tree.unflatten(structure, iter(made))))
    return out


def _chosen(
    f: Function, args: tuple, named: dict[str, Any], argnums: int | Sequence[int], who: str
) -> tuple[Function, tuple]:
    """f as a function of the chosen arguments, and these."""
    positions = _positions(argnums, len(args), who)
    call = f._inline if isinstance(f, Compiled) else f

    def function(*chosen: Any) -> Any:
        given = list(args)
        for position, arg in zip(positions, chosen):
            given[position] = arg
        return call(*given, **named)

    return function, tuple(tree.map_leaves(as_value, args[position]) for position in positions)


def jacrev(f: Function, /, argnums: int | Sequence[int] = 0, **options: Any) -> Any:
    """A function that gives the Jacobian of f, row by row: [m, n] for a result [m] and an argument
    [n]. For few results and many arguments; `tn.jacfwd` for the other way. Both may be trees: each
    leaf of the result becomes a tree like the argument. Options as `tn.jit`."""

    def inline(*args: Any, **named: Any) -> Any:
        function, primals = _chosen(f, args, named, argnums, "jacrev")
        for leaf in tree.flatten(primals)[0]:
            _sizes(leaf, "jacrev: argument")
        result, pull = vjp(function, *primals)
        rows = []
        for shape, basis in _basis(result, "jacrev: result"):
            pulled = vmap(pull, random="same")(basis)
            full = tree.map_leaves(lambda x, s=shape: reshape(x, (*s, *x.shape[1:])), pulled)
            rows.append(full[0] if is_one(argnums) else full)
        return tree.unflatten(tree.flatten(result)[2], iter(rows))

    return Compiled(inline, f, **options)


def jacfwd(f: Function, /, argnums: int | Sequence[int] = 0, **options: Any) -> Any:
    """As `tn.jacrev`, but column by column: for few arguments and many results."""

    def inline(*args: Any, **named: Any) -> Any:
        function, primals = _chosen(f, args, named, argnums, "jacfwd")
        columns: list[list[Any]] = []  # by leaf of the arguments, then of the result
        for shape, basis in _basis(primals, "jacfwd: argument"):
            pushed = vmap(lambda t: jvp(function, primals, t), random="same")(basis)[1]
            leaves, _, structure = tree.flatten(pushed)
            behind = [moveaxis(x, 0, -1) for x in leaves]
            columns.append([reshape(x, (*x.shape[:-1], *shape)) for x in behind])
        like = tree.flatten(primals)[2]
        made = []
        for parts in zip(*columns):
            full = tree.unflatten(like, iter(parts))
            made.append(full[0] if is_one(argnums) else full)
        return tree.unflatten(structure, iter(made))

    return Compiled(inline, f, **options)


def hessian(f: Function, /, argnums: int | Sequence[int] = 0, **options: Any) -> Any:
    """A function that gives the matrix of second derivatives of f, which gives one float scalar:
    [n, n] for an argument [n]. Products with it are cheaper: `tn.jvp` of a `tn.grad`."""
    return jacfwd(jacrev(f, argnums), argnums, **options)

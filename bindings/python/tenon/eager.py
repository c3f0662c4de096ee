# SPDX-License-Identifier: Apache-2.0
"""The functions outside of a trace: each call is a small graph of its own, compiled once."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from . import tree
from .dispatch import Dispatched
from .trace import Value, tracing

_KEPT = 256
_compiled: OrderedDict[Any, Any] = OrderedDict()


def is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, Value)) or hasattr(x, "__dlpack__")


_VALUES = (bool, int, float, complex, str, bytes, slice, type(None), type(Ellipsis))
_VALUES += (np.generic, np.dtype)


def _identity(leaf: Any) -> Any:
    """By which an argument that is no array is known. Two models, or other objects, may
    look alike and be different; one that is part of a key lives as long as what was compiled."""
    return (type(leaf), repr(leaf)) if isinstance(leaf, _VALUES) else id(leaf)


def _run(function: Callable[..., Any], args: tuple, named: dict[str, Any]) -> Any:
    leaves, _, structure = tree.flatten((list(args), named))
    arrays = [leaf for leaf in leaves if is_array(leaf)]
    rest = [None if is_array(leaf) else (leaf,) for leaf in leaves]
    fixed = tuple(None if one is None else _identity(one[0]) for one in rest)
    key = (function, repr(structure), fixed)
    made = _compiled.get(key)
    if made is None:

        def call(*given: Any) -> Any:
            arrays = iter(given)
            filled = [next(arrays) if fixed is None else fixed[0] for fixed in rest]
            args, named = tree.unflatten(structure, iter(filled))
            return function(*args, **named)

        made = _compiled[key] = Dispatched(call, call)
        if len(_compiled) > _KEPT:
            _compiled.popitem(last=False)
    _compiled.move_to_end(key)
    return made(*arrays)


def anywhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for traced values and, outside of a trace, for arrays as well."""

    @functools.wraps(function)
    def either(*args: Any, **named: Any) -> Any:
        return function(*args, **named) if tracing() else _run(function, args, named)

    return either

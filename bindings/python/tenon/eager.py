# SPDX-License-Identifier: Apache-2.0
"""The functions outside of a trace: each call is a small graph of its own, compiled once. Where a
function of the user's decides what the graph is, it is traced on each call, as what it reads from
outside may have changed; graphs that come out the same are compiled once, too."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core, tree
from .dispatch import Dispatched, as_input, float_type
from .options import plan_options
from .trace import Trace, Value, as_value, tracing

_KEPT = 256
_compiled: OrderedDict[Any, Any] = OrderedDict()
_lock = threading.Lock()  # of _compiled: functions are called from any thread


def is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, Value)) or hasattr(x, "__dlpack__")


_VALUES = (bool, int, float, complex, str, bytes, slice, type(None), type(Ellipsis))
_VALUES += (np.generic, np.dtype)


def _identity(leaf: Any) -> Any:
    """By which an argument that is no array is known. Two models, or other objects, may
    look alike and be different; one that is part of a key lives as long as what was compiled."""
    return (type(leaf), repr(leaf)) if isinstance(leaf, _VALUES) else id(leaf)


def _kept(key: Any, make: Callable[[], Any]) -> Any:
    """What was made for the key: by this call, if no earlier one has. The latest are kept."""
    with _lock:
        if key not in _compiled:
            _compiled[key] = make()
        if len(_compiled) > _KEPT:
            _compiled.popitem(last=False)
        _compiled.move_to_end(key)
        return _compiled[key]


_PLAIN = frozenset((bool, int, str, type(None)))


def _is_plain(x: Any) -> bool:
    kind = type(x)
    return kind in _PLAIN or (kind is tuple and all(type(i) is int for i in x))


def _plain_key(function: Callable[..., Any], args: tuple, named: dict[str, Any]) -> Any:
    """By which a call is known that has arrays of NumPy, lists of them and plain values by
    position, and plain values by name; with the arrays in order. None: there is something else
    among them. The second item of a key is no text, unlike that of other calls (_run)."""
    key: list[Any] = [function]
    arrays: list[Any] = []
    for x in args:
        kind = type(x)
        if kind is np.ndarray:
            key.append(None)
            arrays.append(x)
        elif _is_plain(x):
            key.append((kind, x))
        elif kind is float:
            key.append((kind, repr(x)))
        elif kind in (list, tuple) and all(type(i) is np.ndarray for i in x):
            key.append((kind, len(x)))
            arrays.extend(x)
        else:
            return None
    for name, x in named.items():
        if not _is_plain(x):
            return None
        key.append((name, type(x), x))
    return tuple(key), arrays


def _run(function: Callable[..., Any], args: tuple, named: dict[str, Any]) -> Any:
    if plain := _plain_key(function, args, named):
        key, arrays = plain
        return _kept(key, lambda: _dispatched(function, *_taken_apart(args, named)))(*arrays)
    leaves, structure = _taken_apart(args, named)
    arrays = [leaf for leaf in leaves if is_array(leaf)]
    fixed = tuple(None if is_array(leaf) else _identity(leaf) for leaf in leaves)
    key = (function, repr(structure), fixed)
    return _kept(key, lambda: _dispatched(function, leaves, structure))(*arrays)


def _taken_apart(args: tuple, named: dict[str, Any]) -> tuple[list[Any], Any]:
    leaves, _, structure = tree.flatten((list(args), named))
    return leaves, structure


def _dispatched(function: Callable[..., Any], leaves: list[Any], structure: Any) -> Dispatched:
    """The function of the arrays among the leaves; the others are what they are."""
    rest = [None if is_array(leaf) else (leaf,) for leaf in leaves]

    def call(*given: Any) -> Any:
        arrays = iter(given)
        filled = [next(arrays) if fixed is None else fixed[0] for fixed in rest]
        args, named = tree.unflatten(structure, iter(filled))
        return function(*args, **named)

    return Dispatched(call, call)


def plan_of(model: _core.Model) -> _core.Plan:
    """The plan of a graph, kept by its text, which has the hashes of large constants."""
    text = model.text(False)

    def make() -> _core.Plan:
        return _core.Plan(model, plan_options(None, None, None, {}), [])

    # A constant in the memory of a device has no hash, only the word `elsewhere`.
    return make() if " elsewhere" in text else _kept(text, make)


def _run_anew(function: Callable[..., Any], args: tuple, named: dict[str, Any]) -> Any:
    leaves, names, structure = tree.flatten((list(args), named))
    positions = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
    arrays = [leaves[i] for i in positions]
    with Trace() as trace:
        trace.floats = float_type(arrays)
        for i in positions:
            leaves[i] = as_input(trace, leaves[i], names[i], None)
        args, named = tree.unflatten(structure, iter(leaves))
        results, _, structure = tree.flatten(function(*args, **named))
        values = [as_value(x) for x in results]
        if not values:  # a graph has outputs
            return tree.unflatten(structure, iter(()))
        model = trace.finish(values)
    return tree.unflatten(structure, iter(plan_of(model).arrays(*arrays)))


def anywhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for traced values and, outside of a trace, for arrays as well. It is traced once
    for each set of arguments: for functions that read nothing else."""

    @functools.wraps(function)
    def either(*args: Any, **named: Any) -> Any:
        return function(*args, **named) if tracing() else _run(function, args, named)

    return either


def anywhere_anew(function: Callable[..., Any]) -> Callable[..., Any]:
    """As anywhere, for what calls functions of the user's: outside, it is traced on each call."""

    @functools.wraps(function)
    def either(*args: Any, **named: Any) -> Any:
        return function(*args, **named) if tracing() else _run_anew(function, args, named)

    return either

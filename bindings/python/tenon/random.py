# SPDX-License-Identifier: Apache-2.0
"""Random numbers in traced functions.

The numbers are a function of the graph or, where one is given, of `key`: one or two integers, the
seed and the stream. So without a key a compiled function gives the same numbers in each call; for
others in each step make the step's number part of the key. They are the same on every backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _core, types
from .arithmetic import where
from .eager import anywhere
from .elementwise import as_float
from .trace import Value, alike, as_value, cast, current, integers

__all__ = ["dropout", "random_normal", "random_uniform"]


def _drawn(kind: str, shape: Sequence[int], key: Any, dtype: Any) -> Value:
    name = types.name_of(dtype)
    if key is None:
        op = {"uniform": "RandomUniform", "normal": "RandomNormal"}[kind]
        return current().node(op, [], shape=list(shape), dtype=_core.ElementType(name))
    return _keyed(kind, integers(shape), key, name)


def _keyed(kind: str, shape: Value, key: Any, name: str) -> Value:
    given = cast(as_value(key), "int64")
    if not given.shape:
        given = current().node("Unsqueeze", [given, integers([0])])
    return current().node(
        "Random", [shape, given], domain="tenon", kind=kind, dtype=_core.ElementType(name)
    )


@anywhere
def random_uniform(shape: Sequence[int], /, key: Any = None, dtype: Any = "float32") -> Any:
    """Numbers of [0, 1), each as likely as the others."""
    return _drawn("uniform", shape, key, dtype)


@anywhere
def random_normal(shape: Sequence[int], /, key: Any = None, dtype: Any = "float32") -> Any:
    """Numbers of the normal distribution: mean 0, deviation 1."""
    return _drawn("normal", shape, key, dtype)


@anywhere
def dropout(x: Any, ratio: float = 0.5, /, key: Any = None) -> Any:
    """x with each element set to 0 with the probability ratio, and the others divided by 1 - ratio.

    Only for training: where there is nothing to drop, do not call it.
    """
    if not 0 <= ratio < 1:
        raise ValueError(f"dropout: ratio: expected a number in 0..1, 1 excluded, got {ratio}")
    value = as_float(x)
    if key is None:
        return current().node("Dropout", [value, as_value(float(ratio)), as_value(True)])
    drawn = _keyed("uniform", current().node("Shape", [value]), key, "float32")
    kept = current().node("GreaterOrEqual", [drawn, as_value(float(ratio))])
    return where(kept, current().node("Mul", alike(value, 1 / (1 - ratio))), 0.0)

# SPDX-License-Identifier: Apache-2.0
"""Three libraries that compute a function: Tenon, and NumPy and JAX as oracles.

A word (`vocabulary`) says what it calls in Tenon, and where NumPy and JAX have no function of that
name, what it is in theirs; an oracle computes in float64 and may shake every value a little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from program import Body, Program, Ref, Step, map_refs
from vocabulary import WORDS

# Of the values of a step: one array that numbers are multiplied by, one that is added.
Noise = dict[Ref, tuple[Any, Any]]


class Library:
    """The functions of one library under one name; `module` has the array API's."""

    def __init__(self, module: Any, is_oracle: bool, floats: str = "float64") -> None:
        self.module = module
        self.is_oracle = is_oracle
        self.floats = floats

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def is_float(self, x: Any) -> bool:
        return "float" in str(x.dtype)

    def put(self, x: Any, key: Any, how: str, value: Any) -> Any:
        """x.at[key].how(value)"""
        if self.module is not np:
            return getattr(x.at[key], how)(value)
        x = x.copy()
        with np.errstate(all="ignore"):
            if how == "set":
                x[key] = value
            else:
                ufuncs = {"max": "maximum", "min": "minimum"}
                getattr(np, ufuncs.get(how, how)).at(x, key, value)
        return x

    def grad(self, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """NumPy's by finite differences: what follows from it has its size, not its digits."""
        if self.module is not np:
            return self.module.grad(f)

        def slope(x: Any) -> Any:
            out = np.zeros_like(x)
            for place in np.ndindex(x.shape):
                step = np.zeros_like(x)
                step[place] = 1e-5
                out[place] = (f(x + step) - f(x - step)) / 2e-5
            return out

        return slope

    def erf(self, x: Any) -> Any:
        if self.module is np:
            return np.vectorize(math.erf, otypes=["float64"])(x)
        if self.is_oracle:
            from jax.scipy.special import erf

            return erf(x)
        return self.module.erf(x)

    def stop_gradient(self, x: Any) -> Any:
        if not self.is_oracle:
            return self.module.stop_gradient(x)
        if self.module is np:
            return x
        from jax.lax import stop_gradient

        return stop_gradient(x)


def _run(lib: Library, steps: Sequence[Step], values: dict[Ref, Any], noise: Noise) -> None:
    for step in steps:
        word = WORDS[step.word]
        call: Callable[..., Any] = word.plain if lib.is_oracle and word.plain else word.call

        def resolve(item: Any) -> Any:
            if isinstance(item, Body):
                return _function(lib, item, values)
            return map_refs(item, values.__getitem__)

        args = [resolve(arg) for arg in step.args]
        made = call(lib, *args, **map_refs(step.named, values.__getitem__))
        if step.makes in noise:
            times, plus = noise[step.makes]
            made = made * (1 + times) + plus
        values[step.makes] = made


def _function(lib: Library, body: Body, outside: dict[Ref, Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        values = {**outside, **dict(zip(body.takes, args))}
        _run(lib, body.steps, values, {})
        return values[body.gives]

    return call


def function(lib: Library, program: Program, noise: Noise | None = None) -> Callable[..., Any]:
    """The program as a function of arrays that gives a tuple."""

    def call(*inputs: Any) -> tuple[Any, ...]:
        values = dict(zip(program.inputs, inputs))
        for ref, (_, plus) in (noise or {}).items():
            if ref in values:
                values[ref] = values[ref] + plus
        if lib.floats == "bfloat16":  # NumPy has no such type: it begins and ends inside
            for ref, x in values.items():
                values[ref] = lib.module.astype(x, "bfloat16") if lib.is_float(x) else x
        _run(lib, program.steps, values, noise or {})
        results = [values[ref] for ref in program.outputs]
        if lib.floats == "bfloat16":
            results = [lib.module.astype(x, "float32") if lib.is_float(x) else x for x in results]
        return tuple(results)

    return call


def values_of(lib: Library, program: Program, inputs: Sequence[Any]) -> dict[Ref, Any]:
    """All values of the program's own steps."""
    values = dict(zip(program.inputs, inputs))
    _run(lib, program.steps, values, {})
    return values

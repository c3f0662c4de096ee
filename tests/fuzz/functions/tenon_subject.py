# SPDX-License-Identifier: Apache-2.0
"""A function and its transforms as Tenon computes them, in the program's own element type."""

from __future__ import annotations

from typing import Any

import numpy as np
import tenon as tn
from library import Library, function
from oracles import Case, weighted_sum


def outside_type(floats: str) -> str:
    """The type of arrays that NumPy hands over: it has no bfloat16."""
    return "float32" if floats == "bfloat16" else floats


class _Arrays:
    """The module under the names that words use, for values in a trace and outside."""

    def __getattr__(self, name: str) -> Any:
        return getattr(tn, name)


def _cast(case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    to = outside_type(case.program.floats)
    return [np.asarray(x, to) if x.dtype.kind == "f" else x for x in arrays]


def compute(name: str, case: Case, backend: str) -> list[np.ndarray]:
    """The results of one transform. Whatever Tenon raises is raised."""
    lib = Library(_Arrays(), is_oracle=False, floats=case.program.floats)
    f = function(lib, case.program)
    inputs, batch = _cast(case, case.inputs), _cast(case, case.batch)
    weights = Library(tn, is_oracle=False, floats=outside_type(case.program.floats))
    scalar = lambda *xs: weighted_sum(weights, f(*xs))  # noqa: E731
    real, axes = tuple(case.real), tuple(case.axes)
    options = {"backend": backend, "threads": 1}
    if name == "jit":
        made = tn.jit(f, **options)(*inputs)
    elif name == "grad":
        made = tn.grad(scalar, argnums=real, **options)(*inputs)
    elif name == "jvp":
        made = _jvp(f, inputs, _cast(case, case.tangents), real, options)
    elif name == "vmap":
        made = tn.vmap(f, in_axes=axes, **options)(*batch)
    elif name == "vmap(grad)":
        made = tn.vmap(tn.grad(scalar, argnums=real), in_axes=axes, **options)(*batch)
    elif name == "grad(vmap)":
        total = lambda *xs: tn.sum(tn.vmap(scalar, in_axes=axes)(*xs))  # noqa: E731
        made = tn.grad(total, argnums=real, **options)(*batch)
    else:
        made = (tn.hessian(scalar, argnums=case.curved, **options)(*inputs),)
    return [np.asarray(x) for x in made]


def _jvp(f: Any, inputs: list[Any], tangents: list[Any], real: Any, options: Any) -> Any:
    def pushed(primals: Any, tangents: Any) -> Any:
        def of_real(*xs: Any) -> Any:
            given = list(inputs)
            for place, x in zip(real, xs):
                given[place] = x
            return tuple(y for y in f(*given) if "float" in str(y.dtype))

        return tn.jvp(of_real, primals, tangents)[1]

    return tn.jit(pushed, **options)(tuple(inputs[i] for i in real), tuple(tangents))

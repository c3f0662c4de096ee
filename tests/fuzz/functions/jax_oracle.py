# SPDX-License-Identifier: Apache-2.0
"""A function and its transforms by JAX, element by element, in float64.

JAX traces the function once and differentiates that trace; NumPy computes what came of it
(`jaxprs`). Of a batch each example is computed alone: nothing of vmap is taken on trust.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxprs import Steps, replay
from library import Library, Noise, function
from oracles import Case, weighted_sum
from program import Program

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

STEP = 1e-6  # between gradients that are compared
Flat = list[np.ndarray]  # the inputs, then the noise of each value: what is multiplied, what added


@dataclass(frozen=True)
class Traces:
    """Of one case; each takes Flat, behind what it takes of its own."""

    values: Steps
    gradients: Steps  # by all real inputs
    pushed: Steps | None  # takes tangents; the real outputs' tangents
    curvature: Steps | None  # takes a tangent of the input `curved`


class Jax:
    """Values, gradients and hessians element by element."""

    name = "JAX"

    def __init__(self) -> None:
        self._last: tuple[Any, Any] = (None, None)  # a case and what was traced of it

    def forget(self) -> None:
        """Lets go of what JAX keeps of functions that are done."""
        self._last = (None, None)
        jax.clear_caches()

    def takes(self, program: Program) -> bool:
        return True

    def project(self, name: str, case: Case, made: list[np.ndarray]) -> list[np.ndarray]:
        return made

    def expects(self, case: Case, noise: Noise) -> dict[str, list[np.ndarray] | None]:
        refs = sorted(noise, key=lambda ref: ref.number)
        shaken = [np.asarray(x, "f8") for ref in refs for x in noise[ref]]
        flat = [*case.inputs, *shaken]
        if self._last[0] is not case:
            self._last = (case, _trace(case, refs, flat))
        traces: Traces = self._last[1]
        examples = [[*example, *shaken] for example in case.examples()]
        made: dict[str, list[np.ndarray] | None] = {}
        if "jit" in case.transforms:
            made["jit"] = traces.values(*flat)
        if "vmap" in case.transforms:
            made["vmap"] = _stacked([traces.values(*example) for example in examples])
        if "grad" in case.transforms:
            made["grad"] = traces.gradients(*flat)
        if {"vmap(grad)", "grad(vmap)"} & {*case.transforms}:
            each = [traces.gradients(*example) for example in examples]
            made["vmap(grad)"] = _stacked(each)
            made["grad(vmap)"] = [
                sum(rows) if case.axes[place] is None else np.stack(rows, case.axes[place])
                for place, rows in zip(case.real, zip(*each))
            ]
        if traces.pushed:
            made["jvp"] = traces.pushed(*case.tangents, *flat)
        if traces.curvature:
            made["hessian"] = [_hessian(traces, case, flat)]
        return {name: made[name] for name in case.transforms}


def _stacked(rows: list[list[np.ndarray]]) -> list[np.ndarray]:
    return [np.stack(column) for column in zip(*rows)]


def _hessian(traces: Traces, case: Case, flat: Flat) -> np.ndarray:
    """Column by column: the gradient's derivative along each element of the input; NaN where the
    gradient jumps, as at a kink: what stands for such a derivative is a choice."""
    x, which = case.inputs[case.curved], case.real.index(case.curved)

    def moved(by: np.ndarray) -> np.ndarray:
        return traces.gradients(*flat[: case.curved], x + by, *flat[case.curved + 1 :])[which]

    columns = []
    for unit in np.eye(x.size).reshape((x.size, *x.shape)):
        column = traces.curvature(unit, *flat)[0]
        with np.errstate(all="ignore"):
            near = (moved(STEP * unit) - moved(-STEP * unit)) / (2 * STEP)
            jumps = np.abs(near - column) > 1e-2 * (1 + np.abs(column))
        columns.append(np.where(jumps, np.nan, column))
    whole = np.stack(columns, -1) if columns else np.zeros((*x.shape, 0))
    return whole.reshape((*x.shape, *x.shape))


def _traced(f: Callable[..., Any], *args: Any) -> Any:
    return jax.make_jaxpr(f)(*args)


def _trace(case: Case, refs: list[Any], flat: Flat) -> Traces:
    lib, count = Library(_Module(), is_oracle=True), len(case.inputs)
    real = tuple(case.real)

    def plain(*flat: Any) -> Any:
        noise = {ref: (flat[count + 2 * i], flat[count + 2 * i + 1]) for i, ref in enumerate(refs)}
        return function(lib, case.program, noise)(*flat[:count])

    values = _traced(plain, *flat)

    def scalar(*flat: Any) -> Any:
        return weighted_sum(lib, replay(values, *flat))

    def pushed(*args: Any) -> Any:
        tangents, flat = args[: len(real)], args[len(real) :]

        def of_real(*xs: Any) -> Any:
            given = list(flat)
            for place, x in zip(real, xs):
                given[place] = x
            return [y for y in replay(values, *given) if y.dtype.kind == "f"]

        return jax.jvp(of_real, [flat[place] for place in real], list(tangents))[1]

    gradients = _traced(jax.grad(scalar, real), *flat)

    def curvature(tangent: Any, *flat: Any) -> Any:
        def slopes(x: Any) -> Any:
            given = [*flat[: case.curved], x, *flat[case.curved + 1 :]]
            return replay(gradients, *given)[real.index(case.curved)]

        return jax.jvp(slopes, [flat[case.curved]], [tangent])[1]

    tangent = case.inputs[case.curved]
    return Traces(
        Steps(values),
        Steps(gradients),
        Steps(_traced(pushed, *case.tangents, *flat)) if "jvp" in case.transforms else None,
        Steps(_traced(curvature, tangent, *flat)) if "hessian" in case.transforms else None,
    )


class _Module:
    """jax.numpy, and jax's own functions of functions."""

    def __init__(self) -> None:
        self.grad = jax.grad
        self.jit = jax.jit

    def abs(self, x: Any) -> Any:
        """With slope 0 at 0, as in Tenon. JAX takes 1 there, so that slopes of higher order may be
        those of both sides of the kink, and no noise shows that they are a matter of choice."""
        y = jax.numpy.abs(x)
        return jax.numpy.where(x == 0, 0 * x, y) if y.dtype.kind == "f" else y

    def __getattr__(self, name: str) -> Any:
        return getattr(jax.numpy, name)

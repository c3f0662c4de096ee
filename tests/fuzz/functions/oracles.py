# SPDX-License-Identifier: Apache-2.0
"""A function and its transforms as NumPy and JAX compute them, in float64, with noise or without.

NumPy has no gradients: it gives slopes along one direction, by finite differences, and `project`
makes of what a library gave the number that stands beside it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from library import Library, Noise, function, values_of
from program import Program, words
from vocabulary import WORDS

TRANSFORMS = ("jit", "grad", "jvp", "vmap", "vmap(grad)", "grad(vmap)", "hessian")
MOST_OF_HESSIAN = 12


@dataclass(frozen=True)
class Case:
    """A program, its inputs for one example and for a batch of them, and directions."""

    program: Program
    inputs: list[np.ndarray]
    batch: list[np.ndarray]  # inputs with an axis of examples where axes says so
    axes: list[int | None]
    tangents: list[np.ndarray]  # of the real inputs, along which slopes are taken
    transforms: tuple[str, ...]

    @property
    def real(self) -> list[int]:
        """Places of the inputs that slopes are taken by."""
        return [i for i, x in enumerate(self.inputs) if x.dtype.kind == "f"]

    @property
    def curved(self) -> int:
        """The place of the smallest real input, for the hessian."""
        return min(self.real, key=lambda i: self.inputs[i].size)

    def examples(self) -> list[list[np.ndarray]]:
        size = next(x.shape[axis] for x, axis in zip(self.batch, self.axes) if axis is not None)
        return [
            [x if axis is None else np.take(x, i, axis) for x, axis in zip(self.batch, self.axes)]
            for i in range(size)
        ]


def weighted_sum(lib: Any, outputs: Any) -> Any:
    """One number of all real outputs: no two elements have the same weight."""
    total: Any = 0.0
    for output in outputs:
        if "float" in str(output.dtype):
            size = int(np.prod(output.shape))
            weights = np.cos(1.0 + np.arange(size)).reshape(output.shape).astype(lib.floats)
            total = total + lib.sum(output * weights)
    return total


def noise_for(case: Case, random: np.random.Generator, times: float, plus: float) -> Noise:
    """What shakes the numbers of each step: each is multiplied by up to 1 + `times`, and up to
    `plus` of the largest is added. Inputs are exact: only with `plus` are they moved too, off the
    kinks where the slope is a matter of choice."""
    values = values_of(NUMPY, case.program, case.inputs)
    noise: Noise = {}
    for step in case.program.steps:
        value = np.asarray(values[step.makes])
        if value.dtype.kind == "f" and value.size:
            draw = random.uniform(-1, 1, (2, *value.shape))
            noise[step.makes] = draw[0] * times, draw[1] * plus * (1 + np.abs(value).max())
    for ref, value in case.program.inputs.items():
        if value.dtype.kind == "f" and value.size:
            draw = random.uniform(-1, 1, value.shape)
            noise[ref] = 0 * draw, draw * plus * (1 + np.abs(value).max())
    return noise


NUMPY = Library(np, is_oracle=True)


class NumPy:
    """Values, and slopes along the case's tangents."""

    name = "NumPy"

    def forget(self) -> None:
        """Lets go of what it keeps of functions that are done."""

    def takes(self, program: Program) -> bool:
        return all(word != "grad" for word in words(program))

    def expects(self, case: Case, noise: Noise) -> dict[str, list[np.ndarray] | None]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return {name: self._one(name, case, noise) for name in case.transforms}

    def _one(self, name: str, case: Case, noise: Noise) -> list[np.ndarray] | None:
        f = function(NUMPY, case.program, noise)
        smooth = all(WORDS[word].smooth for word in words(case.program))
        if name == "jit":
            return [np.asarray(x) for x in f(*case.inputs)]
        if name == "vmap":
            rows = [f(*example) for example in case.examples()]
            return [np.stack(column) for column in zip(*rows)]
        if not smooth:
            return None
        scalar = lambda *inputs: weighted_sum(NUMPY, f(*inputs))  # noqa: E731
        if name == "grad":
            return [slope(scalar, case.inputs, case)]
        if name == "jvp":
            real = lambda *inputs: [x for x in f(*inputs) if x.dtype.kind == "f"]  # noqa: E731
            count = len(real(*case.inputs))
            return [slope(lambda *a, i=i: real(*a)[i], case.inputs, case) for i in range(count)]
        if name == "vmap(grad)":
            return [np.stack([slope(scalar, example, case) for example in case.examples()])]
        if name == "grad(vmap)":
            return [sum(slope(scalar, example, case) for example in case.examples())]
        return [curvature(scalar, case)]

    def project(self, name: str, case: Case, made: list[np.ndarray]) -> list[np.ndarray]:
        """The slopes of a library along the tangents."""
        made = [np.asarray(x, "f8") if x.dtype.kind == "f" else x for x in made]
        if name == "grad":
            return [np.asarray(sum(np.sum(g * t) for g, t in zip(made, case.tangents)))]
        if name == "vmap(grad)":
            size = len(case.examples())
            each = [np.sum((g * t).reshape(size, -1), axis=1) for g, t in zip(made, case.tangents)]
            return [np.asarray(sum(each))]
        if name == "grad(vmap)":
            total = []
            for place, gradient, tangent in zip(case.real, made, case.tangents):
                axis = case.axes[place]
                wide = tangent if axis is None else np.expand_dims(tangent, axis)
                total.append(np.sum(gradient * wide))
            return [np.asarray(sum(total))]
        if name == "hessian":
            tangent = case.tangents[case.real.index(case.curved)].ravel()
            return [np.asarray(tangent @ made[0].reshape(tangent.size, tangent.size) @ tangent)]
        return made


def moved(inputs: list[np.ndarray], case: Case, step: float, only: int | None = None) -> list[Any]:
    along = dict(zip(case.real, case.tangents))
    return [
        x + step * along[i] if i in along and only in (None, i) else x for i, x in enumerate(inputs)
    ]


def slope(f: Any, inputs: list[np.ndarray], case: Case) -> np.ndarray:
    """Central differences of fourth order; NaN where steps of two sizes disagree (a kink)."""
    found = []
    for h in (2e-4, 1e-4):
        near = f(*moved(inputs, case, h)) - f(*moved(inputs, case, -h))
        far = f(*moved(inputs, case, 2 * h)) - f(*moved(inputs, case, -2 * h))
        found.append(np.asarray((8 * near - far) / (12 * h)))
    agree = np.abs(found[0] - found[1]) <= 1e-6 * (1 + np.abs(found[0]))
    return np.where(agree, found[1], np.nan)


def curvature(f: Any, case: Case) -> np.ndarray:
    """Of the input `curved`, along its tangent."""
    found = []
    for h in (4e-3, 2e-3):
        at = [f(*moved(case.inputs, case, k * h, case.curved)) for k in (-2, -1, 0, 1, 2)]
        made = (-at[0] + 16 * at[1] - 30 * at[2] + 16 * at[3] - at[4]) / (12 * h * h)
        found.append(np.asarray(made))
    agree = np.abs(found[0] - found[1]) <= 1e-5 * (1 + np.abs(found[0]))
    return np.where(agree, found[1], np.nan)
